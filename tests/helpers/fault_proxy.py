"""A proxy between a client and a decision service that spoils exchanges at random, with a seed.

It reads whole requests and answers, so that each exchange has one fault at most:

- delay: the answer comes late, but in time;
- stall: the answer does not come; the client must give up by itself;
- reset_before, reset_after: the connection is reset before the service has the request, or after it has answered;
- cut: the connection is closed in the middle of the answer;
- refuse: a new connection is reset at once;
- busy: a proxy's own 503, without the service;
- outage: for a while, nobody listens at the address.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from typing import Any

from helpers.proxy import Proxy

FAULTS = ("delay", "stall", "reset_before", "reset_after", "cut", "refuse", "busy", "outage")
SELDOM = {"outage": 0.15, "stall": 0.3}  # these last longer than the others
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nbusy"


class FaultProxy(Proxy):
    """Use it with ``with``. ``share`` of the exchanges have a fault. ``tls``: a context of ssl."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        seed: int,
        share: float = 0.5,
        faults: tuple[str, ...] = FAULTS,
        outage: float = 0.3,
        tls: Any = None,
    ) -> None:
        super().__init__(tls=tls)
        self.share = share
        self.made: Counter[str] = Counter()
        self._service = (host, port)
        self._random = random.Random(seed)
        self._faults = faults
        self._outage = outage

    @property
    def total(self) -> int:
        """The number of faults so far."""
        return sum(self.made.values())

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}" if self._tls else f"http://127.0.0.1:{self.port}"

    async def _serve(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        upstream: list[Any] = []
        try:
            await self._exchanges(incoming, outgoing, upstream)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or the service hung up, or the proxy ends
        finally:
            if upstream:
                upstream[1].transport.abort()

    async def _exchanges(self, incoming: Any, outgoing: Any, upstream: list[Any]) -> None:
        if self._drawn(on_connection=True):
            return
        while True:
            request = await message(incoming)
            fault = self._drawn()
            if fault == "outage":
                asyncio.get_running_loop().create_task(self._be_away())
                return
            if fault == "reset_before":
                return
            if fault == "busy":
                outgoing.write(BUSY)
                continue
            if not upstream:
                upstream += await asyncio.open_connection(*self._service)
            upstream[1].write(request)
            answer = await message(upstream[0])
            if fault == "reset_after":
                return
            if fault == "stall":
                await asyncio.sleep(60)
            if fault == "cut":
                outgoing.write(answer[: self._random.randrange(1, len(answer))])
                await outgoing.drain()
                outgoing.close()  # in order, so that the client reads what was sent
                await outgoing.wait_closed()
                return
            if fault == "delay":
                await asyncio.sleep(self._random.uniform(0.0, 0.1))
            outgoing.write(answer)
            await outgoing.drain()

    def _drawn(self, on_connection: bool = False) -> str | None:
        """Return the fault of a new connection or of an exchange, and count it."""
        share = self.share / 5 if on_connection else self.share
        possible = [fault for fault in self._faults if (fault == "refuse") == on_connection]
        if self._random.random() >= share or not possible:
            return None
        (fault,) = self._random.choices(possible, [SELDOM.get(fault, 1.0) for fault in possible])
        self.made[fault] += 1
        return fault

    async def _be_away(self) -> None:
        if not self._server.is_serving():
            return
        await self._close()
        await asyncio.sleep(self._outage)
        with suppress(OSError):
            if not self._ending:
                await self._listen()


async def message(reader: asyncio.StreamReader) -> bytes:
    """Return a request or an answer as it came."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line.partition(b":")[2]))
    return head
