"""What the handlers share: the engine, the keys, the counters, and the work that is done in other threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from robandit.decisions.base import BaseEngine
from robandit.service.access import Keys, Rates
from robandit.service.allocations import Allocations
from robandit.service.explanations import Explanations
from robandit.service.metrics import Metrics
from robandit.service.sessions import Sessions
from robandit.service.studies import Studies
from robandit.storage import Reader, StoredKey
from robandit.storage.base import Change, PutKey, SharedStore, StoredSession

REFRESH = 0.2  # seconds
MOST_ASKING = 100  # calls that wait for a refresh, such as those with a key that nobody knows


class State:
    """The state of a server that is running."""

    def __init__(
        self,
        engine: BaseEngine,
        metrics: Metrics,
        *,
        rate: float | None,
        wall: Callable[[], float],
        tick: Callable[[], float],
    ) -> None:
        self.wall = wall
        """The clock for keys and sessions. Events have the steady one of the engine."""
        self.engine = engine
        self.metrics = metrics
        keys, sessions = engine.store.read(_access)
        self.keys = Keys(keys)
        self.sessions = Sessions(sessions)
        self.rates = Rates(rate, tick)
        self.streams = 0
        """The number of logs that are being read."""
        self.studies = Studies()
        self.explanations = Explanations(engine)
        self.allocations = Allocations(engine)
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed = -REFRESH
        self._asking = 0
        """The number of calls that wait for a refresh."""
        self._reading = asyncio.Lock()
        """One refresh at a time: an older answer must not replace a newer one."""
        self._changes = 0
        """The number of changes of keys and sessions by this server."""

    async def change_access(self, changes: Sequence[Change]) -> None:
        """Store changes of keys and sessions. They hold on this server when it returns."""
        await self.engine.commit(changes)
        for change in changes:
            if isinstance(change, PutKey):
                self.keys.put(change.key)
        self.sessions.apply(changes)
        self._changes += 1

    async def refresh_access(self) -> bool:
        """Learn which keys and sessions other servers have made or ended, at most every `REFRESH` seconds; more calls wait.

        Return whether there may be something new. If the store is away, or too many calls wait already, nobody waits for it.
        """
        if not isinstance(self.engine.store, SharedStore) or self.engine.problem or self._asking >= MOST_ASKING:
            return False
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
        self._asking += 1
        try:
            await asyncio.shield(self._refreshing)
        finally:
            self._asking -= 1
        return True

    async def _refresh(self) -> None:
        async with self._reading:
            await asyncio.sleep(self._refreshed + REFRESH - time.monotonic())
            self._refreshing = None  # whoever comes now waits for the next one: this one may miss what they need
            self._refreshed = time.monotonic()
            known = -1
            while known != self._changes:  # what was read before a change of this server must not undo it
                known = self._changes
                keys, sessions = await asyncio.to_thread(self.engine.store.read, _access)
            self.keys.replace(keys)
            self.sessions.replace(sessions)


def _access(reader: Reader) -> tuple[list[StoredKey], list[StoredSession]]:
    return reader.keys(), reader.sessions()
