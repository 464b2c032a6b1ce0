"""Requests and answers of HTTP/1.1 as bytes. Nothing here waits: both clients use it.

Written for this one purpose because `http.client` limits single reads, not a whole answer, and works with blocking sockets only.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from robandit_client.errors import InvalidInput, formatted
from robandit_client.values import invalid

LONGEST_HEAD = 1 << 16
LONGEST_BODY = 1 << 23  # a batch of which all 1,000 items fail has about half of it
LONGEST_LINE = 1 << 10  # before a chunk
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_PLAIN = re.compile(r"[!-~]+")
_OURS = re.compile(r"/+v1(/+experiments(/.*)?)?")
"""A path of the service. One that only ends like it, such as /api/v1, may be the prefix of a proxy."""


class Broken(ConnectionError):
    """An answer that is cut off, or cannot be used."""


class Unexpected(Broken):
    """An answer that is not one of the decision service to this call."""


class Stale(Broken):
    """A connection that the server closed, or wrote to, while it was idle. No byte of an answer has come."""


class Address(NamedTuple):
    """Where the service is."""

    secure: bool
    host: str
    port: int
    prefix: str
    """The path before /v1, for a service behind a proxy."""

    @property
    def authority(self) -> str:
        """The host, and the port if it is not the usual one, as in the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address as text."""
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.prefix}"


def parsed(url: str) -> Address:
    """Return the parts of a URL.

    >>> parsed("https://bandits.example.org/decide/")
    Address(secure=True, host='bandits.example.org', port=443, prefix='/decide')
    """
    rule = "the address of a service, such as http://127.0.0.1:8000"
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        usual = {"http": 80, "https": 443}[parts.scheme]
        port = parts.port or usual
    except (AttributeError, KeyError, TypeError, ValueError):
        raise invalid("url", url, rule) from None
    if not host or not _PLAIN.fullmatch(url) or parts.query or parts.fragment:
        raise invalid("url", url, rule)
    if "@" in parts.netloc:
        raise InvalidInput("url contains a user name, which the service does not use: pass the key instead")
    address = Address(parts.scheme == "https", host, port, parts.path.rstrip("/"))
    if _OURS.fullmatch(address.prefix):
        rule = "the address of the server without /v1, which the client adds"
        raise invalid("url", url, rule, hint=f"use {formatted(address._replace(prefix='').url)}")
    return address


def checked_key(key: str | None) -> str | None:
    """Return a key, if a header can contain it. The message does not show it."""
    if key is not None and (not isinstance(key, str) or not _PLAIN.fullmatch(key)):
        raise InvalidInput("key must be printable ASCII without spaces, such as rb_...", parameter="key")
    return key


def path_of(name: str, rest: str = "") -> str:
    """Return the path of an experiment, or one below it.

    >>> path_of("provider", "decisions/batch")
    '/v1/experiments/provider/decisions/batch'
    """
    return f"/v1/experiments/{quote(name, safe='')}{'/' if rest else ''}{rest}"


def request(
    address: Address, key: str | None, method: str, path: str, body: bytes | None, unless: str | None = None
) -> bytes:
    """Return the bytes of a request. ``unless`` is the version that the caller has: the service then answers 304."""
    lines = [
        f"{method} {address.prefix}{path} HTTP/1.1",
        f"Host: {address.authority}",
        "User-Agent: robandit.client",
        "Accept: application/json",
    ]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    if unless is not None:
        lines.append(f'If-None-Match: "{unless}"')
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")


class Response(NamedTuple):
    """An answer, complete."""

    status: int
    headers: dict[str, str]
    """By names in lower case."""
    body: bytes
    reusable: bool
    """Whether the connection can be used for another request."""


class Reader:
    """Reads an answer from parts, as they arrive. It can be used once."""

    def __init__(self) -> None:
        self.began = False
        """Whether any byte has come."""
        self._buffer = bytearray()
        self._announced = 0  # bytes of heads before the one of the answer
        self._head: tuple[int, dict[str, str], bool] | None = None
        self._chunks = bytearray()

    def feed(self, data: bytes) -> Response | None:
        """Return the answer, if it is complete now. No data means that the connection was closed."""
        self.began = self.began or bool(data)
        self._buffer += data
        while self._head is None:
            if not self._read_head():
                if not data:
                    raise Broken("the connection was closed before an answer")
                return None
        status, headers, keep = self._head
        body = self._read_body(status, headers, ended=not data)
        if body is not None:
            return Response(status, headers, body, keep and bool(data) and not self._buffer)
        if not data:
            raise Broken("the connection was closed in the middle of an answer")
        if len(self._buffer) + len(self._chunks) > LONGEST_BODY:
            raise Unexpected("the answer is too long")
        return None

    def _read_head(self) -> bool:
        """Take a head from the buffer. Return whether it was complete."""
        if not b"HTTP/1.".startswith(self._buffer[:7]):
            raise Unexpected("the answer is not HTTP/1.1")
        end = self._buffer.find(b"\r\n\r\n")
        if self._announced + (end if end >= 0 else len(self._buffer)) > LONGEST_HEAD:
            raise Unexpected("the head of the answer is too long")
        if end < 0:
            return False
        head = _parsed_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        if head[0] >= 200:  # 100 to 199 announce the answer
            self._head = head
        self._announced += end + 4
        return True

    def _read_body(self, status: int, headers: dict[str, str], *, ended: bool) -> bytes | None:
        """Take the body from the buffer, if it is complete."""
        if status in (204, 304):
            return b""
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked":
                raise Unexpected("the answer has an unknown encoding")
            return self._unchunked()
        if "content-length" not in headers:  # the answer ends with the connection
            return self._taken(len(self._buffer)) if ended else None
        length = headers["content-length"]
        if not length.isdecimal() or not length.isascii():
            raise Unexpected("the answer has no valid length")
        if len(length) > len(str(LONGEST_BODY)) or int(length) > LONGEST_BODY:
            raise Unexpected("the answer is too long")
        return self._taken(int(length)) if len(self._buffer) >= int(length) else None

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _unchunked(self) -> bytes | None:
        """Take the chunks from the buffer that are complete. Return all of them after the last one."""
        while True:
            line = self._buffer.find(b"\r\n", 0, LONGEST_LINE)
            if line < 0 and len(self._buffer) < LONGEST_LINE:
                return None
            digits = bytes(self._buffer[: max(line, 0)]).partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", digits):
                raise Unexpected("the answer has a chunk without a valid length")
            size = int(digits, 16)
            if size == 0:
                break
            start, end = line + 2, line + 2 + size
            if len(self._buffer) < end + 2:
                return None
            if self._buffer[end : end + 2] != b"\r\n":
                raise Unexpected("the answer has a chunk that does not end where it should")
            self._chunks += self._buffer[start:end]
            del self._buffer[: end + 2]
        end = self._buffer.find(b"\r\n\r\n", line)  # there may be headers after the last chunk
        if max(end, 0) > LONGEST_HEAD or (end < 0 and len(self._buffer) > LONGEST_HEAD):
            raise Unexpected("the answer has too many headers after its last chunk")
        if end < 0:
            return None
        del self._buffer[: end + 4]
        return bytes(self._chunks)


def _parsed_head(head: bytes) -> tuple[int, dict[str, str], bool]:
    """Return the status, the headers, and whether the connection stays open."""
    first, *lines = head.split(b"\r\n")
    match = _STATUS.fullmatch(first)
    if match is None:
        raise Unexpected("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise Unexpected("the answer has a header without a colon")
        key = name.strip().lower()
        if key == "content-length" and headers.get(key, value.strip()) != value.strip():
            raise Unexpected("the answer has two lengths")
        headers[key] = value.strip()
    keep = match[1] == b"1" and "close" not in headers.get("connection", "").lower()
    if "content-length" in headers and "transfer-encoding" in headers:
        keep = False  # a proxy before may have used the other one
    return int(match[2]), headers, keep
