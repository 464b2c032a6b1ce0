"""Opens the store at a location, such as ``sqlite:robandit.db``."""

from __future__ import annotations

from pathlib import Path

from robandit.storage.base import Reader, Store
from robandit.validation import invalid


def path_of(location: str) -> str:
    """Return the path in a location of SQLite.

    >>> path_of("sqlite:data/robandit.db")
    'data/robandit.db'
    """
    scheme, colon, path = location.partition(":")
    if scheme != "sqlite" or not colon or not path or path == ":memory:" or path.startswith("file:"):
        raise invalid("store", location, "sqlite:PATH, the path of a file", hint="for example sqlite:robandit.db")
    return path


def open_store(location: str, *, durability: str = "full", create: bool = True) -> Store:
    """Open the store at a location for writing, and make it if it does not exist.

    ``durability`` is "full", or "relaxed": a crash of the machine may then lose the last commits, one of the process may not.
    """
    from robandit.storage.sqlite import SqliteStore

    return SqliteStore(path_of(location), durability=durability, create=create)


def open_reader(location: str) -> Reader:
    """Open the store at a location for reading, while a server may be writing to it."""
    from robandit.storage.sqlite import SqliteReader

    return SqliteReader(path_of(location))


def back_up(location: str, target: Path) -> None:
    """Copy the store at a location into a new file, while a server may be writing to it, and check the copy."""
    from robandit.storage.sqlite import SqliteStore

    SqliteStore.backup(path_of(location), target)
