"""The engine with a store of SQLite: loading, snapshots, damaged logs, expiry in the background, and removed experiments."""

import asyncio
import hashlib
import random
from contextlib import contextmanager

import apsw
import msgspec
import pytest

from helpers.engines import SETTINGS
from helpers.engines import running_engine as running
from helpers.invalid import raises
from helpers.serving import Clock
from helpers.stores import everything, opened
from robandit.decisions import engine as engines
from robandit.decisions import experiment as experiments
from robandit.decisions import restoring
from robandit.decisions.engine import outcome_of
from robandit.decisions.events import payload_of
from robandit.errors import BrokenState, Conflict, CorruptFile, InvalidInput, NotFound, Overloaded, StoreError
from robandit.live import saving
from robandit.storage.base import Snapshot


@pytest.fixture
def path(tmp_path):
    return tmp_path / "robandit.db"


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


async def play(engine, name="e", count=10, seed=1):
    rng = random.Random(seed)
    experiment = engine.find(name)
    for k in range(count):
        made = experiment.decide(f"{name} {experiment.seq}" if k % 2 else None)
        if k % 3:
            experiment.reward(made.event.id, rng.gauss(0.0, 1.0))
    await engine.settled()
    return experiment.snapshot().content


@contextmanager
def database(path):
    db = apsw.Connection(str(path))
    try:
        yield db
    finally:
        db.close()


def state_of(path, name="e", **options):
    """Return the state that an engine loads, and the event after which it read the log."""

    async def load():
        after = []
        async with running(path, load=False, kill=True, **options) as engine:
            events = engine.reader.events

            def recording(number, seq=0, most=1000):
                after.append(seq)
                return events(number, seq, most)

            engine.reader.events = recording
            await engine.load()
            return engine.find(name).snapshot().content, after[0] if after else None

    return run(load())


# --- loading and snapshots ----------------------------------------------------------------------------------------------------


def lived(path, *, snapshot_every=50_000, kill=True, rounds=4):
    """Play an experiment in several lives, and return its last state."""

    async def live():
        async with running(path, kill=kill, snapshot_every=snapshot_every) as engine:
            if "e" not in engine.experiments:
                engine.create("e", **SETTINGS)
            return await play(engine, count=20)

    return [run(live()) for _ in range(rounds)][-1]


def test_an_experiment_is_loaded_from_its_log(path):
    expected = lived(path)
    assert state_of(path) == (expected, 0)
    with opened(f"sqlite:{path}") as store:
        assert everything(store)["snapshots"] == [[]]


def test_a_stopped_engine_leaves_a_snapshot(path):
    expected = lived(path, kill=False)
    with opened(f"sqlite:{path}") as store:
        found = everything(store)
    head = found["experiments"][0].head
    assert found["snapshots"][0][0][0] == head
    assert len(found["snapshots"][0]) == 2
    assert state_of(path) == (expected, None)  # nothing is left to read


def test_no_snapshot_is_taken_of_a_broken_bandit(path):
    """Its state may be half changed. Other experiments are stored, and the log restores this one."""

    async def main():
        async with running(path, snapshot_every=5) as engine:
            for name in ("e", "f"):
                engine.create(name, **SETTINGS)
            await play(engine)
            with pytest.raises(BrokenState):
                engine.find("e").bandit._engine.refuse(IndexError("index 9 is out of bounds"))
            with pytest.raises(BrokenState):
                engine.find("e").decide()
            return engine.find("e").seq, await play(engine, "f")

    seq, other = run(main())
    assert state_of(path, "f")[0] == other

    async def again():
        async with running(path) as engine:
            assert engine.find("e").seq == seq
            await play(engine)

    run(again())


def test_a_snapshot_is_stored_with_its_event(path):
    expected = lived(path, snapshot_every=30)
    with opened(f"sqlite:{path}") as store:
        found = everything(store)
    head, kept = found["experiments"][0].head, [seq for seq, _ in found["snapshots"][0]]
    assert len(kept) == 2
    assert 0 < head - kept[0] < 30
    assert kept[0] - kept[1] == 30
    assert state_of(path) == (expected, kept[0])


