"""Group commit: a thread that stores all that is waiting in one commit, while the next group gathers.

A flush to the disk takes milliseconds, and takes no longer for many events than for one. So each group is what came in while the
group before it was being stored. The thread of the event loop submits, and never waits. The other thread takes the next group by
itself, so that the disk does not wait for the event loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from robandit.errors import RobanditError, StoreError
from robandit.storage.base import Change, Event, Remove, Store

IDLE = 1.0  # seconds between two pieces of housekeeping, if there is any to do


class Committed(NamedTuple):
    """A commit: its events, and the seconds that it took."""

    events: list[Event]
    seconds: float


class _Group:
    __slots__ = ("changes", "events", "waiters")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changes: list[Change] = []
        self.waiters: list[asyncio.Future[None]] = []


class GroupCommit:
    """Stores events and changes in the order in which they are submitted. Use it from one event loop.

    What is submitted between two waits of the event loop belongs together, and is stored in one commit. After an error of the store
    nothing more is stored: the state in memory is ahead of the log, so the process must end.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_commit: Callable[[Committed], object] = lambda committed: None,
        on_failure: Callable[[StoreError], object] = lambda error: None,
    ) -> None:
        """Start the thread. The functions are called in the event loop."""
        self._store = store
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._gathering: _Group | None = None
        """What came in during this turn of the event loop."""
        self._sealed: _Group | None = None
        """What came in during earlier turns. The thread takes it when it has stored the group before it."""
        self._lock = threading.Lock()  # of `_sealed`; held for moments
        self._unstored: deque[_Group] = deque()
        """All groups that are not stored yet, oldest first."""
        self._wake = threading.Event()
        self._ending = False
        self.waiting = 0
        """The number of events that are not stored yet."""
        self.waiting_bytes = 0
        """The size of their payloads."""
        self.failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="robandit-commit", daemon=True)
        self._thread.start()

    def submit(self, events: Sequence[Event], changes: Sequence[Change] = ()) -> None:
        """Add to what is stored next. `stored` waits for it."""
        if self.failure is not None:
            raise self.failure
        group = self._gathering
        if group is None:
            group = self._gathering = _Group()
            self._loop.call_soon(self._seal)  # requests that are ready in this turn still join
        group.events.extend(events)
        group.changes.extend(changes)
        self.waiting += len(events)
        self.waiting_bytes += sum(len(event[4]) for event in events)

    def stored(self) -> asyncio.Future[None] | None:
        """Return a future that is done when all that was submitted is stored, or None if it is. It is the caller's own."""
        if self.failure is not None:
            raise self.failure  # a future would never be done
        newest = self._gathering or (self._unstored[-1] if self._unstored else None)
        if newest is None:
            return None
        waiter = self._loop.create_future()
        newest.waiters.append(waiter)
        return waiter

    def _seal(self) -> None:
        """Let the thread take what was gathered. Groups that it has not taken yet become one."""
        group, self._gathering = self._gathering, None
        assert group is not None
        with self._lock:
            earlier = self._sealed
            if earlier is None:
                self._sealed = group
            else:
                earlier.events += group.events
                earlier.changes += group.changes
                earlier.waiters += group.waiters
        if earlier is None:
            self._unstored.append(group)
            self._wake.set()

    def _work(self) -> None:
        tidying, tidied = True, time.monotonic()
        while True:
            self._wake.wait(IDLE if tidying else None)
            with self._lock:
                group, self._sealed = self._sealed, None
                self._wake.clear()
            try:
                if group is not None:
                    start = time.perf_counter()
                    self._store.commit(group.events, group.changes)
                    taken = Committed(group.events, time.perf_counter() - start)
                    self._loop.call_soon_threadsafe(self._done, taken)
                    tidying = tidying or any(isinstance(change, Remove) for change in group.changes)
                elif self._ending:
                    return
                if tidying and time.monotonic() - tidied >= IDLE:  # also while many calls come in
                    tidying, tidied = self._store.tidy(), time.monotonic()
            except Exception as error:
                self._loop.call_soon_threadsafe(self._fail, _as_store_error(error))
                return

    def _done(self, taken: Committed) -> None:
        group = self._unstored.popleft()
        self.waiting -= len(taken.events)
        self.waiting_bytes -= sum(len(event[4]) for event in taken.events)
        self._on_commit(taken)
        for waiter in group.waiters:
            if not waiter.done():  # its call may be cancelled
                waiter.set_result(None)

    def _fail(self, error: StoreError) -> None:
        self.failure = error
        for group in (*self._unstored, *([] if self._gathering is None else [self._gathering])):
            for waiter in group.waiters:
                if not waiter.done():
                    waiter.set_exception(error)
        self._on_failure(error)

    async def close(self) -> None:
        """Store what is waiting, and end the thread."""
        while self.failure is None and (stored := self.stored()) is not None:
            await stored
        self._ending = True
        self._wake.set()
        while self._thread.is_alive():
            await asyncio.sleep(0.002)


def _as_store_error(error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return error
    text = str(error) if isinstance(error, RobanditError) else f"the store failed: {type(error).__name__}: {error}"
    return StoreError(text)
