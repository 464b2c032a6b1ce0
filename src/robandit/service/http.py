"""Requests and answers of the ASGI application, and a router.

A framework was measured first: with uvicorn and a small handler, Litestar answers 10.9 thousand requests per second on one
core of our machine, and this file 22.6 thousand. There are about 25 routes, so what it replaces is short.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

from robandit.service.bodies import encode
from robandit.service.problems import CODES, RETRY, Refusal, wrong_value
from robandit.storage import StoredKey

JSON = b"application/json"
LARGEST_BODY = 4 << 20
LARGEST_BODIES = 256 << 20  # of all calls together
BODY_PATIENCE = 30.0  # seconds
_ANY = object()  # stands for a parameter in the tree of paths; a text could also be a segment of a path

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]


class Request(NamedTuple):
    """A request whose route is known."""

    parameters: Sequence[str]
    """The values of the path's parameters, in order. The first one is the name of the experiment, if there is one."""
    query: dict[str, str]
    key: StoredKey
    body: bytes
    known: bytes | None = None
    """The header If-None-Match: the version that the caller has."""


class Answer(NamedTuple):
    """An answer. Its body is complete, or a stream of parts."""

    status: int
    body: bytes | AsyncGenerator[bytes, None]
    media: bytes = JSON
    headers: Headers = ()


REPLAYED: Headers = ((b"idempotent-replayed", b"true"),)


def answer(value: Any, status: int = 200, headers: Headers = ()) -> Answer:
    """Return an answer in JSON."""
    return Answer(status, encode(value), JSON, headers)


Handler: TypeAlias = Callable[[Any, Any], Awaitable[Answer]]


class Parameter(NamedTuple):
    """A parameter of the query."""

    name: str
    schema: dict[str, Any]
    about: str


@dataclass(frozen=True, kw_only=True)
class Route:
    """A call of the interface: what it is for, who may use it, and who handles it."""

    method: str
    path: str
    handler: Handler
    about: str
    """Sentences. The first one is the title."""
    scope: str | None
    """The scope that a key needs; None: no key is needed."""
    body: type[Any] | None = None
    body_required: bool = True
    answers: Mapping[int, tuple[type[Any] | str | None, str]] = field(default_factory=dict)
    """Status -> the type of the body (or its media type, if it is not JSON), and when it occurs."""
    problems: tuple[str, ...] = ()
    """Codes of the problems that only some calls can have. `codes` are all."""
    query: tuple[Parameter, ...] = ()
    early: bool = False
    """Whether it is answered before the experiments are loaded."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path."""
        return tuple(self.path.strip("/").split("/"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the path's parameters."""
        return tuple(part[1:-1] for part in self.segments if part.startswith("{"))

    @property
    def codes(self) -> list[str]:
        """The codes of all problems that this call can have."""
        codes = {"malformed", "invalid", *self.problems}
        if self.scope is not None:
            codes |= {"no-key", "unknown-key", "ended-key", "forbidden", "too-many", "unavailable"}
        if "{name}" in self.path and self.method != "PUT":
            codes.add("unknown-experiment")
        if self.body is not None:
            codes.add("too-large")
        return [code for code in CODES if code in codes]


class Router:
    """Finds the route of a path and a method."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._tree: dict[Any, Any] = {}
        for route in routes:
            node = self._tree
            for part in route.segments:
                node = node.setdefault(_ANY if part.startswith("{") else part, {})
            node.setdefault(None, {})[route.method] = route
        self._depth = max(len(route.segments) for route in routes)
        self.find = functools.lru_cache(maxsize=1_000)(self._find)
        """See `_find`. The paths of decisions and rewards are the same again and again."""

    def _find(self, method: str, raw_path: bytes) -> tuple[Route, tuple[str, ...]]:
        """Return the route and the parameters in a path, or refuse it. A slash in a parameter is written as %2F.

        A fixed part comes first, but a parameter may have the same text: the decision with the id batch is read with GET.
        """
        nodes: list[tuple[dict[Any, Any], tuple[str, ...]]] = [(self._tree, ())]
        # A path of 64 KiB can have 65,000 parts. Those after the deepest route are not looked at.
        for raw in raw_path[1:].split(b"/", self._depth):
            if not nodes:
                break
            part = _unquoted(raw)
            fixed = [(node[part], given) for node, given in nodes if part in node]
            nodes = fixed + [(node[_ANY], (*given, part)) for node, given in nodes if part and _ANY in node]
        found = [(node[None], given) for node, given in nodes if None in node]
        if not found:
            raise Refusal("not-found", f"There is nothing at {_unquoted(raw_path)[:100]}: GET /docs lists all calls")
        for routes, given in found:
            route = routes.get("GET" if method == "HEAD" else method)
            if route is not None:
                return route, given
        allowed = ", ".join(sorted({each for routes, _ in found for each in routes}))
        raise Refusal(
            "no-such-method", f"{method} is not possible here: use {allowed}", ((b"allow", allowed.encode()),)
        )


def _unquoted(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw).decode() if b"%" in raw else raw.decode("ascii")
    except UnicodeDecodeError:
        raise Refusal(
            "malformed", "The path is not valid UTF-8: write other characters as %XX of their UTF-8 bytes"
        ) from None


def query_of(raw: bytes, route: Route) -> dict[str, str]:
    """Return the parameters of a query, which must be known."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise Refusal("malformed", "The query is not valid: write it as ?name=value&name=value in UTF-8") from None
    known = [parameter.name for parameter in route.query]
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise Refusal(
                "invalid", f"This call has no parameter {name[:40]!r} in its query: {there}", parameter=name[:40]
            )
        if name in given:
            raise Refusal("invalid", f"The parameter {name} is given twice: give it once", parameter=name)
        given[name] = value
    return given


def integer(given: str, name: str) -> int:
    """Return an integer in a query, or refuse it."""
    if not (given.isascii() and given.isdigit() and len(given) <= 18):
        raise wrong_value(name, given, "an integer >= 0")
    return int(given)


class Gone(Exception):
    """The client has left before its request was complete. Nothing may be done for it."""


class Bodies:
    """Reads the bodies of requests, and limits the memory that all of them take together."""

    def __init__(self) -> None:
        self.bytes = 0
        """The size of all bodies whose requests are not answered yet."""

    async def read(self, receive: Receive, length: bytes | None, most: int = LARGEST_BODY) -> bytes:
        """Return the body of a request. One that is too large is refused before it is read. Call `free` when it is answered."""
        if length is not None and (len(length) > 9 or not length.isdigit() or int(length) > most):
            raise _too_large(most)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_PATIENCE):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    part = message.get("body", b"")
                    size += len(part)
                    self.bytes += len(part)
                    parts.append(part)
                    if size > most:
                        raise _too_large(most)
                    if self.bytes > LARGEST_BODIES:
                        text = (
                            f"The bodies of all calls take more than {LARGEST_BODIES >> 20} MiB: try again in a second"
                        )
                        raise Refusal("unavailable", text, RETRY)
                    if not message.get("more_body"):
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except BaseException as error:
            self.bytes -= size
            if isinstance(error, TimeoutError):
                text = f"The body did not arrive within {BODY_PATIENCE:g} seconds: send it at once"
                raise Refusal("malformed", text) from None
            raise

    def free(self, body: bytes) -> None:
        """Forget a body."""
        self.bytes -= len(body)


def _too_large(most: int) -> Refusal:
    if most < LARGEST_BODY:
        return Refusal("too-large", f"The body is larger than {most >> 10} KiB: send a smaller one")
    return Refusal("too-large", f"The body is larger than {LARGEST_BODY >> 20} MiB: send several smaller batches")
