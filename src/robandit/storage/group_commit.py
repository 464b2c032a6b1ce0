"""Group commit: a thread that stores all that is waiting in one commit, while the next group gathers.

A flush to the disk takes milliseconds, and takes no longer for many events than for one. So each group is what came in while the
group before it was being stored. The thread of the event loop submits; it never waits.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from robandit.errors import RobanditError, StoreError
from robandit.storage.base import Change, Event, Store

IDLE = 1.0  # seconds without a group, after which the store may tidy up


class Committed(NamedTuple):
    """What a commit took: the number of its events, and seconds."""

    events: int
    seconds: float


class _Group:
    __slots__ = ("changes", "events", "stored")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.events: list[Event] = []
        self.changes: list[Change] = []
        self.stored: asyncio.Future[None] = loop.create_future()


class GroupCommit:
    """Stores events and changes in the order in which they are submitted. Use it from one event loop.

    After an error of the store nothing more is stored: the state in memory is ahead of the log, so the process must end.
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
        self._group: _Group | None = None
        """The group that gathers. It is handed to the thread at the end of this turn of the event loop."""
        self._handed: _Group | None = None
        """The group that the thread is storing."""
        self._wake = threading.Semaphore(0)
        self.failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="robandit-commit", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of events that are not stored yet."""
        groups = (self._group, self._handed)
        return sum(len(group.events) for group in groups if group is not None)

    def submit(self, events: Iterable[Event], changes: Iterable[Change] = ()) -> asyncio.Future[None]:
        """Add to the gathering group. Return the future that is done when the group is stored."""
        if self.failure is not None:
            raise self.failure
        group = self._group
        if group is None:
            group = self._group = _Group(self._loop)
            if self._handed is None:
                self._loop.call_soon(self._hand_over)  # requests that are ready in this turn still join
        group.events.extend(events)
        group.changes.extend(changes)
        return group.stored

    def settled(self) -> asyncio.Future[None] | None:
        """Return the future that is done when all that was submitted is stored, or None if it is."""
        group = self._group or self._handed
        return None if group is None else group.stored

    def _hand_over(self) -> None:
        if self._handed is None and self._group is not None:
            self._handed, self._group = self._group, None
            self._wake.release()

    def _work(self) -> None:
        tidying = True
        while True:
            idle = not self._wake.acquire(timeout=IDLE if tidying else None)
            group = self._handed
            try:
                if idle:
                    tidying = self._store.tidy()
                    continue
                if group is None:
                    return
                start = time.perf_counter()
                self._store.commit(group.events, group.changes)
                tidying = True
                taken = Committed(len(group.events), time.perf_counter() - start)
                self._loop.call_soon_threadsafe(self._done, group, taken)
            except Exception as error:
                self._loop.call_soon_threadsafe(self._fail, _as_store_error(error))
                return

    def _done(self, group: _Group, taken: Committed) -> None:
        self._handed = None
        self._hand_over()
        group.stored.set_result(None)
        self._on_commit(taken)

    def _fail(self, error: StoreError) -> None:
        self.failure = error
        for group in (self._handed, self._group):
            if group is not None and not group.stored.done():
                group.stored.set_exception(error)
                group.stored.exception()  # a group that nobody waits for is not an error of its own
        self._on_failure(error)

    async def close(self) -> None:
        """Store what is waiting, and end the thread."""
        while self.failure is None and (stored := self.settled()) is not None:
            await stored
        self._wake.release()
        while self._thread.is_alive():
            await asyncio.sleep(0.002)


def _as_store_error(error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return error
    text = str(error) if isinstance(error, RobanditError) else f"the store failed: {type(error).__name__}: {error}"
    return StoreError(text)
