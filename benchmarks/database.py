"""A PostgreSQL for benchmarks, from the wheel that the tests use. It flushes to the disk. Needs Linux."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from helpers.postgres import Postgres, binaries  # type: ignore[import-not-found]

__all__ = ["Database", "binaries"]
TICKS = os.sysconf("SC_CLK_TCK")


class Database:
    """A server with its data in a folder. Use it with ``with``."""

    def __init__(self, folder: Path) -> None:
        """Keep the folder. Default settings, which include flushes."""
        self._server = Postgres(folder, fsync="on")

    def __enter__(self) -> Database:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def create(self) -> str:
        """Create an empty database. Return its URL."""
        return str(self._server.create_database())

    def drop(self, url: str) -> None:
        """Drop a database, so that its housekeeping does not disturb later measurements."""
        self._server.drop_database(url)

    def processor(self) -> float:
        """Return the processor time of all its processes, also of those that have ended, in seconds."""
        parent = self._server.pid
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:  # ended meanwhile
                continue
            own = path.parent.name == str(parent)
            if own or fields[1] == str(parent):
                ticks += sum(map(int, fields[11 : 15 if own else 13]))  # the server's own include its ended children
        return ticks / TICKS
