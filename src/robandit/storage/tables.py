"""What both stores say in the same SQL. A parameter is written as ?."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from robandit.storage.base import (
    KEPT_SNAPSHOTS,
    Archive,
    Audit,
    AuditEntry,
    Change,
    Create,
    EndSession,
    Event,
    NewEpoch,
    PutKey,
    PutSession,
    Reader,
    Remove,
    Snapshot,
    StoredExperiment,
    StoredKey,
    StoredSession,
    Tally,
)

KEY = ("id", "hash", "scopes", "experiments", "note", "created", "expires", "revoked")
Statement: TypeAlias = tuple[str, tuple[Any, ...]]


class TableReader(Reader):
    """Reads the tables. Subclasses know how to run a query, and the expressions in which the databases differ."""

    BYTES: str
    """A column of text as bytes."""
    ARM: str
    """The arm in a payload."""
    KIND = "kind"
    """The kind of an event, where the index of ids must not be used."""

    @abstractmethod
    def _read(self, query: str, *parameters: Any) -> list[Any]:
        """Return all rows of a query."""

    @abstractmethod
    def _events(self, condition: str, *parameters: Any) -> list[Event]:
        """Return the events of the experiment that is the first parameter, with another condition."""

    def experiments(self) -> list[StoredExperiment]:
        columns = f"number, name, head, epoch, {self.BYTES.format('settings')}"
        return list(map(StoredExperiment._make, self._read(f"SELECT {columns} FROM experiment ORDER BY number")))

    def find(self, experiment: int, kind: str, id: str) -> Event | None:
        return next(iter(self._events("kind = ? AND id = ?", experiment, kind, id)), None)

    def events(self, experiment: int, after: int = 0, most: int = 1000) -> list[Event]:
        return self._events("seq > ? ORDER BY seq LIMIT ?", experiment, after, most)

    def latest(self, experiment: int, kind: str, last: int, most: int) -> list[Event]:
        condition = f"{self.KIND} = ? AND seq <= ? ORDER BY seq DESC LIMIT ?"
        return self._events(condition, experiment, kind, last, most)

    def tallies(self, experiment: int, after: int, last: int) -> list[Tally]:
        where = "experiment = ? AND seq > ? AND seq <= ?"
        query = f"SELECT kind, {self.ARM}, count(*) FROM event WHERE {where} GROUP BY 1, 2"
        return list(map(Tally._make, self._read(query, experiment, after, last)))

    def snapshots(self, experiment: int) -> list[tuple[int, bytes]]:
        kept = "SELECT seq, content, 1 AS place FROM snapshot WHERE experiment = ?"
        base = "SELECT seq, content, 2 FROM base WHERE experiment = ?"
        found = self._read(f"{kept} UNION ALL {base} ORDER BY place, seq DESC", experiment, experiment)
        return [(seq, content) for seq, content, _ in found]

    def archived(self, experiment: int) -> int:
        rows = self._read("SELECT seq FROM base WHERE experiment = ?", experiment)
        return rows[0][0] if rows else 0

    def keys(self) -> list[StoredKey]:
        return list(map(StoredKey.from_row, self._read(f"SELECT {', '.join(KEY)} FROM key ORDER BY created, id")))

    def sessions(self) -> list[StoredSession]:
        return list(map(StoredSession._make, self._read("SELECT hash, key, ends FROM session ORDER BY ends, hash")))

    def audit(self, after: int = 0, most: int = 1000) -> list[AuditEntry]:
        columns = f"seq, time, key, action, subject, {self.BYTES.format('detail')}"
        rows = self._read(f"SELECT {columns} FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", after, most)
        return list(map(AuditEntry._make, rows))


def in_order(events: Sequence[Event], changes: Sequence[Change]) -> tuple[list[Change], list[Event], list[Change]]:
    """Return the parts of a commit in their order: experiments that are made or removed, events, and other changes.

    What belongs to a removed experiment is left out. Audits come last, because they may lock a row that all share.
    """
    removed = {change.experiment for change in changes if isinstance(change, Remove)}
    first: list[Change] = [
        change for change in changes if isinstance(change, Create | Remove)
    ]  # a name may be used again
    kept = [event for event in events if event[0] not in removed]
    others = [change for change in changes if not isinstance(change, Create | Remove)]
    rest = [change for change in others if getattr(change, "experiment", None) not in removed]
    return first, kept, sorted(rest, key=lambda change: isinstance(change, Audit))


def statements(change: Change) -> list[Statement]:
    """Return the statements that make a change, except an audit."""
    match change:
        case Create(number, name, settings):
            return [("INSERT INTO experiment VALUES (?, ?, 0, 0, ?)", (number, name, settings.decode()))]
        case Remove(number):
            return [
                ("INSERT INTO removed VALUES (?, false)", (number,)),
                ("DELETE FROM snapshot WHERE experiment = ?", (number,)),
                ("DELETE FROM base WHERE experiment = ?", (number,)),
                ("DELETE FROM experiment WHERE number = ?", (number,)),
            ]
        case NewEpoch(number, epoch):
            return [
                ("DELETE FROM snapshot WHERE experiment = ?", (number,)),
                ("UPDATE experiment SET epoch = ? WHERE number = ?", (epoch, number)),
            ]
        case Snapshot(number, seq, content):
            kept = "SELECT seq FROM snapshot WHERE experiment = ? ORDER BY seq DESC LIMIT ?"
            put = "INSERT INTO snapshot VALUES (?, ?, ?) ON CONFLICT (experiment, seq) DO UPDATE SET content = excluded.content"
            drop = f"DELETE FROM snapshot WHERE experiment = ? AND seq NOT IN ({kept})"
            return [(put, (number, seq, content)), (drop, (number, number, KEPT_SNAPSHOTS))]
        case Archive(number, seq, content):
            # In PostgreSQL, the first statement also locks the row, so that the experiment is not removed meanwhile.
            begin = "UPDATE experiment SET head = CASE head WHEN 0 THEN ? ELSE head END WHERE number = ?"
            put = (
                "INSERT INTO base SELECT number, ?, ? FROM experiment WHERE number = ? AND head >= ? "
                "ON CONFLICT (experiment) DO UPDATE SET seq = excluded.seq, content = excluded.content "
                "WHERE excluded.seq >= base.seq"
            )
            base = "SELECT seq FROM base WHERE experiment = ?"
            drop = f"DELETE FROM snapshot WHERE experiment = ? AND seq <= ({base})"
            return [(begin, (seq, number)), (put, (seq, content, number, seq)), (drop, (number, number))]
        case PutKey(key):
            values, fields = ", ".join("?" * len(KEY)), ", ".join(f"{name} = excluded.{name}" for name in KEY[1:])
            return [(f"INSERT INTO key VALUES ({values}) ON CONFLICT (id) DO UPDATE SET {fields}", key.row())]
        case PutSession(session, now):
            return [("DELETE FROM session WHERE ends < ?", (now,)), ("INSERT INTO session VALUES (?, ?, ?)", session)]
        case EndSession(hash):
            return [("DELETE FROM session WHERE hash = ?", (hash,))]
        case Audit():
            raise AssertionError("the stores number their audits themselves")