@pytest.mark.parametrize("damaged", ["flipped", "newer format", "newer bandit", "other content", "empty"])
@pytest.mark.parametrize("how_many", [1, 2])
def test_damaged_and_newer_snapshots_are_skipped(path, damaged, how_many, monkeypatch):
    expected = lived(path, snapshot_every=30)
    with opened(f"sqlite:{path}") as store:
        kept = everything(store)["snapshots"][0]
        for seq, content in kept[:how_many]:
            if damaged == "newer bandit":
                saved = msgspec.msgpack.decode(content[36:], type=experiments._Saved)
                newer = bytearray(saved.bandit)
                assert int.from_bytes(newer[8:12], "big") == saving.FORMAT_VERSION
                newer[11] += 1
                saved.bandit = bytes(newer)
                spoiled = sealed(msgspec.msgpack.encode(saved))
            elif damaged == "other content":
                spoiled = sealed(msgspec.msgpack.encode([1, 2, 3]))
            else:
                spoiled = {"flipped": content[:-1] + b"?", "newer format": b"\2" + content[1:], "empty": b""}[damaged]
            store.commit((), [Snapshot(1, seq, spoiled)])
    assert state_of(path) == (expected, kept[1][0] if how_many == 1 else 0)


def sealed(body):
    return experiments.SNAPSHOT_FORMAT.to_bytes(4, "little") + hashlib.sha256(body).digest() + body


def test_the_next_snapshot_replaces_a_damaged_one(path):
    lived(path, kill=False)
    with opened(f"sqlite:{path}") as store:
        (seq, _), *_ = everything(store)["snapshots"][0]
        store.commit((), [Snapshot(1, seq, b"damaged")])
    expected = lived(path, kill=False, rounds=1)
    assert state_of(path) == (expected, None)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM event WHERE seq = 40", "event 40 of experiment 'e' is missing: restore a backup"),
        ("DELETE FROM event WHERE seq = 1", "event 1 of experiment 'e' is missing: restore a backup"),
        ("DELETE FROM event WHERE seq > 100", "event 101 of experiment 'e' is missing: restore a backup"),
        ("UPDATE event SET payload = '{' WHERE seq = 40", "event 40 of experiment 1 is damaged"),
        ("UPDATE event SET kind = 'later' WHERE seq = 40", "event 40 of experiment 1 is of the unknown kind 'later'"),
        ("UPDATE event SET payload = replace(payload, '\"a\"', '\"x\"') WHERE seq = 2", "event 2 of experiment 'e' does not fit"),
    ],
)  # fmt: skip
def test_a_damaged_log_is_refused_by_name(path, statement, message):
    lived(path)
    with database(path) as db:
        db.execute(statement)
    with pytest.raises(CorruptFile, match=message):
        state_of(path)


def test_events_before_the_newest_snapshot_are_not_needed(path):
    expected = lived(path, snapshot_every=30)
    with database(path) as db:
        db.execute("DELETE FROM event WHERE seq < 60")
    assert state_of(path)[0] == expected


def test_another_version_is_recorded_when_it_loads(path, monkeypatch):
    lived(path, kill=False, rounds=1)
    monkeypatch.setattr(experiments, "__version__", "99.1")
    for _ in range(2):
        lived(path, kill=False, rounds=1)
    with opened(f"sqlite:{path}") as store:
        upgrades = [payload_of(event) for event in everything(store)["events"][0] if event.kind == "upgraded"]
    assert [each.version for each in upgrades] == ["99.1"]


def test_other_tasks_have_a_turn_while_a_log_is_loaded(path, monkeypatch):
    monkeypatch.setattr(restoring, "EVENTS_AT_ONCE", 10)
    lived(path, rounds=2)

    async def test():
        async with running(path, load=False) as engine:
            loading, seen = asyncio.ensure_future(engine.load()), set()
            assert (engine.progress, engine.loaded) == ("starting", False)
            while not loading.done():
                await asyncio.sleep(0)
                seen.add((engine.progress, engine.loaded))
            assert seen == {("loading experiment 1 of 1", False), ("ready", True)}

    run(test())


# --- experiments --------------------------------------------------------------------------------------------------------------


