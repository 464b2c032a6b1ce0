"""Opens the store at a location, such as ``sqlite:robandit.db`` or ``postgresql://user@host/database``."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from robandit.errors import InvalidInput
from robandit.storage.base import Reader, Store
from robandit.validation import invalid

RULE = "sqlite:PATH, the path of a file, or postgresql://USER@HOST/DATABASE"


def path_of(location: str) -> str:
    """Return the path in a location of SQLite.

    >>> path_of("sqlite:data/robandit.db")
    'data/robandit.db'
    """
    scheme, colon, path = location.partition(":")
    if scheme != "sqlite" or not colon or not path or path == ":memory:" or path.startswith("file:"):
        raise invalid("store", without_password(location), RULE, hint="for example sqlite:robandit.db")
    return path


def is_postgres(location: str) -> bool:
    """Return whether a location is that of a PostgreSQL database."""
    return location.startswith(("postgresql://", "postgres://"))


def without_password(location: str) -> str:
    """Return a location as people may see it.

    >>> without_password("postgresql://ada:secret@db.example.org/robandit")
    'postgresql://db.example.org/robandit'
    >>> without_password("sqlite:robandit.db")
    'sqlite:robandit.db'
    >>> without_password("mysql://ada:secret@db.example.org/robandit")
    'mysql://...'
    """
    if is_postgres(location):
        import psycopg

        from robandit.storage.connections import shown_url

        try:
            shown = shown_url(location)
        except psycopg.Error:
            shown = ""
        if shown and "@" not in shown:  # else a part of the password was read as the host
            return shown
    elif location.startswith("sqlite:") or not ("@" in location or "password" in location):
        return location
    scheme, slashes, _ = location.partition("://")
    return f"{scheme}://..." if slashes else "..."


def _checked_postgres(location: str) -> str:
    """Return a location of PostgreSQL, if it is valid and the driver is installed."""
    if importlib.util.find_spec("psycopg") is None:
        raise InvalidInput(
            "the package psycopg is missing: install the decision service with pip install 'robandit[serve]'"
        )
    import psycopg

    hint = "percent-encode special characters"
    try:
        host = psycopg.conninfo.conninfo_to_dict(location).get("host") or ""
    except psycopg.Error:
        raise invalid("store", without_password(location), RULE, hint=hint) from None
    if "@" in str(host)[1:]:  # of a password. (A host that begins with it is an abstract socket.)
        raise invalid("store", without_password(location), RULE, hint=hint)
    return location


def check_location(location: str) -> None:
    """Raise `InvalidInput` if a location cannot be that of a store. Nothing is opened."""
    if is_postgres(location):
        _checked_postgres(location)
    else:
        path_of(location)


def open_store(location: str, *, durability: str = "full", create: bool = True, new: bool = False) -> Store:
    """Open the store at a location for writing, and make it if it does not exist.

    ``durability`` is "full", or "relaxed": a crash of the machine may then lose the last commits, one of the process may not. With
    ``new``, the store must not exist, and nobody else can open the one that is made until `Store.publish`.
    """
    if is_postgres(location):
        from robandit.storage.postgres import PostgresStore

        return PostgresStore(_checked_postgres(location), durability=durability, create=create, new=new)
    from robandit.storage.sqlite import SqliteStore

    return SqliteStore(path_of(location), durability=durability, create=create, new=new)


def check_different(source: str, target: str) -> None:
    """Raise `InvalidInput` if two locations are the same one."""
    places = [place if is_postgres(place) else os.path.realpath(path_of(place)) for place in (source, target)]
    if places[0] == places[1]:
        raise InvalidInput(f"{without_password(target)} is the source: name another target")


def open_reader(location: str) -> Reader:
    """Open the store at a location for reading, while a server may be writing to it."""
    if is_postgres(location):
        return open_store(location, create=False).reader()
    from robandit.storage.sqlite import SqliteReader

    return SqliteReader(path_of(location))


def back_up(location: str, target: Path) -> None:
    """Copy the store at a location into a new file, while a server may be writing to it, and check the copy."""
    if is_postgres(location):
        from robandit.storage.postgres import PostgresStore

        return PostgresStore.backup(location, target)
    from robandit.storage.sqlite import SqliteStore

    return SqliteStore.backup(path_of(location), target)
