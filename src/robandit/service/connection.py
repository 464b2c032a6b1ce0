"""Connections of clients: HTTP/1.1 for the ASGI application, with limits on everything that a stranger can send.

httptools (llhttp, the parser of Node.js) finds the parts of a request. Until version 0.2, uvicorn put them together: it
lost bodies after ``Upgrade:``, and had too few limits. docs/results/front.md compares other servers with this file.
"""

from __future__ import annotations

import asyncio
import http
import math
import re
import traceback
from collections import deque
from email.utils import formatdate
from typing import Any, Final, cast

import httptools

from robandit.service.bodies import encode
from robandit.service.http import LARGEST_BODY, Application, Scope
from robandit.service.problems import MEDIA, RETRY, Refusal

LARGEST_HEAD = 64 << 10
"""Bytes of a head, of trailers, or between two parts of a chunked body."""
MOST_HEADERS = 100  # a short one takes 30 times as much memory as it has bytes
LARGEST_BUFFER = 64 << 10
"""Bytes of a body that wait for the application, before reading pauses."""
HEAD_PATIENCE = 30.0  # seconds until a head is complete, or until a client reads more of an answer
IDLE_PATIENCE = 75.0
LINGER = 2.0  # seconds in which the rest of a refused request is discarded, so that the client can read the answer
MOST_CHUNKS = 10_000  # of a body; 9,000 of one byte take 6 ms
LARGEST_FRAMING = 1 << 20  # bytes of chunk sizes, extensions and trailers of a body together
LARGEST_DISCARD = 64 << 20  # bytes of the rest of a refused request; of one that cannot be read, `LARGEST_BODY`
LONGEST_LINGER = 10.0  # the same, while the client goes on sending
MOST_PIPELINED = 16
MOST_TURNED_AWAY = 64  # connections at a time that are told that there are too many
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connections:
    """All connections of a server. If there are too many, those that wait for their clients are closed first."""

    def __init__(self, app: Application, most: int) -> None:
        """Accept up to ``most`` connections. A quarter of them is reserved for clients that have shown a key."""
        self.app: Final = app
        self.most: Final = most
        self.most_strangers: Final = most - most // 4
        self.tasks: set[asyncio.Task[None]] = set()
        self._all: set[Connection] = set()
        self._turned_away: set[Connection] = set()
        self._waiting: tuple[dict[Connection, None], dict[Connection, None]] = ({}, {})
        """Connections that wait for their clients, longest first: strangers, and those that have shown a key."""
        self._strangers = 0
        self.date = _date()
        """The header that all answers have."""

    def admit(self, connection: Connection) -> bool:
        """Add a connection, and return whether there is room. Another one that waits is closed for it."""
        full = len(self._all) >= self.most
        if full or self._strangers >= self.most_strangers:
            victim = next(iter(self._waiting[0]), None) or (next(iter(self._waiting[1]), None) if full else None)
            if victim is None:
                self._turned_away.add(connection)
                return False
            self.forget(victim)
            victim.abort()
        self._all.add(connection)
        self._strangers += 1
        self._waiting[0][connection] = None
        return True

    @property
    def is_crowded(self) -> bool:
        """Whether the connection that was turned away last gets no answer, since too many others do."""
        return len(self._turned_away) > MOST_TURNED_AWAY

    def forget(self, connection: Connection) -> None:
        """Remove a connection."""
        self._turned_away.discard(connection)
        if connection in self._all:
            self._all.remove(connection)
            self._waiting[connection.is_known].pop(connection, None)
            self._strangers -= not connection.is_known

    def mark_known(self, connection: Connection) -> None:
        """Note that a connection has shown a key."""
        if not connection.is_known and connection in self._all:
            self._waiting[0].pop(connection, None)
            self._strangers -= 1
            connection.is_known = True

    def waits(self, connection: Connection, *, for_client: bool) -> None:
        """Note that a connection waits for its client from now on, or that it does not wait."""
        waiting = self._waiting[connection.is_known]
        waiting.pop(connection, None)  # its place is that of its last wait
        if for_client and connection in self._all:
            waiting[connection] = None

    def tick(self, now: float) -> None:
        """Close the connections whose clients took too long. Call it every second, with the time of the loop."""
        self.date = _date()
        late = [each for each in (*self._all, *self._turned_away) if now > each.deadline]
        for connection in late:
            if not connection.prolong(now):
                connection.abort()

    def shut_down(self) -> None:
        """Close each connection after the calls that it has begun."""
        for connection in [*self._all, *self._turned_away]:
            connection.shut_down()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is being answered."""
        return not (self._all or self.tasks)


def _date() -> bytes:
    return f"date: {formatdate(usegmt=True)}\r\n".encode()


class _Call:
    """A request and its answer: ASGI's ``receive`` and ``send``."""

    def __init__(self, connection: Connection, scope: Scope, *, keep_alive: bool, awaits_continue: bool) -> None:
        self._connection = connection
        self.scope = scope
        self.keep_alive = keep_alive
        self.awaits_continue = awaits_continue
        self._body = bytearray()
        self._news: asyncio.Future[None] | None = None
        self._is_chunked = False
        self._is_read = False
        """Whether the application has all parts of the body."""
        self.head = b""
        self.whole = False
        """Whether the request is complete."""
        self.gone = False
        """Whether there is nobody to answer."""
        self.started = False
        self.ended = False

    async def run(self, app: Application) -> None:
        """Let the application answer."""
        try:
            await app(self.scope, self.receive, self.send)
        except Exception:
            traceback.print_exc()
        if not (self.ended or self.gone):
            self._connection.cut()

    # --- the request ----------------------------------------------------------------------------------------------------

    def add(self, body: bytes) -> int:
        """Append to the body, and return how much of it waits."""
        self._body += body
        self._notify()
        return len(self._body)

    def complete(self) -> None:
        """Note that the request is complete."""
        self.whole = True
        self._notify()

    def leave(self) -> None:
        """Note that the client has left, or that the rest of its request cannot be read."""
        self.gone = True
        self._notify()

    def _notify(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def receive(self) -> dict[str, Any]:
        """Return the next part of the body, or wait until the client leaves."""
        if self.awaits_continue and not (self.whole or self._body or self.started):
            self._connection.write(_CONTINUE)
        self.awaits_continue = False
        while not (self.gone or self.ended or self._body or (self.whole and not self._is_read)):
            self._connection.read_on()
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self.gone or self.ended:
            return {"type": "http.disconnect"}
        part, self._body = bytes(self._body), bytearray()
        self._is_read = self.whole
        return {"type": "http.request", "body": part, "more_body": not self.whole}

    # --- the answer -----------------------------------------------------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Send the head, or a part of the body. A head with a length is sent together with the body."""
        if self.gone:
            return
        if message["type"] == "http.response.start":
            self._start(message["status"], message["headers"])
            if self._is_chunked:
                self._connection.write(self.head)
                self.head = b""
            return
        part, more = message.get("body", b""), message.get("more_body", False)
        if self.scope["method"] == "HEAD":
            part = b""
        elif self._is_chunked:
            part = b"%x\r\n%b\r\n" % (len(part), part) if part else b""
            if not more:
                part += b"0\r\n\r\n"
        self._connection.write(self.head + part)
        self.head = b""
        if more:
            await self._connection.drained()
        else:
            self.ended = True
            self._notify()
            self._connection.end(self)

    def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = True
        lines = [_STATUS_LINES[status], self._connection.begin(self.scope)]
        has_length = status in (204, 304) or self.scope["method"] == "HEAD"
        for name, value in headers:
            lines.append(b"%b: %b\r\n" % (name, value))
            has_length |= name == b"content-length"
        if not has_length:
            if self.scope["http_version"] == "1.1":
                self._is_chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:  # the end of the connection is the end of the body
                self.keep_alive = False
        if not self.whole:  # the rest of the request is not read
            self.keep_alive = False
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        self.head = b"".join(lines)
        if self.head.count(b"\n") != len(lines) or self.head.count(b"\r") != len(lines):
            raise ValueError("a header has a line break")


class _Stop(Exception):
    """Ends the parser. The connection knows why."""


class Connection(asyncio.Protocol):
    """A connection. Its requests are answered one after another."""

    def __init__(self, connections: Connections, loop: asyncio.AbstractEventLoop) -> None:
        self._connections = connections
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)
        self._raw = b""
        """The bytes that are being parsed, from the segment on in which an unfinished head began."""
        self._transport: asyncio.Transport
        self._calls: deque[_Call] = deque()
        """Calls that are not answered yet. The first one is being answered; the last one may be incomplete."""
        self._unparsed = 0
        """Bytes received since the last event of the parser, or since nothing more is parsed."""
        self._stopped_parsing = False
        """Whether nothing more is parsed."""
        self._refusal: Refusal | None = None
        """Why the rest cannot be read. Sent after the answers to the calls before."""
        self._is_reading = True
        self._writable: asyncio.Future[None] | None = None
        self._is_between = False
        """Whether the next call waits until the client has read the last answer."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._in_head = False
        self.deadline = math.inf
        """When the client must have done its part."""
        self._unsent = 0
        """Bytes of answers that were not sent when the deadline was set, if the client is to read them."""
        self._chunks = 0
        self._framing = 0
        """Bytes since the last head that were not of a body."""
        self._discarded = 0
        self._discards_until = 0.0
        """When it stops to discard what the client sends, however much that is."""
        self.is_known = False
        """Whether it has shown a key."""

    # --- the transport --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or say that there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._set_deadline(HEAD_PATIENCE)
        if not self._connections.admit(self):
            if self._connections.is_crowded:
                self.abort()
            else:
                self._refuse("unavailable", "The server has too many connections: try again in a second", RETRY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the calls that nobody waits for them."""
        self._stopped_parsing = True
        self._is_between = False
        self._connections.forget(self)
        for call in self._calls:
            call.leave()
        self._calls.clear()
        self.resume_writing()

    def eof_received(self) -> bool:
        """Answer the requests that are complete, then close. Return whether there are such.

        Some clients (``nc -N``) close their half of the connection after a request. Who closes it in the middle of an answer has
        left: a page that follows an experiment must not be fed until the network notices.
        """
        self._stopped_parsing = True
        if not self._calls or not self._calls[-1].whole or self._calls[0].started:
            return False
        if self._refusal is None:
            self._calls[-1].keep_alive = False
        return True

    def pause_writing(self) -> None:
        """Wait for a client that reads slowly. No other call is answered meanwhile."""
        self._writable = self._loop.create_future()
        self._set_deadline(HEAD_PATIENCE, self._transport.get_write_buffer_size())
        self._connections.waits(self, for_client=True)

    def resume_writing(self) -> None:
        """Go on writing."""
        if self._writable is None:
            return
        if not self._writable.done():  # who waited may have been cancelled
            self._writable.set_result(None)
        self._writable = None
        if self._is_between:
            self._go_on()
        else:
            self._attend()

    async def drained(self) -> None:
        """Wait until there is room to write, or the client is gone."""
        if self._writable is not None:
            await self._writable

    def write(self, data: bytes) -> None:
        """Send bytes, if there is somebody to read them."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def read_on(self) -> None:
        """Read again, if reading is paused."""
        if not self._is_reading and not self._transport.is_closing():
            self._is_reading = True
            self._transport.resume_reading()

    def _read_later(self) -> None:
        if self._is_reading and not self._transport.is_closing():
            self._is_reading = False
            self._transport.pause_reading()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def cut(self) -> None:
        """Close in the middle of an answer, so that the client notices that it is incomplete."""
        self._transport.close()

    def shut_down(self) -> None:
        """Close, after the calls that have begun."""
        if not self._calls:
            self._transport.close()
        for call in self._calls:
            call.keep_alive = False

    def begin(self, scope: Scope) -> bytes:
        """Note whether the client has shown a key, and return the header that all answers have."""
        if "known" in scope:
            self._connections.mark_known(self)
        return self._connections.date

    def _set_deadline(self, seconds: float, unsent: int = 0) -> None:
        self.deadline = self._loop.time() + seconds
        self._unsent = unsent

    def prolong(self, now: float) -> bool:
        """Set a later deadline for a client that reads its answer, or that has yet to send what is discarded.

        Return whether there is one.
        """
        unsent = self._transport.get_write_buffer_size()
        if unsent < self._unsent:
            self._unsent = unsent
            self.deadline = now + HEAD_PATIENCE
        elif self._unparsed > LARGEST_HEAD:  # single bytes are not enough
            self._unparsed = 0
            self.deadline = min(now + LINGER, self._discards_until)
        return now < self.deadline

    def _attend(self) -> None:
        """Set the deadline for what is awaited from the client now, if anything is."""
        if self._writable is not None:
            return  # until the client has read more, as `pause_writing` has noted
        waits = not (self._calls and self._calls[0].whole)
        self._connections.waits(self, for_client=waits)
        if self._calls:  # the application limits the time of a body
            self.deadline = math.inf
        elif not self._stopped_parsing:
            self._set_deadline(HEAD_PATIENCE if self._in_head else IDLE_PATIENCE)

    # --- requests -------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, in parts that are small enough for the limits to apply in each."""
        for at in range(0, len(data), LARGEST_HEAD):
            self._parse(data[at : at + LARGEST_HEAD])

    def _parse(self, data: bytes) -> None:
        self._unparsed += len(data)
        if self._stopped_parsing:
            self._discarded += len(data)
            short = self._calls or self._refusal is not None
            if self._discarded > (LARGEST_BODY if short else LARGEST_DISCARD):
                self.abort()
            return
        self._framing += len(data)
        self._raw = self._raw + data if self._in_head else data
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_upgrade() + data[upgrade.args[0] :]
                continue
            except httptools.HttpParserError as error:
                if not self._stopped_parsing:
                    self._refuse("malformed", f"This is not valid HTTP/1.1: {str(error)[:100]}")
            break
        if self._stopped_parsing or not self._in_head:
            self._raw = b""
        if self._stopped_parsing:
            return
        if self._unparsed > LARGEST_HEAD:
            self._refuse("too-large", f"The head or the trailers are larger than {LARGEST_HEAD >> 10} KiB")
        elif self._framing > LARGEST_FRAMING:
            self._refuse("too-large", f"More than {LARGEST_FRAMING >> 10} KiB are not of the body: send fewer chunks")

    def _without_upgrade(self) -> bytes:
        """Return the head that was just parsed, without the upgrade, for a new parser.

        A server may ignore an upgrade (RFC 9110, 7.8). llhttp could; httptools ends the message at its head instead.
        """
        lines = [
            b"%b %b HTTP/%b\r\n" % (self._parser.get_method(), self._url, self._parser.get_http_version().encode())
        ]
        for name, value in self._headers:
            if name == b"connection":
                value = b", ".join(each for each in value.split(b",") if each.strip().lower() != b"upgrade")
            if name not in (b"upgrade", b"http2-settings"):
                lines.append(b"%b: %b\r\n" % (name, value))
        self._parser = httptools.HttpRequestParser(self)
        return b"".join([*lines, b"\r\n"])

    def on_message_begin(self) -> None:
        """Begin a head."""
        if self._stopped_parsing:
            raise _Stop
        self._unparsed = 0
        self._url = b""
        self._headers = []
        self._in_head = True
        if not self._calls:
            self._set_deadline(HEAD_PATIENCE)

    def on_url(self, url: bytes) -> None:
        """Collect the path and the query."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header. Trailers are dropped."""
        if self._in_head:
            self._headers.append((name.lower(), value))
            if len(self._headers) > MOST_HEADERS:
                self._refuse("too-large", f"The request has more than {MOST_HEADERS} headers: send fewer")
                raise _Stop

    def on_headers_complete(self) -> None:
        """Let the application answer, now or after the calls before."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse("malformed", "CONNECT is for proxies: this server is not one")
            raise _Stop
        if b" %b HTTP/" % self._url not in self._raw:  # llhttp also reads RTSP and ICE
            self._refuse("malformed", "The only protocol is HTTP/1.1")
            raise _Stop
        if self._parser.should_upgrade():
            return  # the head is parsed again, without the upgrade
        self._unparsed = self._chunks = self._framing = 0
        self._in_head = False
        version = self._parser.get_http_version()
        hosts = awaits_continue = 0
        for name, value in self._headers:
            if name == b"host":
                hosts += 1
            elif name == b"expect":
                awaits_continue += value.lower() == b"100-continue"
            elif name == b"transfer-encoding" and (value.lower() != b"chunked" or version != "1.1"):
                self._refuse("malformed", "The only transfer encoding is chunked, and only in HTTP/1.1")
                raise _Stop
        target = self._url
        if target.startswith(b"http://"):  # which clients send to proxies, and servers must accept
            target = re.sub(rb"http://[^/?#]*/?", b"/", target, count=1)
        path, _, query = target.partition(b"?")
        if version not in ("1.0", "1.1"):
            self._refuse("malformed", f"HTTP/{version} is not spoken here: use HTTP/1.1")
        elif hosts > 1 or (hosts == 0 and version == "1.1"):
            self._refuse("malformed", f"The request has {hosts} Host headers: send one")
        elif not path.startswith(b"/") or b"#" in target:
            self._refuse("malformed", "The request must be for a path that begins with /, without a fragment")
        elif len(self._calls) >= MOST_PIPELINED:
            self._refuse("too-many", f"More than {MOST_PIPELINED} requests wait on this connection: await the answers")
        if self._stopped_parsing:
            raise _Stop
        scope = {
            "type": "http",
            "http_version": version,
            "method": method.decode("ascii"),
            "raw_path": path,
            "query_string": query,
            "headers": self._headers,
        }
        keep_alive = version == "1.1" and self._parser.should_keep_alive()
        call = _Call(self, scope, keep_alive=keep_alive, awaits_continue=awaits_continue > 0 and version == "1.1")
        self._calls.append(call)
        if len(self._calls) == 1 and not self._is_between:
            self._start(call)
        else:
            self._read_later()

    def on_chunk_header(self) -> None:
        """Count the chunks: many small ones would hold the event loop."""
        self._chunks += 1
        if self._chunks > MOST_CHUNKS:
            self._refuse("too-large", f"A body may have at most {MOST_CHUNKS:,} chunks: send larger ones")
            raise _Stop

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._unparsed = 0
        self._framing -= len(body)
        if self._calls[-1].add(body) > LARGEST_BUFFER:
            self._read_later()

    def on_message_complete(self) -> None:
        """Pass the end of the request on."""
        if self._in_head:
            return  # of an upgrade
        self._unparsed = 0
        call = self._calls[-1]
        call.complete()
        if not call.keep_alive:
            self._stopped_parsing = True  # what follows is not a request
        if call is self._calls[0]:
            self._attend()

    def _start(self, call: _Call) -> None:
        task = self._loop.create_task(call.run(self._connections.app))
        self._connections.tasks.add(task)
        task.add_done_callback(self._connections.tasks.discard)
        self._attend()

    # --- answers --------------------------------------------------------------------------------------------------------

    def end(self, call: _Call) -> None:
        """Go on after an answer: with the next call, or with what the client sends next."""
        if not self._calls or call is not self._calls[0]:
            return  # the connection is lost
        self._calls.popleft()
        if not call.keep_alive:
            for later in self._calls:
                later.leave()
            self._calls.clear()
            self._close_after(whole=call.whole)
        elif self._writable is None:
            self._go_on()
        else:
            self._is_between = True

    def _go_on(self) -> None:
        self._is_between = False
        if self._calls:
            self._start(self._calls[0])
        elif self._refusal is not None:
            self._send_refusal()
        else:
            self.read_on()
            self._attend()

    def _refuse(self, code: str, detail: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Parse nothing more. Answer the calls before, then say why, and close."""
        self._stopped_parsing = True
        self._refusal = Refusal(code, detail, headers)
        if self._calls and not self._calls[-1].whole:
            call = self._calls.pop()
            call.leave()
            if call.started:
                self.cut()
                return
        if not (self._calls or self._is_between):
            self._send_refusal()

    def _send_refusal(self) -> None:
        assert self._refusal is not None
        problem = self._refusal.problem
        body = encode(problem)
        lines = [_STATUS_LINES[problem.status], self._connections.date, b"content-type: " + MEDIA + b"\r\n"]
        lines += [b"%b: %b\r\n" % header for header in self._refusal.headers]
        lines += [b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body), body]
        self.write(b"".join(lines))
        self._close_after(whole=False)

    def _close_after(self, *, whole: bool) -> None:
        """Close when everything is sent. If more may arrive, discard it for a moment: else the client may lose the answer."""
        self._stopped_parsing = True
        unsent = self._transport.get_write_buffer_size()
        if whole:
            self._set_deadline(HEAD_PATIENCE, unsent)
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()
            self._unparsed = 0
            self._set_deadline(LINGER, unsent)
            self._discards_until = self._loop.time() + LONGEST_LINGER
            self._connections.waits(self, for_client=True)
            self.read_on()