def test_creating_again(path):
    async def test():
        async with running(path) as engine:
            first, made = engine.create("e", **SETTINGS)
            assert made
            assert engine.create("e", **SETTINGS) == (first, False)
            with pytest.raises(
                Conflict, match=r"experiment 'e' exists with other settings \(minimize is false, not true\): use"
            ):
                engine.create("e", **SETTINGS | {"minimize": True})
            with pytest.raises(Conflict, match=r"\(policy is \".*\", not \"UniINF.*\"\): use"):
                engine.create("e", **SETTINGS | {"policy": "UniINF"})
            with pytest.raises(InvalidInput):
                engine.create("e/f", **SETTINGS)
            with pytest.raises(InvalidInput):
                engine.create("f", **SETTINGS | {"policy": "HTINF()"})
            with raises(NotFound, code="unknown-experiment"):
                engine.find("f")
            unseeded = engine.create("g", **SETTINGS | {"seed": None})[0]
            assert engine.create("g", **SETTINGS | {"seed": None}) == (unseeded, False)
        async with running(path) as engine:
            assert list(engine.experiments) == ["e", "g"]
            assert not engine.create("e", **SETTINGS)[1]
            assert not engine.create("g", **SETTINGS | {"seed": None})[1]
            assert engine.find("g").settings == unseeded.settings

    run(test())


def test_a_removed_experiment_may_be_created_anew(path):
    async def first():
        async with running(path) as engine:
            engine.create("e", **SETTINGS)
            await play(engine)
            engine.find("e").decide("mine")
            engine.remove("e")  # in the same group as the decision
            engine.create("e", **SETTINGS | {"arms": ["x", "y"]})
            made = engine.find("e").decide("mine")
            assert (made.payload.arm, made.replayed) == ("x", False)
            await engine.settled()
            assert engine.failure is None
            assert engine.find("e").number == 2
            return engine.find("e").snapshot().content

    async def second():
        async with running(path) as engine:
            engine.remove("e")
            await engine.settled()
        async with running(path) as engine:
            assert engine.experiments == {}
            assert engine.create("e", **SETTINGS)[0].number == 3

    state = run(first())
    assert state_of(path) == (state, None)
    run(second())


def test_a_reset_starts_a_new_epoch_with_a_snapshot(path):
    async def test():
        async with running(path, kill=True, snapshot_every=10) as engine:
            engine.create("e", **SETTINGS)
            await play(engine)
            made = engine.reset(engine.find("e"))
            await engine.settled()
            assert engine.find("e").epoch == 1
            return made.event.seq, engine.find("e").snapshot().content

    seq, state = run(test())
    with opened(f"sqlite:{path}") as store:
        found = everything(store)
        assert found["experiments"][0].epoch == 1
        assert [each for each, _ in found["snapshots"][0]] == [seq]
    assert state_of(path) == (state, None)
    with opened(f"sqlite:{path}") as store:
        store.commit((), [Snapshot(1, seq, b"damaged")])
    assert state_of(path) == (state, 0)


# --- commits ------------------------------------------------------------------------------------------------------------------


def test_an_event_is_recent_until_it_is_stored(path):
    async def test():
        async with running(path) as engine:
            experiment, _ = engine.create("e", **SETTINGS)
            made = experiment.decide("mine")
            assert set(experiment.recent) == {("created", "1"), ("decided", "mine")}
            again = experiment.decide("mine")
            assert again.replayed
            assert engine.reader.find(1, "decided", "mine") is None
            repeated = await engine.change(
                "e", lambda seen: seen.decide("mine")
            )  # a repetition waits for the first one
            assert repeated.replayed
            assert engine.reader.find(1, "decided", "mine") == made.event
            assert experiment.recent == {}
            assert experiment.decide("mine").event == made.event
            assert outcome_of(again) == "replayed"
            assert outcome_of(made) == "applied"

    run(test())


def test_too_many_events_wait(path):
    async def test():
        async with running(path, most_waiting=5) as engine:
            experiment, _ = engine.create("e", **SETTINGS)
            for _ in range(4):
                experiment.decide()
            engine.check_room()
            experiment.decide()
            assert engine.waiting == 6
            with pytest.raises(Overloaded, match="6 events wait for the disk: send less, or try again in a second"):
                engine.check_room()
            await engine.settled()
            engine.check_room()

    run(test())


