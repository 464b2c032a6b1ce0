"""Runs the application with uvicorn: sockets, signals, and the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from robandit.errors import InvalidInput, RobanditError, StoreError
from robandit.kernel.background import is_busy
from robandit.service.application import Service
from robandit.storage import Store

GRACE = 30  # seconds that calls have to finish after SIGTERM
BACKLOG = 2_048
LARGEST_HEAD = 64 << 10
HEAD_PATIENCE = 30.0  # seconds
SWITCH = 0.0005  # seconds after which a busy event loop lets the thread go on that stores; Python's 5 ms are as long as a commit


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Port 0 takes any free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(BACKLOG)
        except BaseException:
            found.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "check --host" if isinstance(error, socket.gaierror) else "choose another --port (0 takes a free one)"
        raise InvalidInput(f"{host}:{port} cannot be used: {reason}; {hint}") from error
    return found


def url_of(listener: socket.socket) -> str:
    """Return the address of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    store: Store,
    listener: socket.socket,
    *,
    authenticate: bool = True,
    rate: float | None = None,
    on_start: Callable[[], object] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT: then finish the calls, take snapshots and return. Raise the error if the store fails."""
    failures: list[RobanditError] = []
    server: uvicorn.Server

    def fail(error: RobanditError) -> None:
        failures.append(error)
        server.should_exit = True

    service = Service(store, authenticate=authenticate, rate=rate, on_failure=fail)
    config = uvicorn.Config(
        service,
        http=_Protocol,
        lifespan="on",
        proxy_headers=False,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=75,
    )
    server = _Server(config, on_start, lambda: service.is_ready and not is_busy(), service.end_streams)
    sys.setswitchinterval(SWITCH)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of lost connections, which we report ourselves
    server.run(sockets=[listener])
    if failures:
        error = failures[0]
        if isinstance(error, StoreError):
            raise StoreError(f"{error}. The server has ended; what it acknowledged is stored")
        raise error


class _Coalesced:
    """A transport that sends all that is written in one turn of the event loop at once.

    uvicorn writes the head and the body of an answer separately: two system calls, and two packets.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Protocol(HttpToolsProtocol):
    """HTTP of uvicorn, with a limit of the size of a request's head, and of the time in which it must arrive."""

    _head = 0
    """The size of the head that is arriving."""
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Coalesced(transport, self.loop))  # type: ignore[arg-type]
        self._limit = self.loop.call_later(HEAD_PATIENCE, self.transport.close)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._limit is None:
            self._limit = self.loop.call_later(HEAD_PATIENCE, self.transport.close)

    def on_headers_complete(self) -> None:
        self._end_limit()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._limit is None:
            self._head = 0
        else:
            self._head += len(data)
            if self._head > LARGEST_HEAD:
                self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_limit()
        super().connection_lost(exc)

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        on_start: Callable[[], object],
        is_settled: Callable[[], bool],
        on_stop: Callable[[], object],
    ) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._on_stop = on_stop
        self._is_settled = is_settled
        self._was_settled = False

    async def on_tick(self, counter: int) -> bool:
        """Exclude what was loaded or compiled from garbage collection, which would stop all calls for 50 to 200 ms."""
        settled = self._is_settled()
        if settled and not self._was_settled:
            gc.freeze()
        self._was_settled = settled
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the calls that are being answered."""
        self._on_stop()
        await super().shutdown(sockets=sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGINT and SIGTERM, and end normally. (uvicorn would raise the signal again.)"""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
