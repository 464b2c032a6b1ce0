"""A proxy between a client and a decision service that lets the service answer, and then sends something else to the client."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from helpers.fault_proxy import message
from helpers.proxy import Proxy

Spoil = Callable[[bytes], Iterable[bytes]]
"""Returns what to send in place of an answer, in parts. An empty part is a pause."""


class BadProxy(Proxy):
    """Use it with ``with``. ``spoil`` makes the answers; None: they come as they are. The connection ends after a spoilt one."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self.spoil: Spoil | None = None
        self.surplus = b""
        """What follows each answer, after a moment, on a connection that stays open."""
        self.late = 0
        """How often it was sent."""
        self.answers: Counter[str] = Counter()
        """The number of answers to requests whose first line has this beginning."""
        self._service = (host, port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        upstream: list[Any] = []
        try:
            upstream += await asyncio.open_connection(*self._service)
            while True:
                request = await message(incoming)
                upstream[1].write(request)
                answer = await message(upstream[0])
                self.answers[request.partition(b" HTTP")[0].decode()] += 1
                spoil = self.spoil
                for part in [answer] if spoil is None else spoil(answer):
                    if not part:
                        await asyncio.sleep(0.01)
                    outgoing.write(part)
                    await outgoing.drain()
                if spoil is not None:
                    outgoing.close()  # in order, so that the client reads what was sent
                    await outgoing.wait_closed()
                    return
                if self.surplus:
                    await asyncio.sleep(0.05)
                    outgoing.write(self.surplus)
                    self.late += 1
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or the service hung up, or the proxy ends
        finally:
            if upstream:
                upstream[1].transport.abort()


def whole(body: bytes, *lines: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """Return an answer."""
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def headed(*lines: str, rest: bytes = b"") -> bytes:
    """Return an answer with these lines in its head."""
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode("latin-1") + rest


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def changed(change: Callable[[Any], Any]) -> Spoil:
    """Return a way to spoil answers by changes of their JSON."""
    return lambda answer: [whole(json.dumps(change(json.loads(body_of(answer)))).encode())]


def _endless(part: bytes, first: bytes = b"") -> Spoil:
    def spoil(answer: bytes) -> Iterator[bytes]:
        yield first
        while True:
            yield part

    return spoil


def _slow(answer: bytes) -> Iterator[bytes]:
    """The right answer, but no client should wait for it."""
    for i in range(len(answer)):
        yield answer[i : i + 1]
        yield from [b""] * 20


def _doubled(answer: bytes) -> list[bytes]:
    """Each name of the outermost object occurs twice."""
    body = body_of(answer)
    return [whole(body.rstrip()[:-1] + b"," + body.lstrip()[1:])]


def _as(body: bytes, *lines: str, **options: str) -> Spoil:
    return lambda answer: [whole(body, *lines, **options)]


def _raw(*parts: bytes) -> Spoil:
    return lambda answer: parts


_CHUNKED = headed("Transfer-Encoding: chunked")
_HTML = b"<!doctype html><title>Welcome</title>"

FRAMES: dict[str, Spoil] = {
    "a length of 5,000 digits": _raw(headed("Content-Length: " + "9" * 5_000, rest=b"{}")),
    "a negative length": _raw(headed("Content-Length: -1", rest=b"{}")),
    "a length with an exponent": _raw(headed("Content-Length: 1e3", rest=b"{}")),
    "a length in other digits": _raw(headed("Content-Length: \xb2", rest=b"{}")),
    "no length after its name": _raw(headed("Content-Length:", rest=b"{}")),
    "two lengths": lambda answer: [whole(body_of(answer), "Content-Length: 1")],
    "a length of a terabyte": _raw(headed("Content-Length: 1000000000000", rest=b"{}")),
    "a length beyond the answer": lambda answer: [headed("Content-Length: 1000000", rest=body_of(answer))],
    "a length within the answer": lambda answer: [headed("Content-Length: 9", rest=body_of(answer))],
    "a chunk without a length": _raw(_CHUNKED + b"\r\n{}\r\n0\r\n\r\n"),
    "a chunk of a negative length": _raw(_CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n"),
    "a chunk of four gigabytes": _raw(_CHUNKED + b"ffffffff\r\n{}"),
    "a chunk that is longer than it says": _raw(_CHUNKED + b"1\r\n{}\r\n0\r\n\r\n"),
    "a last chunk that is missing": lambda answer: [
        _CHUNKED + b"%x\r\n%s\r\n" % (len(body_of(answer)), body_of(answer))
    ],
    "an endless line before a chunk": _endless(b"0" * 10_000, _CHUNKED),
    "endless chunks": _endless(b"1\r\n \r\n" * 1_000, _CHUNKED),
    "endless headers after the chunks": _endless(b"X: y\r\n" * 1_000, _CHUNKED + b"0\r\n"),
    "another encoding": lambda answer: [headed("Transfer-Encoding: gzip", rest=gzip.compress(body_of(answer)))],
    "an endless header": _endless(b"x" * 10_000, b"HTTP/1.1 200 OK\r\nX: "),
    "endless headers": _endless(b"X: y\r\n" * 1_000, b"HTTP/1.1 200 OK\r\n"),
    "a header without a colon": lambda answer: [answer.replace(b"\r\n", b"\r\nnothing\r\n", 1)],
    "endless announcements": _endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "a protocol that nobody asked for": _raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\0\1\2"),
    "an endless body": _endless(b" " * 100_000, headed()),
    "a body byte by byte": _slow,
    "nothing": _raw(),
    "silence": _endless(b""),
    "HTTP/0.9": _raw(_HTML),
    "HTTP/2": _raw(b"\0\0\x12\4\0\0\0\0\0\0\3\0\0\0\x80"),
    "TLS": _raw(b"\x15\3\3\0\2\2\x46"),
    "SSH": _raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "a status of two digits": lambda answer: [answer.replace(b" 200 ", b" 20 ", 1).replace(b" 201 ", b" 20 ", 1)],
    "the status 999": _as(b"{}", status="999 Blocked"),
}
"""What is not an answer of HTTP, or is not complete."""

ANSWERS: dict[str, Spoil] = {
    "a page": _as(_HTML, kind="text/html"),
    "a page as JSON": _as(_HTML),
    "no content": _raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "not modified": _raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "a redirection": _as(b"", "Location: https://127.0.0.1:1/login", status="307 Temporary Redirect"),
    "a redirection without an address": _as(b"", status="301 Moved Permanently"),
    "a proxy that wants a password": _as(_HTML, "WWW-Authenticate: Basic", status="401 Unauthorized", kind="text/html"),
    "a page that is not found": _as(_HTML, status="404 Not Found", kind="text/html"),
    "a problem of another service": _as(b'{"title": "x"}', status="404 Not Found", kind="application/problem+json"),
    "a problem that is cut": _as(b'{"detail": "x', status="422 Unprocessable", kind="application/problem+json"),
    "a problem that is nested": _as(b"[" * 100_000, status="409 Conflict", kind="application/problem+json"),
    "a failure": _as(_HTML, status="502 Bad Gateway", kind="text/html"),
    "a compressed body": lambda answer: [whole(gzip.compress(body_of(answer)), "Content-Encoding: gzip")],
    "lists, nested 100,000 deep": _as(b"[" * 100_000 + b"]" * 100_000),
    "objects, nested 100,000 deep": _as(b'{"items":' * 100_000 + b"1" + b"}" * 100_000),
    "bytes that are not UTF-8": lambda answer: [whole(body_of(answer).replace(b'"', b'"\xff'))],
    "names that occur twice": _doubled,
    "an integer of 5,000 digits": _as(b"9" * 5_000),
    **{f"the body {body}": _as(body.encode()) for body in ("", "null", "5", '"x"', "[]", "{}", "NaN", '{"items":[]}')},
    "items that are null": changed(lambda answer: answer | {"items": None, "name": None, "id": None}),
    "an item less": changed(lambda answer: {"items": answer.get("items", [])[1:]}),
    "an item more": changed(lambda answer: {"items": 2 * answer.get("items", [{}])}),
    "items without a status": changed(lambda answer: {"items": [{} for _ in answer.get("items", [])]}),
    "items that were stored, it says": changed(
        lambda answer: {"items": [{"status": 200}] * len(answer.get("items", []))}
    ),
    "items that were rejected, it says": changed(
        lambda answer: {"items": [{"status": 404, "problem": None}] * len(answer.get("items", []))}
    ),
}
"""Answers of HTTP that are not those of the service."""

WRONG = (None, True, -1, 2, 1e999, 10**400, "", "other", "\ud800", [], {}, ["a"], {"a": 1})
"""Values that are wrong for each field that the client needs."""


def nested(tree: Any, names: Iterable[str], value: Any) -> Any:
    """Return JSON in which each field of these names has another value."""
    if isinstance(tree, list):
        return [nested(each, names, value) for each in tree]
    if isinstance(tree, dict):
        return {name: value if name in names else nested(each, names, value) for name, each in tree.items()}
    return tree


def mutated(answer: bytes, chance: random.Random) -> bytes:
    """Return an answer with a few random changes of its bytes, or of its JSON."""
    if chance.random() < 0.5:
        tree = json.loads(body_of(answer))
        for _ in range(chance.randint(1, 3)):
            tree = _mutated_tree(tree, chance)
        return whole(json.dumps(tree).encode())
    data = bytearray(answer)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data)) if data else 0
        end = min(len(data), place + chance.choice([1, 1, 1, 5, 50]))
        piece = bytes(data[place:end])
        junk = chance.randbytes(chance.choice([1, 3, 20]))
        data[place:end] = chance.choice(
            [b"", junk, piece * 2, piece[::-1], piece + junk, b"\r\n", b"9" * 20, b"[" * 2_000]
        )
    return bytes(data)


def _mutated_tree(tree: Any, chance: random.Random) -> Any:
    """Return JSON in which one part is changed, at random."""
    if isinstance(tree, (dict, list)) and tree and chance.random() < 0.8:
        copy = tree.copy()
        place = chance.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        if chance.random() < 0.2:
            del copy[place]
        else:
            copy[place] = _mutated_tree(tree[place], chance)
        return copy
    with suppress(TypeError):
        return chance.choice([*WRONG, tree, [tree], {"arm": tree}, tree * 2, tree + tree])
    return chance.choice(WRONG)
