"""Runs the application: sockets, signals, and the end."""

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

from robandit.errors import InvalidInput, RobanditError, StoreError
from robandit.kernel.background import is_busy
from robandit.service.application import Service
from robandit.service.connection import Connection, Connections
from robandit.storage import Store

GRACE = 30  # seconds that calls have to finish after SIGTERM
BACKLOG = 2_048
TICK = 0.1  # seconds
MOST_CONNECTIONS = 10_000
OWN_FILES = 256  # for the store, compilers and connections that are turned away
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
    server: Server

    def fail(error: RobanditError) -> None:
        failures.append(error)
        server.stop()

    server = Server(Service(store, authenticate=authenticate, rate=rate, on_failure=fail))
    sys.setswitchinterval(SWITCH)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of lost connections, which we report ourselves
    with _signals(server.stop), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(server.run(listener, on_start))
    if failures:
        error = failures[0]
        if isinstance(error, StoreError):
            raise StoreError(f"{error}. The server has ended; what it acknowledged is stored")
        raise error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loops of uvloop, which are faster, where it exists."""
    try:
        import uvloop
    except ImportError:  # on Windows
        return None
    return uvloop.new_event_loop


@contextmanager
def _signals(stop: Callable[[], object]) -> Iterator[None]:
    """Stop at SIGINT and SIGTERM. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _most_connections() -> int:
    """Return how many connections the limit of open files allows, beside those files that the server itself needs."""
    try:
        import resource
    except ImportError:  # on Windows
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files < 0 else max(16, min(MOST_CONNECTIONS, files - OWN_FILES))


class Server:
    """Accepts connections for the application, and ends in order."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stops = 0

    def stop(self) -> None:
        """End: after the calls that are being answered, and at once if asked again. Signal handlers may call it."""
        self._stops += 1

    async def run(self, listener: socket.socket, on_start: Callable[[], object] = lambda: None) -> None:
        """Serve until `stop`."""
        loop = asyncio.get_running_loop()
        connections = Connections(self._service, _most_connections())
        await self._service.start()
        # asyncio accepts a whole backlog in one turn, before any connection can be closed: descriptors would run out.
        accepting = await loop.create_server(lambda: Connection(connections, loop), sock=listener, backlog=1)
        listener.listen(BACKLOG)
        on_start()
        ticks, was_settled = 0, False
        while not self._stops:
            if ticks % 10 == 0:
                connections.tick(loop.time())
            # Exclude what was loaded or compiled from garbage collection, which would stop all calls for 50 to 200 ms.
            settled = self._service.is_ready and not is_busy()
            if settled and not was_settled:
                gc.collect()  # what is garbage now would stay for ever
                gc.freeze()
            was_settled = settled
            ticks += 1
            await asyncio.sleep(TICK)
        accepting.close()
        self._service.end_streams()
        connections.shut_down()
        until = loop.time() + GRACE
        while not connections.is_empty and self._stops < 2 and loop.time() < until:
            connections.tick(loop.time())
            await asyncio.sleep(TICK)
        for task in connections.tasks:
            task.cancel()
        await self._service.stop()
