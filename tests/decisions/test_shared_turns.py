"""Turns of several experiments: calls that wait are stored together, and no call sees less than it would see alone."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from helpers.amount import amount
from helpers.invalid import raises
from robandit.decisions import replica as replicas
from robandit.decisions.replica import Replica
from robandit.errors import Conflict, CorruptFile, NotFound
from robandit.storage import open_store

NAMES = [f"e{i}" for i in range(12)]
SETTINGS = {
    "arms": ["a", "b"],
    "policy": "EpsilonGreedy(epsilon=0.3)",
    "minimize": False,
    "seed": 3,
    "reward_window": None,
    "on_expiry": "drop",
    "max_open": None,
}


@pytest.fixture(autouse=True)
def without_pulses(monkeypatch):
    monkeypatch.setattr(replicas, "PULSE", 1e6)


@asynccontextmanager
async def running(url, names=NAMES, **options):
    engine = Replica(open_store(url, durability="off"), compile="never", **options)
    try:
        await engine.load()
        for name in names:
            await engine.put(name, "k", lambda experiment: None, **SETTINGS)
        yield engine
    finally:
        await engine.close()


def decide(engine, name, id=None):
    return engine.change(name, lambda experiment: experiment.decide(id), ids=() if id is None else (id,))


def reward(engine, name, id, value):
    return engine.change(name, lambda experiment: experiment.reward(id, value), ids=(id,), closes=True)


async def state(engine, name):
    return await engine.read(name, lambda experiment: (experiment.seq, experiment.snapshot().content))


def test_waiting_calls_share_a_commit(postgres_url):
    async def test():
        commits = []
        async with running(postgres_url, on_commit=lambda done: commits.append(len(done.events))) as engine:
            commits.clear()
            made = await asyncio.gather(*(decide(engine, name) for name in NAMES for _ in range(3)))
            assert sum(commits) == len(made) == 3 * len(NAMES)
            assert len(commits) <= 4  # alone, each experiment would need one
            for name in NAMES:
                assert (await state(engine, name))[0] == 4

    asyncio.run(test())


def test_two_replicas_and_many_experiments(postgres_url):
    """Callers on both replicas repeat each other's calls, in different orders. Each call counts once, and the states are equal."""

    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:

            async def call(engine, names, caller):
                for k in range(amount(5, 50)):
                    for name in names:
                        made = await decide(engine, name, f"{caller}-{k}")
                        await reward(engine, name, made.event.id, float(k))

            await asyncio.gather(
                *(call(one, NAMES, caller) for caller in range(3)),
                *(call(two, NAMES[::-1], caller) for caller in range(3)),
            )
            for name in NAMES:
                first, second = await state(one, name), await state(two, name)
                assert first == second
                assert first[0] == 1 + 2 * 3 * amount(5, 50)

    asyncio.run(test())


def test_rewards_of_decisions_that_were_open_a_moment_ago(postgres_url):
    """The second replica thinks that the decisions are open, so it does not search for them at first."""

    async def test():
        async with running(postgres_url, NAMES[:1]) as one, running(postgres_url, NAMES[:1]) as two:
            for id in "abc":
                await decide(two, "e0", id)
            await reward(one, "e0", "a", 1.0)
            again, twice, other = await asyncio.gather(
                reward(two, "e0", "a", 1.0), reward(two, "e0", "b", 2.0), reward(two, "e0", "b", 2.0)
            )
            assert (again.replayed, twice.replayed, other.replayed) == (True, False, True)
            with raises(Conflict, parameter="value"):
                await reward(two, "e0", "a", 3.0)
            await one.change("e0", one.reset)
            late = await reward(two, "e0", "c", 5.0)
            assert (late.event.kind, late.payload.reason) == ("late", "reset")
            with pytest.raises(NotFound):
                await reward(two, "e0", "never made", 1.0)
            assert await state(one, "e0") == await state(two, "e0")

    asyncio.run(test())


def test_a_damaged_experiment_does_not_concern_the_others(postgres_url, monkeypatch):
    async def test():
        async with running(postgres_url) as one, running(postgres_url) as two:
            for name in NAMES:
                await decide(one, name)
            damaged = two.experiments["e5"]

            def fail(event):
                raise CorruptFile("damaged")

            monkeypatch.setattr(damaged, "apply", fail)
            made = await asyncio.gather(*(decide(two, name) for name in NAMES), return_exceptions=True)
            for name, each in zip(NAMES, made, strict=True):
                assert isinstance(each, CorruptFile) if name == "e5" else each.event.seq == 3

    asyncio.run(test())


def test_an_experiment_that_others_keep_does_not_stop_the_rest(postgres_url):
    """A turn of one experiment is kept elsewhere. Calls of the others are answered meanwhile, and its own afterwards."""

    async def test():
        async with running(postgres_url) as engine:
            store = open_store(postgres_url, durability="off")
            turn = store.turn(engine.experiments["e0"].number, 1, [])
            waiting = asyncio.create_task(decide(engine, "e0"))
            await asyncio.sleep(2 * replicas.SLOW)
            made = await asyncio.wait_for(asyncio.gather(*(decide(engine, name) for name in NAMES[1:])), 60)
            assert [each.event.seq for each in made] == [2] * len(made)
            assert not waiting.done()
            turn.cancel()
            assert (await waiting).event.seq == 2
            store.close()

    asyncio.run(test())
