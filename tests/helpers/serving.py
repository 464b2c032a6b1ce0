"""Decision services for tests: in this process without sockets (`Local`), or a real server in another process (`Server`)."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from robandit.service.access import made_key
from robandit.service.application import Service
from robandit.storage import open_store
from robandit.storage.base import PutKey


class Response(NamedTuple):
    """The answer to a call."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def replayed(self) -> bool:
        """Whether the server says that it has answered this call before."""
        return self.headers.get("idempotent-replayed") == "true"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Local:
    """A service in this process. Calls go to the ASGI application itself, in the thread of its event loop.

    Without authentication unless ``authenticate=True``; then ``admin`` is an admin key. Use it with ``with``.
    """

    def __init__(self, path: Path | None, *, authenticate: bool = False, store: Any = None, **options: Any) -> None:
        self.path = path
        self.store = store or open_store(f"sqlite:{path}", durability="off")
        self.failures: list[Exception] = []
        self.admin = ""
        if authenticate:
            self.admin, stored = made_key(["admin"], now=time.time())
            self.store.commit((), (PutKey(stored),))
        options.setdefault("compile", "never")
        self._authenticate = authenticate
        self._options = options

    def __enter__(self) -> Local:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.run(self._start())
        return self

    async def _start(self) -> None:
        options = {"authenticate": self._authenticate, "on_failure": self.failures.append} | self._options
        self.service = Service(self.store, **options)
        await self.service.start()
        await self.service.ready()

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.service.stop())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()

    def run(self, coroutine: Any) -> Any:
        """Return what a coroutine returns, after running it in the loop of the service."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    @property
    def engine(self) -> Any:
        """The engine of the service."""
        return self.service.state.engine

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        """Make a call. A body that is not bytes is sent as JSON. See `request`."""
        return self.run(self.request(method, path, body, **options))

    async def request(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        """Make a call from a coroutine. ``key`` is by default the admin key; an empty one sends none."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        bare, _, query = path.partition("?")
        token = self.admin if key is None else key
        sent = {"host": "127.0.0.1", "content-length": str(len(raw))} | (headers or {})
        if token:
            sent["authorization"] = f"Bearer {token}"
        scope = {
            "type": "http",
            "method": method,
            "path": bare,
            "raw_path": bare.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()],
        }
        messages: list[Any] = []

        received = False

        async def receive() -> Any:
            nonlocal received
            if received:
                await asyncio.Event().wait()  # the client stays
            received = True
            return {"type": "http.request", "body": raw, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        await self.service(scope, receive, send)
        start = messages[0]
        answered = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Response(start["status"], answered, b"".join(each.get("body", b"") for each in messages[1:]))


class Server:
    """`robandit serve` in another process, on a port of the loopback interface, by default a free one. Use it with ``with``.

    ``path`` is that of a SQLite file; None if the options or the environment name a store.
    """

    def __init__(
        self,
        path: Path | None,
        *options: str,
        authenticate: bool = False,
        env: dict[str, str] | None = None,
        port: int = 0,
    ) -> None:
        command = [sys.executable, "-m", "robandit", "serve", "--port", str(port), *options]
        if path is not None:
            command += ["--store", f"sqlite:{path}"]
        if not authenticate:
            command.append("--no-auth")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | (env or {})
        )
        self.key = ""
        self.announced = ""
        """What it printed first."""
        self.url = self._announced()
        self.host, _, port = self.url.removeprefix("http://").partition(":")
        self.port = int(port)

    def _announced(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.announced += line
            if found := re.search(r"rb_\S+", line):
                self.key = found[0]
            if found := re.search(r"http://[^\s)]+", line):
                return found[0]
        _, errors = self.process.communicate(timeout=30)
        raise AssertionError(f"the server did not start: {errors}")

    def __enter__(self) -> Server:
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def wait_until_ready(self) -> None:
        """Wait until the logs are folded."""
        until = time.monotonic() + 60
        while self.call("GET", "/readyz").status != 200:
            assert time.monotonic() < until
            time.sleep(0.01)

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Response:
        """Make a call on a new connection."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            return exchange(connection, method, path, body, self.key if key is None else key)
        finally:
            connection.close()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal and wait for the end. Return the exit code, and what the server printed since it announced itself."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, key: str = ""
) -> Response:
    """Make a call on a connection, and read the whole answer."""
    raw = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    connection.request(method, path, raw, headers)
    response = connection.getresponse()
    return Response(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
