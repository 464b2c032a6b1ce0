"""The log in a PostgreSQL store, as it is at one moment. Servers may go on writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeVar

import psycopg

from crash.model import Row
from robandit.storage import Reader
from robandit.storage.postgres import PostgresReader

T = TypeVar("T")
EVENTS = "SELECT seq, kind, id, payload, time FROM event WHERE experiment = %s"


class PostgresLog:
    """A transaction that sees one state of the database."""

    def __init__(self, url: str) -> None:
        self._db = psycopg.connect(url, autocommit=True, options="-c search_path=robandit")
        self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def heads(self) -> dict[str, tuple[int, int]]:
        """Return the number and the head of each experiment."""
        rows = self._db.execute("SELECT name, number, head FROM experiment").fetchall()
        return {name: (number, head) for name, number, head in rows}

    def rows(self, number: int, after: int = 0) -> Iterator[Row]:
        """Yield the events of an experiment after a number."""
        for seq, kind, id, payload, time in self._db.execute(f"{EVENTS} AND seq > %s ORDER BY seq", (number, after)):
            yield Row(seq, kind, id, json.loads(payload), time)

    def raw(self, number: int, up_to: int) -> list[tuple[Any, ...]]:
        """Return the events of an experiment as they are stored."""
        return self._db.execute(f"{EVENTS} AND seq <= %s ORDER BY seq", (number, up_to)).fetchall()

    def check_integrity(self) -> None:
        """Do nothing: the checksums of PostgreSQL's pages are checked when they are read."""

    def reader(self) -> Reader:
        """Return the service's own reader, in this transaction."""
        return PostgresReader(self)  # type: ignore[arg-type]

    def run(self, work: Callable[[Any], T]) -> T:
        """Stand in for `Connections`."""
        return work(self._db)

    def close(self) -> None:
        """End the transaction."""
        self._db.close()


def logged(url: str) -> closing[PostgresLog]:
    """Return the log in a database, for ``with``."""
    return closing(PostgresLog(url))
