"""Long batches: other experiments have a turn in between, and nobody sees a batch that has half taken effect."""

import asyncio
import time
from itertools import pairwise

import pytest

from helpers.engines import SETTINGS, running_engine, running_replica
from helpers.stores import opened
from robandit.decisions import pace, replica
from robandit.errors import InvalidInput, Overloaded, StoreUnavailable
from robandit.storage import connections
from robandit.storage.postgres import PostgresTurn

ITEMS = 20
IDS = [f"item {i}" for i in range(ITEMS)]


@pytest.fixture(autouse=True)
def every_item_is_a_slice(monkeypatch):
    monkeypatch.setattr(pace, "SLICE", 0.0)


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request, tmp_path):
    """A function that starts an engine with the experiments e and other."""
    if request.param == "sqlite":
        path = tmp_path / "robandit.db"
        return lambda: running_engine(path)
    url = request.getfixturevalue("postgres_url")
    return lambda: running_replica(url)


async def ready(engine):
    for name in ("e", "other"):
        await engine.put(name, "k", lambda seen: None, **SETTINGS)


def actions(seen_between=None, during=lambda: None):
    """Actions that decide, each of which notes what others did since the last one."""

    def action(id):
        def act(experiment):
            during()
            if seen_between is not None:
                seen_between.append(experiment.seq)
            return experiment.decide(id)

        return act

    return [action(id) for id in IDS]


def ticks(log):
    """Count the turns of the event loop for others."""

    async def tick():
        while True:
            log.append(None)
            await asyncio.sleep(0)

    return asyncio.create_task(tick())


def test_others_have_a_turn_between_the_items(engine):
    async def test():
        async with engine() as running:
            await ready(running)
            log, turns = [], []
            ticking = ticks(log)
            await running.change_all("e", actions(during=lambda: turns.append(len(log))), ids=IDS)
            ticking.cancel()
            return turns

    turns = asyncio.run(test())
    assert all(after > before for before, after in pairwise(turns))


def test_no_other_call_takes_effect_or_looks_between_the_items(engine):
    async def test():
        async with engine() as running:
            await ready(running)
            begun, seqs = asyncio.Event(), []
            batch = asyncio.create_task(running.change_all("e", actions(seqs, begun.set), ids=IDS))
            await begun.wait()
            assert not batch.done()
            calls = [
                running.change("e", lambda seen: seen.decide("single").event.seq, ids=["single"]),
                running.read("e", lambda seen: seen.seq),
                running.put("e", "k", lambda seen: seen.seq, **SETTINGS),
            ]
            tasks = [asyncio.create_task(call) for call in calls]
            experiment = running.experiments["e"]
            await running.still(experiment)
            still = experiment.seq
            made = await batch
            return made, seqs, [await task for task in tasks], still

    made, seqs, (single, read, (put, new)), still = asyncio.run(test())
    assert [each.event.id for each in made] == IDS
    assert [each.event.seq for each in made] == list(range(2, ITEMS + 2))
    assert seqs == list(range(1, ITEMS + 1))
    assert single == ITEMS + 2
    assert min(read, put, still) >= ITEMS + 1
    assert not new


def test_a_call_for_another_experiment_does_not_wait_for_the_batch(tmp_path):
    async def test():
        async with running_engine(tmp_path / "robandit.db") as running:
            await ready(running)
            begun = asyncio.Event()
            batch = asyncio.create_task(running.change_all("e", actions(during=begun.set), ids=IDS))
            await begun.wait()
            made = running.find("other").decide("quick")
            assert made.event.seq == 2
            assert not batch.done()
            await batch

    asyncio.run(test())


def test_errors_stay_at_their_places_and_the_batch_is_one_commit(tmp_path):
    path, commits = tmp_path / "robandit.db", []

    async def test():
        async with running_engine(path, on_commit=lambda made: commits.append(len(made.events))) as running:
            await ready(running)
            commits.clear()
            wrong = InvalidInput("a malformed item")

            def fails(experiment):
                raise KeyError("x")

            given = [*actions(), wrong, fails]
            made = await running.change_all("e", given, ids=IDS)
            assert made[ITEMS] is wrong
            assert isinstance(made[ITEMS + 1], KeyError)
            await running.settled()

    asyncio.run(test())
    assert [events for events in commits if events] == [ITEMS]
    with opened(f"sqlite:{path}") as store:
        assert [event.id for event in store.reader().events(1)][1:] == IDS


