"""Engines of the decision service, without HTTP, for a block: one on SQLite, and one of several on PostgreSQL."""

from contextlib import asynccontextmanager

from helpers.serving import Clock
from robandit.decisions.engine import SingleServerEngine
from robandit.decisions.replica import Replica
from robandit.storage import open_store

SETTINGS = {
    "arms": ["a", "b", "c"],
    "policy": "UCB1()",
    "minimize": False,
    "seed": 5,
    "reward_window": None,
    "on_expiry": "drop",
    "max_open": None,
}


@asynccontextmanager
async def running_engine(path, *, load=True, kill=False, **options):
    """An engine. With ``kill``, it ends without its last snapshots."""
    store = open_store(f"sqlite:{path}", durability="off")
    options.setdefault("clock", Clock())
    engine = SingleServerEngine(store, compile="never", **options)
    try:
        if load:
            await engine.load()
        yield engine
    finally:
        if kill:
            engine.loaded = False
        if engine._sweeper is not None:
            engine._sweeper.cancel()
        await engine.close()


@asynccontextmanager
async def running_replica(url, **options):
    """An engine that shares a database."""
    engine = Replica(open_store(url, durability="off"), **{"compile": "never"} | options)
    try:
        await engine.load()
        yield engine
    finally:
        await engine.close()
