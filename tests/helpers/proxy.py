"""What the proxies of tests have in common: a thread, an address on loopback, and outages."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from typing import Any, Self

from helpers.ports import free_port


class Proxy:
    """A proxy in a thread of its own. Use it with ``with``. A subclass says in `_serve` what happens on a connection."""

    def __init__(self, *, tls: Any = None) -> None:
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._open: set[asyncio.Task[Any]] = set()
        self._ending = False

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = free_port()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._ending = True
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def stop_listening(self) -> None:
        """Begin an outage that lasts until `listen`: open connections are reset, new ones refused."""
        self._run(self._close())

    def listen(self) -> None:
        """End an outage."""
        self._run(self._listen())

    async def _serve(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        """Serve a connection. It is reset when this returns."""
        raise NotImplementedError

    def _run(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls)

    async def _close(self) -> None:
        for each in self._server.sockets:
            self._loop.remove_reader(each.fileno())
        await _pass()  # asyncio does not close a connection if its server is closed right after it was accepted
        self._server.close()
        await self._cut()

    async def _cut(self) -> None:
        open_now = [task for task in self._open if task is not asyncio.current_task()]
        for task in open_now:
            task.cancel()
        if open_now:
            await asyncio.wait(open_now)
        await _pass()  # their sockets are closed

    async def _end(self) -> None:
        await self._close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        await self._close()  # of a server that an outage began meanwhile

    def _accept(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(incoming, outgoing))
        self._open.add(task)

        def end(_: object) -> None:  # also if the task was cancelled before it began
            self._open.discard(task)
            reset(outgoing)

        task.add_done_callback(end)


def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a reset, not in order."""
    plain = writer.get_extra_info("socket")
    if plain is not None and plain.fileno() >= 0 and not writer.transport.is_closing():
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _pass() -> None:
    """Let the event loop go round a few times, however busy the machine is."""
    for _ in range(10):
        await asyncio.sleep(0)
