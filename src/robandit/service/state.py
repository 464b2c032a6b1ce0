"""What the handlers share: the engine, the keys, the counters, and the work that is done in other threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from robandit.decisions.base import BaseEngine
from robandit.service.access import Keys, Rates
from robandit.service.explanations import Explanations
from robandit.service.metrics import Metrics
from robandit.service.sessions import Sessions
from robandit.service.studies import Studies
from robandit.storage import Reader, StoredKey
from robandit.storage.base import SharedStore, StoredSession

REFRESH = 0.2  # seconds


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
        """Read the keys and the sessions."""
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
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed = -REFRESH

    async def refresh_access(self) -> bool:
        """Learn which keys and sessions other servers have made or ended, at most every `REFRESH` seconds; more calls wait.

        Return whether there may be other servers.
        """
        if not isinstance(self.engine.store, SharedStore):
            return False
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
        await asyncio.shield(self._refreshing)
        return True

    async def _refresh(self) -> None:
        try:
            await asyncio.sleep(self._refreshed + REFRESH - time.monotonic())
            self._refreshed = time.monotonic()
            keys, sessions = await asyncio.to_thread(self.engine.store.read, _access)
            self.keys.replace(keys)
            self.sessions.replace(sessions)
        finally:
            self._refreshing = None


def _access(reader: Reader) -> tuple[list[StoredKey], list[StoredSession]]:
    return reader.keys(), reader.sessions()
