"""Connections to the service: `Sockets` blocks, `Streams` uses asyncio. Both have the same methods, which limit the time.

The methods of `Sockets` are coroutines that never wait, so that all other code is written once. `finished` runs them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, Union

from robandit_client.http import Address, Reader, Response, Stale
from robandit_client.locks import ProcessLock

if TYPE_CHECKING:
    import ssl

_PART = 1 << 16
MOST_IDLE = 32
_NOT_SILENT = "the server closed the connection, or wrote to it, while it was idle"

Result = TypeVar("Result")


def finished(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("a coroutine of the blocking client waits")


class Pool:
    """Idle connections, the last used one first. Thread-safe."""

    def __init__(self, wire: Wire, address: Address, clock: Callable[[], float]) -> None:
        self._wire = wire
        self._address = address
        self._clock = clock
        self._idle: list[Connection] = []
        self._owner: object = None
        self._lock = ProcessLock()

    async def exchange(self, data: bytes, *, connect: float, read: float, until: float) -> Response:
        """Return the answer to a request, on an idle connection or a new one.

        ``connect`` and ``read`` limit the seconds, and ``until`` limits the whole, by the clock.
        """
        while True:
            idle = self._taken()
            connection = idle or await self._wire.connect(self._address, self._limited(connect, until))
            try:
                response = await connection.exchange(data, self._limited(read, until))
            except Stale:
                connection.close()
                self.close()  # the others were idle for longer
                if idle is None:
                    raise
                continue
            except BaseException as error:
                connection.close()
                if idle is not None and isinstance(error, TimeoutError):
                    self.close()  # a firewall may have dropped them all: the next attempt makes a new connection
                raise
            if response.reusable:
                self._give(connection)
            else:
                connection.close()
            return response

    def _limited(self, seconds: float, until: float) -> float:
        return min(seconds, max(until - self._clock(), 1e-3))

    def _taken(self) -> Connection | None:
        with self._lock:
            owner = self._wire.owner()
            if owner != self._owner:
                self._idle, self._owner = [], owner
            return self._idle.pop() if self._idle else None

    def _give(self, connection: Connection) -> None:
        with self._lock:
            if self._owner == self._wire.owner() and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class _Secured:
    """Makes the TLS context when it is first needed: importing ssl takes a while."""

    @cached_property
    def context(self) -> ssl.SSLContext:
        import ssl

        return ssl.create_default_context()


# --- blocking ---------------------------------------------------------------------------------------------------------


class Sockets(_Secured):
    """Blocking connections."""

    async def connect(self, address: Address, seconds: float) -> Connection:
        """Return a new connection."""
        until = time.monotonic() + seconds
        plain = socket.create_connection((address.host, address.port), timeout=seconds)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.secure:
                plain.settimeout(max(until - time.monotonic(), 1e-3))
                return _Socket(self.context.wrap_socket(plain, server_hostname=address.host))
        except BaseException:
            plain.close()
            raise
        return _Socket(plain)

    async def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)

    def owner(self) -> object:
        """Return the process."""
        return os.getpid()


class _Socket:
    def __init__(self, plain: socket.socket) -> None:
        self._socket = plain
        self._used = False

    async def exchange(self, data: bytes, seconds: float) -> Response:
        until = time.monotonic() + seconds
        reader = Reader()
        try:
            if self._used:
                self._check_silence()
            rest = memoryview(data)
            while rest:  # `sendall` of TLS limits the time of each part, not of all
                self._limit(until)
                rest = rest[self._socket.send(rest) :]
            while True:
                self._limit(until)
                response = reader.feed(self._socket.recv(_PART))
                if response is not None:
                    self._used = True
                    return response
        except socket.timeout as error:  # a TimeoutError since Python 3.10
            raise TimeoutError("timed out") from error
        except OSError as error:
            raise _named(error, reader, self._used) from error

    def _limit(self, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0.0:
            raise socket.timeout("timed out")
        self._socket.settimeout(left)

    def _check_silence(self) -> None:
        """Raise `Stale` if something came while the connection was idle: it would be taken for the next answer."""
        self._socket.settimeout(0.0)
        try:
            self._socket.recv(1)
        except OSError:  # nothing came, or the connection is broken, which the exchange will find out
            return
        raise Stale(_NOT_SILENT)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()


# --- asyncio ----------------------------------------------------------------------------------------------------------


if sys.version_info >= (3, 11):
    _time_limit = asyncio.timeout
else:

    @asynccontextmanager
    async def _time_limit(seconds: float) -> AsyncIterator[None]:
        """Cancel the block after some seconds, and raise TimeoutError. If its task is cancelled meanwhile, so is the block."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True
            task.cancel()

        timer = loop.call_later(seconds, end)
        try:
            yield
        except asyncio.CancelledError:
            if not is_over:
                raise
            raise TimeoutError("timed out") from None
        finally:
            timer.cancel()


class Streams(_Secured):
    """Connections of asyncio."""

    async def connect(self, address: Address, seconds: float) -> Connection:
        """Return a new connection."""
        async with _time_limit(seconds):
            context = self.context if address.secure else None
            reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
        return _Stream(reader, writer)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def owner(self) -> object:
        """Return the process and the event loop."""
        return os.getpid(), asyncio.get_running_loop()


class _Stream:
    def __init__(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._used = False

    async def exchange(self, data: bytes, seconds: float) -> Response:
        reader = Reader()
        try:
            async with _time_limit(seconds):
                if self._used:
                    self._check_silence()
                self._outgoing.write(data)
                await self._outgoing.drain()
                while True:
                    response = reader.feed(await self._incoming.read(_PART))
                    if response is not None:
                        self._used = True
                        return response
        except TimeoutError:
            raise
        except OSError as error:
            raise _named(error, reader, self._used) from error

    def _check_silence(self) -> None:
        """Raise `Stale` if something came while the connection was idle: it would be taken for the next answer."""
        came = self._incoming.read(1)
        try:
            came.send(None)  # a read that has something to return does not wait
        except StopIteration:
            raise Stale(_NOT_SILENT) from None
        finally:
            came.close()

    def close(self) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            self._outgoing.transport.abort()


Wire = Union[Sockets, Streams]
Connection = Union[_Socket, _Stream]


def _named(error: OSError, reader: Reader, used: bool) -> OSError:
    """Return the error of an exchange. If nothing came on a connection that was used before, the server had closed it."""
    return Stale(reason_of(error)) if used and not reader.began else error


def reason_of(error: OSError) -> str:
    """Return what happened. For a connection in the words of the operating system: those of asyncio hide that it was refused."""
    if isinstance(error, ConnectionError) and error.errno is not None:
        return os.strerror(error.errno)
    return error.strerror or str(error)
