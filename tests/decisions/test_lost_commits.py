"""A database that has lost its last commits: a standby took over that lacked them, or a backup was restored."""

import asyncio
import hashlib

import psycopg
import pytest

from robandit.decisions.replica import Replica
from robandit.service import bodies
from robandit.storage.postgres import PostgresStore

SETTINGS = bodies.NewExperiment(arms=["a", "b"], policy="UCB1", seed=1)
FIELDS = {field: getattr(SETTINGS, field) for field in bodies.NewExperiment.__struct_fields__}


async def decide(replica, id):
    await replica.change("x", lambda experiment: experiment.decide(id), ids=[id])


async def state(replica):
    """Return the last event and the state, as the replica sees them."""
    return await replica.read("x", lambda seen: (seen.seq, hashlib.sha256(seen.snapshot().content).hexdigest()))


def lose(url, after):
    with psycopg.connect(url) as db:
        db.execute("DELETE FROM robandit.event WHERE seq > %s", (after,))
        db.execute("UPDATE robandit.experiment SET head = %s", (after,))


@pytest.mark.parametrize("new", [0, 2, 5, 9])
@pytest.mark.parametrize("first", ["read", "decide"])
def test_all_replicas_go_on_from_what_is_left(postgres_url, new, first):
    """Events 7 to 11 are lost. Whether there are fewer, as many or more events since then, no replica keeps the lost ones."""

    async def play():
        old, other = Replica(PostgresStore(postgres_url)), Replica(PostgresStore(postgres_url))
        await old.load()
        await old.put("x", "key", lambda experiment: None, **FIELDS)
        await other.load()
        for number in range(10):
            await decide(old, f"old-{number}")
        assert await state(other) == await state(old)
        lose(postgres_url, 6)
        third = Replica(PostgresStore(postgres_url))
        await third.load()
        for number in range(new):
            await decide(third, f"new-{number}")
        if first == "decide":
            await decide(old, "last")
            await decide(other, "last but one")
        found = [await state(each) for each in (old, other, third)]
        assert found == [found[2]] * 3
        for each in (old, other, third):
            await each.close()

    asyncio.run(play())