def test_what_is_seen_beside_a_batch_is_stored(engine):
    """A page that shows several experiments waits for the end of the batch."""

    async def test():
        async with engine() as running:
            await ready(running)
            begun = asyncio.Event()
            batch = asyncio.create_task(running.change_all("e", actions(during=begun.set), ids=IDS))
            await begun.wait()
            everything = list(running.experiments.values())
            seen = await running.seen(everything, lambda each: each.seq)
            stored = [each.head for each in running.store.read(lambda reader: reader.experiments())]
            await batch
            return seen, stored

    assert asyncio.run(test()) == ([ITEMS + 1, 1], [ITEMS + 1, 1])


def test_calls_for_other_experiments_do_not_wait_for_the_batch(tmp_path):
    async def test():
        async with running_engine(tmp_path / "robandit.db") as running:
            await ready(running)
            begun, go_on, resting = asyncio.Event(), asyncio.Event(), running.slices.rest

            async def rest():
                await resting()
                if begun.is_set():
                    await go_on.wait()

            running.slices.rest = rest
            batch = asyncio.create_task(running.change_all("e", actions(during=begun.set), ids=IDS))
            await begun.wait()
            assert await running.read("other", lambda seen: seen.seq) == 1
            assert (await running.change("other", lambda seen: seen.decide("quick"))).event.seq == 2
            assert (await running.put("third", "k", lambda seen: seen.seq, **SETTINGS))[1]
            await running.settled()
            await running.delete("third", "k")
            await running._expire_due(running.find("e"))
            running.slices.rest = resting
            made = await running.change_all("other", [lambda seen: seen.decide()] * 2, ids=())
            assert [each.event.seq for each in made] == [3, 4]
            assert not batch.done()
            go_on.set()
            await batch

    asyncio.run(asyncio.wait_for(test(), 30))


def test_a_cancelled_batch_is_stored_as_a_whole(tmp_path):
    path = tmp_path / "robandit.db"

    async def test():
        async with running_engine(path) as running:
            await ready(running)
            begun = asyncio.Event()
            batch = asyncio.create_task(running.change_all("e", actions(during=begun.set), ids=IDS))
            await begun.wait()
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch
            await running.change("e", lambda seen: seen.decide("next"))

    asyncio.run(test())
    with opened(f"sqlite:{path}") as store:
        assert [event.id for event in store.reader().events(1)][1:] == [*IDS, "next"]


def test_the_rest_of_a_cancelled_batch_lets_others_act(tmp_path):
    async def test():
        async with running_engine(tmp_path / "robandit.db") as running:
            await ready(running)
            log, turns, begun = [], [], asyncio.Event()

            def during():
                turns.append(len(log))
                begun.set()

            batch = asyncio.create_task(running.change_all("e", actions(during=during), ids=IDS))
            await begun.wait()
            batch.cancel()
            ticking = ticks(log)
            await running.still(running.find("e"))
            ticking.cancel()
            return turns[1:]

    turns = asyncio.run(test())
    assert len(turns) == ITEMS - 1
    assert all(after > before for before, after in pairwise(turns))


def test_a_server_that_ends_gives_up_a_batch_as_a_whole(tmp_path):
    path = tmp_path / "robandit.db"

    async def test():
        async with running_engine(path, snapshot_every=5) as running:
            await ready(running)
            begun = asyncio.Event()
            batch = asyncio.create_task(running.change_all("e", actions(during=begun.set), ids=IDS))
            await begun.wait()
        with pytest.raises(asyncio.CancelledError):
            await batch

    asyncio.run(test())
    with opened(f"sqlite:{path}") as store:
        reader = store.reader()
        assert [event.seq for event in reader.events(1)] == [1]
        assert reader.snapshots(1) == []
        assert [seq for seq, _ in reader.snapshots(2)] == [1]


def test_an_experiment_that_is_removed_after_a_batch_can_be_made_again(tmp_path):
    async def test():
        async with running_engine(tmp_path / "robandit.db") as running:
            await ready(running)
            begun = asyncio.Event()
            batch = asyncio.create_task(running.change_all("e", actions(during=begun.set), ids=IDS))
            await begun.wait()
            removing = asyncio.create_task(running.delete("e", "k"))
            await asyncio.sleep(0)
            made = await running.put("e", "k", lambda seen: seen.seq, **SETTINGS)
            await removing
            assert len(await batch) == ITEMS
            return made

    assert asyncio.run(test()) == (1, True)


