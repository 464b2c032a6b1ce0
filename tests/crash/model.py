"""A plain model of an experiment's log, for comparison with the service: dictionaries and loops, without code of the service."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from robandit.storage import Reader
from robandit.storage.sqlite import SqliteReader


class Violation(AssertionError):
    """A promise of the service was broken."""


def require(holds: bool, *message: object) -> None:
    """Raise a `Violation` with this message unless the condition holds."""
    if not holds:
        raise Violation(" ".join(str(part) for part in message))


class Row(NamedTuple):
    """An event of the log, with its payload decoded."""

    seq: int
    kind: str
    id: str
    payload: dict[str, Any]
    time: float


class Model:
    """What a log says: a plain loop over its rows. A row that contradicts the rows before it is a violation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[Row] = []
        self.open: dict[str, str] = {}
        """The arms of open decisions."""
        self.decided: dict[str, Row] = {}
        self.rewarded: dict[str, Row] = {}
        """Rewards, learned or late."""
        self.expired: dict[str, Row] = {}
        self.counts: Counter[str] = Counter()
        self.pulls: Counter[str] = Counter()

    def apply(self, row: Row) -> None:
        """Take the next row."""
        where = f"experiment {self.name}, event {row.seq} ({row.kind} {row.id})"
        require(row.seq == len(self.rows) + 1, f"{where}: expected event {len(self.rows) + 1}")
        require(not self.rows or row.time >= self.rows[-1].time, f"{where}: its time is before that of the last event")
        if row.kind == "decided":
            require(row.id not in self.decided, f"{where}: a decision with this id is counted twice")
            self.decided[row.id] = row
            self.open[row.id] = row.payload["arm"]
        elif row.kind in ("rewarded", "expired"):
            arm = self.open.pop(row.id, None)
            require(arm is not None, f"{where}: its decision is not open")
            require(arm == row.payload["arm"], f"{where}: the decision was for arm {arm}")
            (self.rewarded if row.kind == "rewarded" else self.expired)[row.id] = row
            self.pulls[arm] += row.payload.get("value") is not None
        elif row.kind == "late":
            known = row.id in self.decided and row.id not in self.open and row.id not in self.rewarded
            require(known, f"{where}: its decision is not known, is open, or has a reward")
            self.rewarded[row.id] = row
        else:
            require(row.kind in ("created", "upgraded"), f"{where}: nobody asked for this kind of event")
        self.counts[row.kind] += 1
        self.rows.append(row)

    def shown(self) -> dict[str, int]:
        """Return the counts in the form of GET experiments/{name}."""
        return {
            "decisions": self.counts["decided"],
            "rewards": self.counts["rewarded"],
            "late": self.counts["late"],
            "expired": self.counts["expired"],
            "open": len(self.open),
        }


class Evidence(Protocol):
    """A store as it is at one moment, read without code of the service."""

    def heads(self) -> dict[str, tuple[int, int]]:
        """Return the number and the head of each experiment."""

    def rows(self, number: int, after: int = 0) -> Iterator[Row]:
        """Yield the events of an experiment after a number."""

    def raw(self, number: int, up_to: int) -> list[tuple[Any, ...]]:
        """Return the events of an experiment as they are stored."""

    def check_integrity(self) -> None:
        """Let the database check itself."""

    def reader(self) -> Reader:
        """Return the service's own reader of the same data, for folds."""


class Database:
    """A copy of the files of a store, read with Python's own SQLite."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path)

    def heads(self) -> dict[str, tuple[int, int]]:
        """Return the number and the head of each experiment."""
        return {
            name: (number, head) for number, name, head in self._db.execute("SELECT number, name, head FROM experiment")
        }

    def rows(self, number: int, after: int = 0) -> Iterator[Row]:
        """Yield the events of an experiment after a number."""
        query = "SELECT seq, kind, id, payload, time FROM event WHERE experiment = ? AND seq > ? ORDER BY seq"
        for seq, kind, id, payload, time in self._db.execute(query, (number, after)):
            yield Row(seq, kind, id, json.loads(payload), time)

    def raw(self, number: int, up_to: int) -> list[tuple[Any, ...]]:
        """Return the events of an experiment as they are stored."""
        query = "SELECT seq, kind, id, payload, time FROM event WHERE experiment = ? AND seq <= ? ORDER BY seq"
        return self._db.execute(query, (number, up_to)).fetchall()

    def check_integrity(self) -> None:
        """Let SQLite check all pages, indices and rules."""
        found = [row[0] for row in self._db.execute("PRAGMA integrity_check")]
        require(found == ["ok"], f"integrity_check of {self.path}: {found[:3]}")

    def reader(self) -> Reader:
        """Return the service's own reader."""
        return SqliteReader(str(self.path))

    def close(self) -> None:
        self._db.close()


def copied(path: Path, folder: Path) -> closing[Database]:
    """Return a copy of a database and of its write-ahead log, for ``with``. So a look does not change what a server will find."""
    folder.mkdir(exist_ok=True)
    target = folder / path.name
    for ending in ("", "-wal", "-shm"):
        Path(f"{target}{ending}").unlink(missing_ok=True)
    for ending in ("", "-wal"):
        if Path(f"{path}{ending}").exists():
            shutil.copyfile(f"{path}{ending}", f"{target}{ending}")
    return closing(Database(target))
