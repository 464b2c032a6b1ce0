"""A person in front of the dashboard, without a browser: cookies, forms and streams against a `Local` service."""

from __future__ import annotations

import asyncio
import html
import json
import re
from typing import Any
from urllib.parse import urlencode

from helpers.serving import Local, Response


class Person:
    """Keeps the cookie, and sends forms with the token of the page that they are on."""

    def __init__(self, local: Local, **headers: str) -> None:
        self.local = local
        self.cookie = ""
        self.headers = headers

    def ask(self, method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> Response:
        """Send a request, with the cookie. A redirect is not followed."""
        sent = (
            {"accept": "text/html"} | self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        )
        if self.cookie:
            sent.setdefault("cookie", self.cookie)
        body = None
        if form is not None:
            body = urlencode(form).encode()
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
        answer = self.local.call(method, path, body, key="", headers=sent)
        if "set-cookie" in answer.headers:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def get(self, path: str, **headers: str) -> Response:
        return self.ask("GET", path, **headers)

    def log_in(self, key: str, **form: str) -> Response:
        return self.ask("POST", "/login", {"key": key} | form)

    def token(self, path: str) -> str:
        """The token in the forms of a page."""
        found = set(re.findall(r'name="token" value="([^"]+)"', self.get(path).body.decode()))
        assert len(found) == 1, found
        return found.pop()

    def send(self, page: str, action: str, form: dict[str, str]) -> Response:
        """Send a form that is on a page."""
        return self.ask("POST", action, form | {"token": self.token(page)})

    def stream(self, path: str) -> Stream:
        return Stream(self, path)


class Stream:
    """The live updates of a page. Use it with ``with``; `next` waits for the next event, None is the end."""

    def __init__(self, person: Person, path: str) -> None:
        self._person, self._path = person, path

    def __enter__(self) -> Stream:
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._gone = asyncio.Event()
        self._call = asyncio.run_coroutine_threadsafe(self._run(), self._person.local.loop)
        start = self.message()
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return self

    def __exit__(self, *_: object) -> None:
        self._person.local.loop.call_soon_threadsafe(self._gone.set)
        self._call.cancel()

    async def _run(self) -> None:
        bare, _, query = self._path.partition("?")
        sent = {
            "host": "127.0.0.1",
            "accept": "text/event-stream",
            "cookie": self._person.cookie,
        } | self._person.headers
        scope = {
            "type": "http",
            "method": "GET",
            "path": bare,
            "raw_path": bare.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
        }

        received = False

        async def receive() -> Any:
            nonlocal received
            if not received:  # as servers do, although the request has no body
                received = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self._messages.put_nowait(message)

        await self._person.local.service(scope, receive, send)

    def message(self, patience: float = 20.0) -> Any:
        return self._person.local.run(asyncio.wait_for(self._messages.get(), patience))

    def next(self, patience: float = 20.0) -> tuple[str, Any] | None:
        """The name and the data of the next event; comments are skipped."""
        while True:
            message = self.message(patience)
            body = message.get("body", b"").decode()
            if not body:
                return None
            fields = dict(
                line.split(": ", 1) if ": " in line else (line.rstrip(":"), "") for line in body.splitlines() if line
            )
            if "data" in fields:
                return fields.get("event", "message"), json.loads(fields["data"] or "null")

    def until(self, wanted: Any, most: int = 100) -> dict[str, str]:
        """All parts, from the first event after which they satisfy a condition."""
        parts: dict[str, str] = {}
        for _ in range(most):
            event = self.next()
            assert event is not None, "the stream has ended"
            parts |= event[1]
            if wanted(parts):
                return parts
        raise AssertionError(f"not in {most} events: {parts}")


def words(body: bytes | str) -> str:
    """The text of a page, without its elements."""
    text = body.decode() if isinstance(body, bytes) else body
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
