"""A proxy between a client and PostgreSQL: outages, slow connections, and connections that are lost in a chosen statement."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from helpers.proxy import Proxy, reset

TLS, GSS = 80877103, 80877104  # the codes of requests that are answered by one byte, before the protocol begins

Marker = bytes | Callable[[bytes], bool]


@dataclass
class Loss:
    """The next message of a client with this marker loses its connection: before the server has it, or after it has answered."""

    marker: Marker
    when: Literal["before", "after"]
    happened: threading.Event = field(default_factory=threading.Event)

    def concerns(self, message: bytes) -> bool:
        return self.marker in message if isinstance(self.marker, bytes) else self.marker(message)


class TcpProxy(Proxy):
    """A proxy to the server of this URL. Use it with ``with``; clients connect to `url`, without TLS."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._target = urlsplit(url)
        self._delay = 0.0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._loss: Loss | None = None

    @property
    def url(self) -> str:
        """The URL for clients: that of the server, with the address of the proxy."""
        user = self._target.netloc.rpartition("@")[0]
        return self._target._replace(
            netloc=f"{user}@127.0.0.1:{self.port}" if user else f"127.0.0.1:{self.port}"
        ).geturl()

    def cut(self) -> None:
        """Reset all open connections; new ones are accepted."""
        self._run(self._cut())

    def refuse(self) -> None:
        """Begin an outage that lasts until `listen`: open connections are reset, new ones refused."""
        self.stop_listening()

    def delay(self, seconds: float) -> None:
        """Hold up every chunk for this long, in both directions. 0 ends it."""
        self._delay = seconds

    def stall(self) -> None:
        """Forward nothing until `resume`. Connections stay open, and no byte is lost."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def resume(self) -> None:
        """End a stall."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def lose_before(self, marker: Marker) -> threading.Event:
        """Reset the connection of the next client that sends a marked message; the server never gets the message.

        ``marker`` is a text in the message, such as ``b"COMMIT"``, or a function that is given the message. It happens once, and
        then sets the returned event; a second call of this or of `lose_after` replaces the first.
        """
        return self._lose(Loss(marker, "before"))

    def lose_after(self, marker: Marker) -> threading.Event:
        """Like `lose_before`, but the server gets the message and answers it; the client does not get the answer."""
        return self._lose(Loss(marker, "after"))

    def _lose(self, loss: Loss) -> threading.Event:
        self._loss = loss
        return loss.happened

    async def _serve(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):  # the server is down, or the connection is cut
            await self._flowing.wait()
            answers, requests = await asyncio.open_connection(self._target.hostname, self._target.port)
            session = _Session(self)
            both = [
                asyncio.ensure_future(self._forward(incoming, requests, session.sent)),
                asyncio.ensure_future(self._forward(answers, outgoing, session.answered)),
            ]
            try:
                done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if not any(each.exception() for each in done):  # one side has closed the connection in order
                    for writer in (requests, outgoing):
                        writer.close()
                        await writer.wait_closed()
            finally:
                for each in both:
                    each.cancel()
                await asyncio.gather(*both, return_exceptions=True)
                reset(requests)

    async def _forward(self, reader: Any, writer: Any, look: Callable[[bytes], bool]) -> None:
        while chunk := await reader.read(1 << 16):
            if not look(chunk):
                continue
            if self._delay:
                await asyncio.sleep(self._delay)
            await self._flowing.wait()
            writer.write(chunk)
            await writer.drain()


class _Session:
    """What the two sides of a connection have said.

    A server says that it is ready once after the start, then once for every query, function call and synchronisation of its client.
    So the answer to a marked message has come when the server has been ready often enough.
    """

    def __init__(self, proxy: TcpProxy) -> None:
        self._proxy = proxy
        self._sent, self._answered = bytearray(), bytearray()
        self._started = False
        self._bytes_due = 0  # answers of one byte
        self._calls = 0
        self._ready = 0
        self._lost: Loss | None = None
        self._ready_at = 0

    def sent(self, chunk: bytes) -> bool:
        """Note what the client sends. Return whether to forward it."""
        self._sent += chunk
        while not self._started and (message := _first(self._sent, 0)):
            code = int.from_bytes(message[4:8], "big")
            self._bytes_due += code in (TLS, GSS)
            self._started = code not in (TLS, GSS)
        for message in _messages(self._sent) if self._started else ():
            self._calls += message[:1] in (b"Q", b"S", b"F")
            loss = self._proxy._loss
            if self._lost is None and loss is not None and loss.concerns(message):
                self._proxy._loss = None
                if loss.when == "before":
                    loss.happened.set()
                    raise ConnectionAbortedError
                self._lost = loss
                self._ready_at = (
                    1 + self._calls + (message[:1] not in (b"Q", b"S", b"F"))
                )  # if not, a synchronisation follows
        return True

    def answered(self, chunk: bytes) -> bool:
        """Note what the server answers. Return whether to forward it."""
        self._answered += chunk
        while self._bytes_due and self._answered:
            if self._answered.pop(0) != ord("N"):
                raise ConnectionAbortedError  # from here on it would be encrypted
            self._bytes_due -= 1
        self._ready += sum(message[:1] == b"Z" for message in _messages(self._answered))
        if self._lost is not None and self._ready >= self._ready_at:
            self._lost.happened.set()
            raise ConnectionAbortedError
        return self._lost is None


def _messages(received: bytearray) -> Iterator[bytes]:
    while message := _first(received, 1):
        yield message


def _first(received: bytearray, head: int) -> bytes:
    """Remove and return the first message, or nothing if it is not complete. ``head``: the bytes before its length."""
    size = head + int.from_bytes(received[head : head + 4], "big")
    if len(received) < head + 4 or len(received) < size:
        return b""
    message = bytes(received[:size])
    del received[:size]
    return message