def test_after_an_error_of_the_store_nothing_is_answered(path):
    failures = []

    async def test():
        async with running(path, on_failure=failures.append) as engine:
            experiment, _ = engine.create("e", **SETTINGS)
            await engine.settled()
            stored = experiment.snapshot().content

            def full(events, changes):
                raise StoreError("the disk is full")

            engine.store.commit = full
            waits = (
                engine.change("e", lambda seen: seen.decide("mine")),
                engine.settled(),
                engine.read("e", lambda seen: seen.seq),
                engine.change("e", lambda seen: seen.decide("mine")),
            )
            for wait in waits:
                with pytest.raises(StoreError, match="the disk is full"):
                    await wait
            with pytest.raises(StoreError, match="the disk is full"):
                engine.check_room()
            with pytest.raises(StoreError, match="the disk is full"):
                experiment.decide()
            assert len(failures) == 1
            return stored

    stored = run(test())
    assert state_of(path)[0] == stored


# --- expiry in the background ---------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(engines, "SWEEP_EVERY", 0.005)


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


def test_decisions_expire_without_a_call(path, quick):
    clock = Clock()

    async def test():
        async with running(path, clock=clock) as engine:
            experiment, _ = engine.create("e", **SETTINGS | {"reward_window": 60.0})
            for _ in range(3):
                experiment.decide()
            clock.now += 60.0
            await asyncio.sleep(0.05)
            assert experiment.bandit.open_count == 3
            clock.now += 0.001
            await until(lambda: experiment.bandit.open_count == 0)
            await engine.settled()
            return experiment.snapshot().content

    state = run(test())
    assert state_of(path, clock=clock)[0] == state


def test_decisions_that_became_due_while_no_server_ran_expire_after_the_start(path, quick):
    clock = Clock()

    async def first():
        async with running(path, clock=clock) as engine:
            experiment, _ = engine.create("e", **SETTINGS | {"reward_window": 60.0})
            experiment.decide("mine")
            await engine.settled()

    async def second():
        async with running(path, clock=clock) as engine:
            await until(lambda: engine.find("e").counts["expired"] == 1)
            assert outcome_of(engine.find("e").reward("mine", 1.0)) == "late"

    run(first())
    clock.now += 61.0
    run(second())


def test_decisions_expire_although_the_clock_was_set_back_before_the_start(path, quick):
    """The log is a day ahead of the clock. Time goes on from there, a tenth more slowly."""
    clock = Clock()

    async def first():
        async with running(path, clock=clock) as engine:
            engine.create("e", **SETTINGS | {"reward_window": 60.0})
            await engine.settled()

    async def second():
        async with running(path, clock=clock) as engine:
            experiment = engine.find("e")
            start = experiment.decide().event.time
            assert start == clock.now + 86_400.0
            clock.now += 60.0 / 0.9
            await asyncio.sleep(0.05)
            assert experiment.bandit.open_count == 1
            clock.now += 0.001
            await until(lambda: experiment.bandit.open_count == 0)
            assert experiment.time == pytest.approx(start + 60.0009)

    run(first())
    clock.now -= 86_400.0
    run(second())


def test_an_experiment_that_is_removed_while_its_decisions_expire(path, quick, monkeypatch):
    """Its events must not be stored any more: the store would refuse them, and the process would end."""
    monkeypatch.setattr(experiments, "EXPIRED_AT_ONCE", 1)
    clock = Clock()

    async def test():
        async with running(path, clock=clock) as engine:
            first, _ = engine.create("first", **SETTINGS | {"reward_window": 60.0})
            second, _ = engine.create("second", **SETTINGS | {"reward_window": 60.0})
            for _ in range(5):
                first.decide()
                second.decide()
            await engine.settled()
            clock.now += 61.0
            await until(lambda: first.counts["expired"] == 1)
            engine.remove("first")
            engine.remove("second")
            await asyncio.sleep(0.05)
            await engine.settled()
            assert engine.failure is None
            assert (first.counts["expired"], second.counts["expired"]) == (1, 0)

    run(test())


def test_expiry_waits_while_too_many_events_wait(path, quick):
    clock = Clock()

    async def test():
        async with running(path, clock=clock, most_waiting=-1) as engine:
            experiment, _ = engine.create("e", **SETTINGS | {"reward_window": 60.0})
            experiment.decide()
            clock.now += 61.0
            await asyncio.sleep(0.05)
            assert experiment.bandit.open_count == 1
            engine._most_waiting = 5
            await until(lambda: experiment.bandit.open_count == 0)

    run(test())
