"""The contract of a store.

A store keeps the log of every experiment. The log is the truth: all else is derived from it, or describes it.

Durable
    When `Store.commit` returns, everything in it survives a crash of the process and of the machine.
Atomic
    A commit is stored as a whole or not at all, also if the process is killed in the middle.
Ordered
    The events of an experiment have the numbers 1, 2, 3, ... A commit whose events do not follow the stored ones is refused, and
    changes nothing. Events are never changed. They are removed only with their experiment, or from the front of its log when the
    state after them is stored in their place (`Archive`).
Unique
    An experiment has at most one event of a kind with an id. A commit that would add a second one is refused, and changes nothing.
Exclusive or shared
    One process at a time has a store open for writing, and another one that tries gets a `StoreError`. To a `SharedStore`, any
    number of processes write. They take turns, and what does not follow the log is refused.
Readable
    A `Reader` sees complete commits only, and every commit that returned before the read began. It never waits for a commit, and no
    commit waits for it. Each reader belongs to one thread.
Exact
    Texts, bytes and 64-bit floats come back as they were stored. (A time of -0.0 may come back as 0.0.)
Versioned
    A store of an older schema is brought forward when it is opened. A newer one is refused by name (`NewerFile`), a damaged one
    too (`CorruptFile`). A copy that was not completed is refused until it is removed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from robandit.errors import StoreError, StoreUnavailable

T = TypeVar("T")


class Clash(StoreError):
    """A commit would store a number, a name or an id a second time. Nothing was stored."""


class Unresolved(StoreUnavailable):
    """The connection to a shared store was lost in a commit, and whether it was stored could not be found out."""


class Event(NamedTuple):
    """An event of the log."""

    experiment: int
    """The number of the experiment."""
    seq: int
    """The number of the event in its experiment, from 1."""
    kind: str
    id: str
    payload: bytes
    """JSON in UTF-8."""
    time: float
    """Seconds since 1970. The times of an experiment never decrease."""


class Tally(NamedTuple):
    """The number of events of one kind and one arm."""

    kind: str
    arm: str | None
    """The field ``arm`` of their payloads."""
    number: int


class StoredExperiment(NamedTuple):
    """An experiment: its number, which is never used again, its name, and the number of its last event."""

    number: int
    name: str
    head: int
    epoch: int
    """The number of resets."""
    settings: bytes
    """JSON in UTF-8."""


class StoredKey(NamedTuple):
    """An access key. Its secret part is not stored, only the SHA-256 hash of it."""

    id: str
    hash: bytes
    scopes: tuple[str, ...]
    experiments: tuple[str, ...] | None
    """The experiments that it is limited to, or None for all."""
    note: str
    created: float
    expires: float | None
    revoked: float | None

    def row(self) -> tuple[Any, ...]:
        """Return the columns of a database: lists become JSON."""
        limited = None if self.experiments is None else json.dumps(self.experiments)
        return (*self[:2], json.dumps(self.scopes), limited, *self[4:])

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> StoredKey:
        """Return the key in the columns that `row` made."""
        id, hash, scopes, experiments, *rest = row
        limited = None if experiments is None else tuple(json.loads(experiments))
        return cls(id, hash, tuple(json.loads(scopes)), limited, *rest)


class StoredSession(NamedTuple):
    """A person who is logged in to the dashboard. The token in the browser is not stored, only the SHA-256 hash of it."""

    hash: bytes
    key: str
    """The id of the key."""
    ends: float


class AuditEntry(NamedTuple):
    """An action of an administrator."""

    seq: int
    """The number of the entry, from 1. The store assigns it."""
    time: float
    key: str
    """The id of the key that was used, or a name in brackets for actions without one."""
    action: str
    subject: str
    """The experiment or the key that was changed."""
    detail: bytes
    """JSON in UTF-8."""


class Create(NamedTuple):
    """A change: a new experiment, without events."""

    number: int
    name: str
    settings: bytes


class Remove(NamedTuple):
    """A change: remove an experiment with its events and snapshots."""

    experiment: int


class NewEpoch(NamedTuple):
    """A change: an experiment was reset. Its snapshots are removed."""

    experiment: int
    epoch: int


class Snapshot(NamedTuple):
    """A change: the state of an experiment after its event ``seq``. The two newest ones are kept."""

    experiment: int
    seq: int
    content: bytes


class Archive(NamedTuple):
    """A change: the state of an experiment after its event ``seq`` is its base, which stands in place of the events up to it.

    `Store.tidy` then removes these events, in steps. The log of an experiment without events continues after the base. A base that
    is older than the present one, or beyond the log, is ignored.
    """

    experiment: int
    seq: int
    content: bytes


class PutKey(NamedTuple):
    """A change: a new key, or new fields of a known one."""

    key: StoredKey


class PutSession(NamedTuple):
    """A change: a person has logged in to the dashboard. Sessions that ended before ``now`` are removed."""

    session: StoredSession
    now: float


class EndSession(NamedTuple):
    """A change: a session has ended."""

    hash: bytes


class Audit(NamedTuple):
    """A change: an action of an administrator."""

    time: float
    key: str
    action: str
    subject: str
    detail: bytes


Change: TypeAlias = Create | Remove | NewEpoch | Snapshot | Archive | PutKey | PutSession | EndSession | Audit
KEPT_SNAPSHOTS = 2


class Reader(ABC):
    """Reads a store, in one thread."""

    @abstractmethod
    def experiments(self) -> list[StoredExperiment]:
        """Return all experiments, in the order of their numbers."""

    @abstractmethod
    def find(self, experiment: int, kind: str, id: str) -> Event | None:
        """Return the event of a kind with an id, or None."""

    @abstractmethod
    def events(self, experiment: int, after: int = 0, most: int = 1000) -> list[Event]:
        """Return the next events after a number, in order, at most this many."""

    @abstractmethod
    def latest(self, experiment: int, kind: str, last: int, most: int) -> list[Event]:
        """Return the newest events of a kind up to event ``last``, the newest first, at most this many."""

    @abstractmethod
    def tallies(self, experiment: int, after: int, last: int) -> list[Tally]:
        """Count the events after one number and up to another, by kind and arm."""

    def first_since(self, experiment: int, time: float, head: int) -> int:
        """Return the number of the first event at or after a time; ``head`` + 1 if all are older. Times never decrease."""
        oldest = self.events(experiment, 0, 1)  # those before it may be archived
        low, high = oldest[0].seq if oldest else head + 1, head + 1
        while low < high:
            middle = (low + high) // 2
            found = self.events(experiment, middle - 1, 1)
            if found and found[0].time >= time:
                high = middle
            else:  # older, or removed meanwhile
                low = middle + 1
        return low

    @abstractmethod
    def snapshots(self, experiment: int) -> list[tuple[int, bytes]]:
        """Return the kept snapshots with the numbers of their last events, the newest first. The base, if any, is the last one."""

    @abstractmethod
    def archived(self, experiment: int) -> int:
        """Return the number of the last event in the base of an experiment; 0 if it has none."""

    @abstractmethod
    def keys(self) -> list[StoredKey]:
        """Return all keys, also expired and revoked ones, in the order in which they were made."""

    @abstractmethod
    def sessions(self) -> list[StoredSession]:
        """Return the sessions of the dashboard, the one that ends first first."""

    @abstractmethod
    def audit(self, after: int = 0, most: int = 1000) -> list[AuditEntry]:
        """Return the next entries of the audit log after a number, in order, at most this many."""

    @abstractmethod
    def close(self) -> None:
        """Close the reader. It cannot be used afterwards."""


class Pulse(NamedTuple):
    """What a process that shares a store must know of the others, again and again."""

    catalogue: int
    """A number that grows with every change of experiments, keys and sessions."""
    heads: dict[int, int]
    """The number of the last event of each experiment."""
    time: float
    """The time of the store, in seconds since 1970."""


class Asked(NamedTuple):
    """What somebody wants who asks for a turn: the events after a number, and those with these ids."""

    experiment: int
    after: int
    ids: Sequence[str]


class Found(NamedTuple):
    """What a turn has found of an experiment."""

    head: int | None
    """The number of the last event; None if the experiment was removed."""
    snapshot: int
    """The number of the last event in its newest snapshot; 0 without one."""
    tail: list[Event]
    """The next events after the number that the caller knew, at most `MOST_TAIL`."""
    known: list[Event]
    """All events with the ids that the caller asked for."""


class Turn(ABC):
    """The right to append to the log of an experiment of a shared store, until `commit` or `cancel`.

    It may include other experiments. Any thread may call it, one at a time.
    """

    ended: bool
    """Whether `commit` or `cancel` was called."""
    time: float
    """The time of the store when the turn began, in seconds since 1970. All processes see the same clock."""
    found: dict[int, Found]
    """The experiment, and the other ones that are included: those that nobody else had a turn of."""

    @abstractmethod
    def commit(self, events: Sequence[Event], changes: Sequence[Change]) -> None:
        """Store events and changes, and end the turn. See `Store.commit`.

        Raises `StoreUnavailable` if nothing was stored. Raises `Unresolved` if that could not be found out.
        """

    @abstractmethod
    def keep(self) -> None:
        """Say that the turn is still used: the store ends one of which it hears nothing. Raises `StoreUnavailable` if it has."""

    @abstractmethod
    def cancel(self) -> None:
        """End the turn, unless it has ended. Nothing more is stored."""


MOST_TAIL = 1_000


class Store(ABC):
    """A store that is open for writing. See the promises at the top of this file."""

    @abstractmethod
    def commit(self, events: Sequence[Event], changes: Sequence[Change]) -> None:
        """Store events and changes. Experiments are made and removed first, then the events follow, then the other changes.

        What belongs to an experiment that is removed in the same commit is not stored. Raises `StoreError` if something cannot be
        stored, or breaks a promise. Only one thread may call it, always the same one.
        """

    @abstractmethod
    def reader(self) -> Reader:
        """Return a new reader, for the thread that calls it."""

    def commit_first_key(self, changes: Sequence[Change]) -> bool:
        """Store changes if there are no keys yet. Return whether they were stored."""
        if self.read(lambda reader: reader.keys()):
            return False
        self.commit((), changes)
        return True

    def read(self, look: Callable[[Reader], T]) -> T:
        """Return what a function finds with a reader that is opened for it, in any thread."""
        reader = self.reader()
        try:
            return look(reader)
        finally:
            reader.close()

    @abstractmethod
    def next_number(self) -> int:
        """Return the number for the next experiment: larger than all that were ever used."""

    @abstractmethod
    def tidy(self) -> bool:
        """Remove some events of removed experiments, or some that are archived. Return whether more is left to do."""

    @abstractmethod
    def frozen(self) -> AbstractContextManager[Reader]:
        """Return a context in which nobody writes to the store, with a reader of it.

        Raises `StoreError` if another process has the store open.
        """

    @abstractmethod
    def publish(self) -> None:
        """Let servers open a store that was opened as a new one, see `open_store`."""

    @abstractmethod
    def close(self) -> None:
        """Close the store, and let other processes open it."""

    @staticmethod
    @abstractmethod
    def backup(location: str, target: Path) -> None:
        """Copy the store at a location into a new file while a server may be writing to it, and check the copy."""


class SharedStore(Store):
    """A store to which several processes write at the same time."""

    @abstractmethod
    def turn(self, experiment: int, after: int, ids: Sequence[str], others: Sequence[Asked] = ()) -> Turn:
        """Wait for the turn of an experiment, and read the events after a number, and those with these ids.

        The turn includes those of the other experiments that nobody else has a turn of at that moment. Raises
        `StoreUnavailable` if another process does not end its turn in time.
        """

    @abstractmethod
    def tail(self, experiment: int, after: int) -> tuple[int | None, list[Event]]:
        """Return the number of the last event, and the next events after a number, at most `MOST_TAIL`, without a turn.

        The number is None if the experiment was removed.
        """

    @abstractmethod
    def find_name(self, name: str) -> StoredExperiment | None:
        """Return the experiment with a name, or None."""

    @abstractmethod
    def pulse(self) -> Pulse:
        """Return what a process must know of the others."""

    @abstractmethod
    def abort_stuck(self) -> None:
        """Let calls in other threads fail that have waited for the store for too long."""
