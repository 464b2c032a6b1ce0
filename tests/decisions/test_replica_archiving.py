"""Servers that share a store while its events are archived: their states do not change, and they do not notice."""

import asyncio
import math

import pytest

from helpers.invalid import raises
from helpers.stores import all_events, reading
from robandit.decisions.archiving import archive
from robandit.decisions.replica import Replica
from robandit.errors import Conflict
from robandit.storage import open_store

SETTINGS = {"arms": ["a", "b"], "policy": "UCB1()", "minimize": False, "seed": 1, "reward_window": None}
SETTINGS |= {"on_expiry": "drop", "max_open": None}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive"


def archive_all(location, folder):
    store = open_store(location)
    try:
        return [file for _, file in archive(store, folder, math.inf)]
    finally:
        store.close()


async def replica(location):
    made = Replica(open_store(location), compile="never")
    await made.load()
    return made


async def play(engine, ids, learn=True):
    for id in ids:
        await engine.change("e", lambda seen, id=id: seen.decide(id), ids=[id])
        if learn:
            await engine.change("e", lambda seen, id=id: seen.reward(id, float(len(id))), ids=[id])


async def state(engine):
    return await engine.read("e", lambda seen: seen.snapshot().content)


async def closed(*engines):
    for each in engines:
        await each.close()


def test_servers_go_on_while_events_are_archived(postgres_url, folder):
    async def scenario():
        first, second = await replica(postgres_url), await replica(postgres_url)
        await first.put("e", "k", lambda seen: None, **SETTINGS)
        await play(first, [f"one {k}" for k in range(5)])
        await play(second, ["open", "closed"], learn=False)
        before = await state(first)
        assert len(await asyncio.to_thread(archive_all, postgres_url, folder)) == 1
        assert await state(first) == await state(second) == before
        await second.change("e", lambda seen: seen.reward("open", 3.0), ids=["open"])
        for engine in (first, second):
            with raises(Conflict, parameter="id"):
                await engine.change("e", lambda seen: seen.decide("closed"), ids=["closed"])
            with raises(Conflict, parameter="id"):  # its reward is in the log
                await engine.change("e", lambda seen: seen.decide("open"), ids=["open"])
        await play(first, ["one 1", "new"])
        third = await replica(postgres_url)
        assert await state(first) == await state(second) == await state(third)
        with reading(first.store) as reader:
            archived = reader.archived(1)
            assert [each.seq for each in all_events(reader, 1)] == list(range(archived + 1, archived + 6))
        await closed(first, second, third)

    asyncio.run(scenario())


@pytest.mark.parametrize("left", [False, True], ids=["none left", "some left"])
def test_a_server_that_missed_archived_events_loads_the_state_again(postgres_url, folder, left):
    async def scenario():
        first = await replica(postgres_url)
        await first.put("e", "k", lambda seen: None, **SETTINGS)
        await play(first, ["a"])
        late = await replica(postgres_url)
        writer = await replica(postgres_url)
        for task in list(late._tasks) + list(writer._tasks):  # they hear nothing of the others
            task.cancel()
        await play(first, [f"b{k}" for k in range(20)])
        await asyncio.to_thread(archive_all, postgres_url, folder)
        if left:
            await play(first, ["c"])
        assert await asyncio.wait_for(state(late), 30) == await state(first)
        await asyncio.wait_for(play(writer, ["d"]), 30)
        assert await state(late) == await state(first) == await state(writer)
        await closed(first, late, writer)

    asyncio.run(scenario())


def test_a_server_that_loads_while_events_are_archived(postgres_url, folder):
    async def scenario():
        first = await replica(postgres_url)
        await first.put("e", "k", lambda seen: None, **SETTINGS)
        await play(first, [f"a{k}" for k in range(20)])
        late = Replica(open_store(postgres_url), compile="never")
        read, files = late.store.read, []

        def slow_read(look):
            """Let the events go right after the snapshots were read."""
            found = read(look)
            if found == [] and not files:
                files.extend(archive_all(postgres_url, folder))
            return found

        late.store.read = slow_read
        await late.load()
        assert len(files) == 1
        assert await state(late) == await state(first)
        await play(late, ["b"])
        assert await state(late) == await state(first)
        await closed(first, late)

    asyncio.run(scenario())
