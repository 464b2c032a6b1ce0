"""What an experiment knew before an event: the same numbers as the live one had at that moment."""

import asyncio
import random

import pytest

from helpers.amount import amount
from helpers.serving import Clock
from robandit.decisions import restoring
from robandit.decisions.engine import SingleServerEngine
from robandit.decisions.restoring import state_before
from robandit.errors import CorruptFile
from robandit.storage import open_store
from robandit.storage.base import Remove, Snapshot

POLICIES = ["AdaKLUCB()", "UCB1()", "EpsilonGreedy(epsilon=0.3)", "Ada2TINF()", "Restarting(UCB1())"]


def facts(experiment):
    bandit = experiment.bandit
    return experiment.seq, repr(bandit.estimates()), bandit.open, bandit.states, experiment.paused, experiment.epoch


@pytest.fixture
def store(tmp_path):
    store = open_store(f"sqlite:{tmp_path / 'robandit.db'}", durability="off")
    yield store
    store.close()


async def live(store, policy, count=45, **options):
    """Let an experiment live; return the facts before each event that begins a call, and stored numbers of snapshots."""
    rng, clock, then = random.Random(policy), Clock(), {}
    engine = SingleServerEngine(store, clock=clock, compile="never", **options)
    store.close = lambda: None  # the test reads it afterwards
    await engine.load()
    experiment, _ = engine.create(
        "e", arms=["a", "b", "c"], policy=policy, minimize=True, seed=1, reward_window=40.0, on_expiry=9.0, max_open=20
    )
    ids = []
    for k in range(count):
        then[experiment.seq + 1] = facts(experiment)
        clock.now += rng.choice([0.0, 1.0, 5.0])
        kind = rng.choice("dddrrrrca")
        if kind == "d":
            ids.append(experiment.decide(f"client {k}" if k % 2 else None).event.id)
        elif kind == "r" and ids:
            experiment.reward(ids.pop(rng.randrange(len(ids))), rng.gauss(2.0, 1.0))
        elif kind == "c":
            experiment.change_arm("b", rng.choice(["active", "paused"]))
        elif kind == "a" and k > count // 2 and "d" not in experiment.bandit.arms:
            experiment.add_arm("d")
        if k == 2 * count // 3:
            then[experiment.seq + 1] = facts(experiment)
            engine.reset(engine.find("e"))
            ids.clear()
    await engine.settled()
    stored = engine.reader.experiments()[0]
    await engine.close()
    return then, stored


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("options", [{}, {"snapshot_every": 15}], ids=["no snapshots", "snapshots"])
def test_the_same_numbers_as_at_that_moment(store, policy, options):
    then, stored = asyncio.run(live(store, policy, **options))
    reader = store.reader()
    assert len(then) > 25
    assert stored.epoch == 1
    for seq, expected in list(then.items())[:: amount(4, 1)]:
        assert facts(state_before(reader, stored, seq)) == expected
    reader.close()


def test_it_starts_at_the_newest_usable_snapshot_before_the_event(store, monkeypatch):
    _, stored = asyncio.run(live(store, "UCB1()", count=90, snapshot_every=10))
    reader = store.reader()
    (last, content), (older, _) = reader.snapshots(1)
    after = []
    events = reader.events
    monkeypatch.setattr(reader, "events", lambda n, seq, most: (after.append((seq, most)), events(n, seq, most))[1])
    monkeypatch.setattr(restoring, "EVENTS_AT_ONCE", 7)
    assert last == stored.head
    state_before(reader, stored, last + 1)
    assert after == []
    state_before(reader, stored, last)
    assert after[0][0] == older
    after.clear()
    state_before(reader, stored, older)
    assert after == [(seq, min(7, older - 1 - seq)) for seq in range(0, older - 1, 7)]
    expected = state_before(reader, stored, last + 1).snapshot().content
    store.commit((), [Snapshot(1, last, content[:-1] + b"?")])
    after.clear()
    assert state_before(reader, stored, last + 1).snapshot().content == expected
    assert after[0][0] == older
    reader.close()


def test_it_writes_nothing(store):
    then, stored = asyncio.run(live(store, "UCB1()"))
    reader = store.reader()
    before = reader.experiments(), reader.events(1), reader.snapshots(1)
    for seq in then:
        state_before(reader, stored, seq)
    assert (reader.experiments(), reader.events(1), reader.snapshots(1)) == before
    reader.close()


def test_an_experiment_that_was_removed_meanwhile(store):
    _, stored = asyncio.run(live(store, "UCB1()"))
    store.commit((), [Remove(1)])
    while store.tidy():
        pass
    reader = store.reader()
    with pytest.raises(CorruptFile, match="of experiment 'e' is missing"):
        state_before(reader, stored, 5)
    reader.close()
