"""Requests and answers of HTTP/1.1 as bytes. Nothing here waits: both clients use it.

Written for this one purpose because `http.client` limits single reads, not a whole answer, and works with blocking sockets only.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from robandit.client.values import invalid
from robandit.errors import InvalidInput

LONGEST_HEAD = 1 << 16
LONGEST_BODY = 1 << 26
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_PLAIN = re.compile(r"[!-~]+")


class Broken(ConnectionError):
    """An answer that is cut off, or is not HTTP."""


class Stale(Broken):
    """A connection that the server closed while it was idle. No byte of an answer has come."""


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
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise invalid("url", url, rule) from None
    if not host or not _PLAIN.fullmatch(url) or parts.query or parts.fragment:
        raise invalid("url", url, rule)
    if "@" in parts.netloc:
        raise InvalidInput("url contains a user name, which the service does not use: pass the key instead")
    return Address(parts.scheme == "https", host, port, parts.path.rstrip("/"))


def checked_key(key: str | None) -> str | None:
    """Return a key, if a header can contain it. The message does not show it."""
    if key is not None and (not isinstance(key, str) or not _PLAIN.fullmatch(key)):
        raise InvalidInput("key must be printable ASCII without spaces, such as rb_...", parameter="key")
    return key


def path_of(*parts: str) -> str:
    """Return a path below /v1/experiments.

    >>> path_of("provider", "decisions/batch")
    '/v1/experiments/provider/decisions/batch'
    """
    name, *rest = parts
    return "/".join(("/v1/experiments", quote(name, safe=""), *rest))


def request(address: Address, key: str | None, method: str, path: str, body: bytes | None) -> bytes:
    """Return the bytes of a request."""
    lines = [
        f"{method} {address.prefix}{path} HTTP/1.1",
        f"Host: {address.authority}",
        "User-Agent: robandit.client",
        "Accept: application/json",
    ]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
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
        """Wait for the first byte."""
        self.began = False
        """Whether any byte has come."""
        self._buffer = bytearray()
        self._head: tuple[int, dict[str, str], bool] | None = None

    def feed(self, data: bytes) -> Response | None:
        """Return the answer, if it is complete now. No data means that the connection was closed."""
        self.began = self.began or bool(data)
        self._buffer += data
        while self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if not data:
                    raise Broken("the connection was closed before an answer")
                if len(self._buffer) > LONGEST_HEAD:
                    raise Broken("the head of the answer is too long")
                return None
            head = _parsed_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if head[0] >= 200:  # 100 to 199 announce the answer
                self._head = head
        response = self._complete(*self._head, ended=not data)
        if response is None and not data:
            raise Broken("the connection was closed in the middle of an answer")
        if response is None and len(self._buffer) > LONGEST_BODY:
            raise Broken("the answer is too long")
        return response

    def _complete(self, status: int, headers: dict[str, str], keep: bool, *, ended: bool) -> Response | None:
        length = headers.get("content-length", "")
        if status in (204, 304):
            end, body = 0, b""
        elif "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked":
                raise Broken("the answer has an unknown encoding")
            found = _unchunked(self._buffer)
            if found is None:
                return None
            end, body = found
        elif length:
            if not length.isdecimal() or not length.isascii():
                raise Broken("the answer has no valid length")
            end = int(length)
            if len(self._buffer) < end:
                return None
            body = bytes(self._buffer[:end])
        else:  # the answer ends with the connection
            if not ended:
                return None
            keep, end, body = False, len(self._buffer), bytes(self._buffer)
        return Response(status, headers, body, keep and not ended and len(self._buffer) == end)


def _parsed_head(head: bytes) -> tuple[int, dict[str, str], bool]:
    """Return the status, the headers, and whether the connection stays open."""
    first, *lines = head.split(b"\r\n")
    match = _STATUS.fullmatch(first)
    if match is None:
        raise Broken("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise Broken("the answer has a header without a colon")
        key = name.strip().lower()
        if key == "content-length" and headers.get(key, value.strip()) != value.strip():
            raise Broken("the answer has two lengths")
        headers[key] = value.strip()
    keep = match[1] == b"1" and headers.get("connection", "").lower() != "close"
    return int(match[2]), headers, keep


def _unchunked(buffer: bytearray) -> tuple[int, bytes] | None:
    """Return where a body in chunks ends, and the body; None if there is more to come."""
    position, parts = 0, []
    while True:
        line = buffer.find(b"\r\n", position)
        if line < 0:
            return None
        digits = bytes(buffer[position:line]).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", digits):
            raise Broken("the answer has a chunk without a valid length")
        size = int(digits, 16)
        if size == 0:
            break
        start, end = line + 2, line + 2 + size
        if len(buffer) < end + 2:
            return None
        parts.append(bytes(buffer[start:end]))
        position = end + 2
    end = buffer.find(b"\r\n\r\n", line)  # there may be headers after the last chunk
    return None if end < 0 else (end + 4, b"".join(parts))
