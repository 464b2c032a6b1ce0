"""A stream whose store goes away in the middle ends early, and the client can tell."""

import asyncio

from robandit.errors import StoreUnavailable
from robandit.service.application import _send
from robandit.service.http import Answer


async def rows():
    yield b"1\n"
    raise StoreUnavailable("the store is away")


def test_the_end_of_a_cut_stream_is_not_sent():
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        await asyncio.Event().wait()

    asyncio.run(_send(send, Answer(200, rows()), receive, whole=True))
    assert [message.get("body") for message in sent] == [None, b"1\n"]
    assert sent[-1]["more_body"]
