"""Opens the store at a location, such as ``sqlite:robandit.db``."""

from __future__ import annotations

from robandit.storage.base import Store
from robandit.validation import invalid

DEFAULT = "sqlite:robandit.db"


def path_of(location: str) -> str:
    """Return the path in a location of SQLite.

    >>> path_of("sqlite:data/robandit.db")
    'data/robandit.db'
    """
    scheme, colon, path = location.partition(":")
    if scheme != "sqlite" or not colon or not path:
        raise invalid("store", location, "sqlite:PATH", hint=f"for example {DEFAULT}")
    return path


def open_store(location: str = DEFAULT, *, durability: str = "full", create: bool = True) -> Store:
    """Open the store at a location for writing, and make it if it does not exist.

    ``durability`` is "full", or "relaxed": a crash of the machine may then lose the last commits, one of the process may not.
    """
    from robandit.storage.sqlite import SqliteStore

    return SqliteStore(path_of(location), durability=durability, create=create)
