"""Both clients of the decision service behind the same calls, so that a test is written once."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import Any

from robandit.client import AsyncClient, AsyncExperiment, Client


class Threaded:
    """An asynchronous client, or an experiment of it, whose methods block. Its event loop runs in a thread."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name == "timed":
            return lambda **options: _timed(value(**options), self._loop)
        return (lambda *args, **options: self._call(value, *args, **options)) if callable(value) else value

    def _call(self, method: Any, *args: Any, **options: Any) -> Any:
        async def called() -> Any:
            result = method(*args, **options)
            return await result if asyncio.iscoroutine(result) else result

        result = asyncio.run_coroutine_threadsafe(called(), self._loop).result(60)
        return Threaded(result, self._loop) if isinstance(result, AsyncExperiment) else result

    def __repr__(self) -> str:
        return repr(self._inner)

    def __enter__(self) -> Threaded:
        self._call(self._inner.__aenter__)
        return self

    def __exit__(self, *raised: Any) -> None:
        self._call(self._inner.__aexit__, *raised)


@contextmanager
def _timed(manager: Any, loop: asyncio.AbstractEventLoop) -> Any:
    def run(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)

    decision = run(manager.__aenter__())
    try:
        yield decision
    except BaseException as error:
        if not run(manager.__aexit__(type(error), error, error.__traceback__)):
            raise
    else:
        run(manager.__aexit__(None, None, None))


@contextmanager
def clients(kind: str) -> Any:
    """Yield a function that makes a client of a kind: "blocking" or "asyncio"."""
    if kind == "blocking":
        yield Client
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda *args, **options: Threaded(AsyncClient(*args, **options), loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


# A call that must succeed may take this long on a busy machine. Only while the service is away, a client should give up soon.
PATIENT = {"timeout": 60.0, "connect_timeout": 60.0, "read_timeout": 60.0}


def gives_up_after(seconds: float, *clients: Any) -> None:
    """Set the time limit of the calls of clients that exist."""
    for client in clients:
        client._core.timeout = seconds


def cut(line: Any, *clients: Any) -> None:
    """End the connections of a proxy, and refuse new ones. From now on, these clients soon give up."""
    line.stop_listening()
    gives_up_after(0.3, *clients)


def restore(line: Any, *clients: Any) -> None:
    """Accept connections again. From now on, these clients wait for long."""
    gives_up_after(PATIENT["timeout"], *clients)
    line.listen()


def eventually(condition: Any, seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