def test_one_of_many_batches_acts_in_each_turn_of_the_event_loop(tmp_path):
    async def test():
        async with running_engine(tmp_path / "robandit.db") as running:
            names = [f"e{i}" for i in range(8)]
            for name in names:
                await running.put(name, "k", lambda seen: None, **SETTINGS)
            log, turns = [], []
            ticking = ticks(log)
            act = actions(during=lambda: turns.append(len(log)))
            await asyncio.gather(*(running.change_all(name, act, ids=IDS) for name in names))
            ticking.cancel()
            return turns

    turns = asyncio.run(test())
    assert len(turns) == 8 * ITEMS
    assert len(set(turns)) == len(turns)


def test_errors_of_items_keep_no_frames_unless_they_are_unexpected(tmp_path):
    def refuses(experiment):
        try:
            raise KeyError("first")
        except KeyError as error:
            raise InvalidInput("no") from error

    def breaks(experiment):
        raise KeyError("x")

    async def test():
        async with running_engine(tmp_path / "robandit.db") as running:
            await ready(running)
            return await running.change_all("e", [refuses, breaks], ids=())

    refused, broken = asyncio.run(test())
    assert isinstance(refused, InvalidInput)
    assert (refused.__traceback__, refused.__context__, refused.__cause__) == (None, None, None)
    assert isinstance(broken, KeyError)
    assert broken.__traceback__ is not None  # the log of the server needs it


# --- turns of a shared store ----------------------------------------------------------------------------------------------------


def test_a_long_batch_keeps_its_turn(postgres_url, monkeypatch):
    """The store hears of it again and again, and does not take its turn away."""
    monkeypatch.setattr(replica, "SILENCE", 0.0)
    kept = []
    keep = PostgresTurn.keep
    monkeypatch.setattr(PostgresTurn, "keep", lambda turn: kept.append(keep(turn)))

    async def test():
        async with running_replica(postgres_url) as running:
            await ready(running)
            return await running.change_all("e", actions(), ids=IDS)

    assert [each.event.id for each in asyncio.run(test())] == IDS
    assert len(kept) >= ITEMS


def test_a_batch_notices_at_once_that_its_turn_is_lost(postgres_url, monkeypatch):
    monkeypatch.setattr(replica, "SILENCE", 0.0)
    monkeypatch.setitem(connections._LIMITS, "idle_in_transaction_session_timeout", "'400ms'")
    taken = []

    def slow(experiment):
        taken.append(experiment.seq)
        time.sleep(1.5)
        return experiment.decide()

    async def test():
        async with running_replica(postgres_url) as running:
            await ready(running)
            with pytest.raises(StoreUnavailable):
                await running.change_all("e", [slow] * ITEMS, ids=())
            return await running.read("e", lambda seen: seen.seq)

    assert asyncio.run(test()) == 1
    assert len(taken) == 1


def test_a_batch_that_takes_too_long_is_refused_and_others_go_on(postgres_url, monkeypatch):
    monkeypatch.setattr(replica, "LONGEST", 0.2)

    def slow(experiment):
        time.sleep(0.05)
        return experiment.decide()

    async def test():
        async with running_replica(postgres_url) as running:
            await ready(running)
            calls = [
                running.change("e", lambda seen: seen.decide("before").event.seq, ids=["before"]),
                running.change_all("e", [slow] * ITEMS, ids=()),
                running.change("e", lambda seen: seen.decide("after").event.seq, ids=["after"]),
            ]
            results = await asyncio.gather(*calls, return_exceptions=True)
            return *results, await running.read("e", lambda seen: seen.seq)

    before, refused, after, seq = asyncio.run(test())
    assert (before, after, seq) == (2, 3, 3)
    assert isinstance(refused, Overloaded)
    assert "nothing of it was stored: send fewer items, or wait" in str(refused)


def test_nobody_sees_what_a_refused_batch_has_made(postgres_url, monkeypatch):
    monkeypatch.setattr(replica, "LONGEST", 0.0)

    async def test():
        async with running_replica(postgres_url) as running:
            await ready(running)
            with pytest.raises(Overloaded):
                await running.change_all("e", actions(), ids=IDS)
            return await running.seen(list(running.experiments.values()), lambda each: each.seq)

    assert asyncio.run(test()) == [1, 1]


def test_no_call_joins_a_turn_that_was_used_for_long(postgres_url, monkeypatch):
    """Its answer would wait for the end of the batch."""
    monkeypatch.setattr(replica, "FULL", 0.0)
    commits = []

    async def test():
        async with running_replica(postgres_url, on_commit=lambda made: commits.append(len(made.events))) as running:
            await ready(running)
            commits.clear()
            calls = [running.change_all(name, actions(), ids=IDS) for name in ("e", "other")]
            await asyncio.gather(*calls)

    asyncio.run(test())
    assert commits == [ITEMS, ITEMS]
