"""Keys and sessions that several servers change, read while one of them changes."""

import asyncio
import threading
from unittest.mock import Mock

from helpers.stores import key
from robandit.service.metrics import Metrics
from robandit.service.state import State
from robandit.storage.base import PutKey, SharedStore


class Engine:
    """An engine with one table of keys, whose reads can be held after they have looked."""

    def __init__(self):
        self.stored = {"k": key("k")}
        self.looked, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.reads = 0
        self.store = Mock(spec=SharedStore)
        self.store.read = self._read
        self.problem = ""

    def _read(self, look):
        found = list(self.stored.values()), []
        self.reads += 1
        self.looked.set()
        assert self.go.wait(60)
        return found

    async def commit(self, changes):
        self.stored.update((change.key.id, change.key) for change in changes)


def run(test):
    async def begin():
        engine = Engine()
        await test(engine, State(engine, Metrics(), rate=None, wall=lambda: 5.0, tick=lambda: 0.0))

    asyncio.run(begin())


async def held_refresh(engine, state):
    """Return a refresh that has read the keys, and does not go on."""
    engine.looked.clear()
    engine.go.clear()
    refreshing = asyncio.create_task(state.refresh_access())
    await asyncio.to_thread(engine.looked.wait, 60)
    return refreshing


def test_an_older_read_does_not_bring_a_revoked_key_back():
    async def test(engine, state):
        refreshing = await held_refresh(engine, state)
        await state.change_access([PutKey(key("k", revoked=4.0))])
        assert state.keys.valid("k", 5.0) is None
        engine.go.set()
        await refreshing
        assert state.keys.valid("k", 5.0) is None

    run(test)


def test_who_asks_during_a_read_waits_for_the_next_one():
    async def test(engine, state):
        refreshing = await held_refresh(engine, state)
        engine.stored["new"] = key("new")  # by another server
        later = asyncio.create_task(state.refresh_access())
        await asyncio.sleep(0)
        engine.go.set()
        await refreshing
        await later
        assert state.keys.valid("new", 5.0) is not None

    run(test)


def test_many_who_ask_at_once_share_a_read():
    async def test(engine, state):
        before = engine.reads
        await asyncio.gather(*(state.refresh_access() for _ in range(100)))
        assert engine.reads - before == 1

    run(test)
