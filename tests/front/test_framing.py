"""Where requests begin and end: ambiguous, broken, pipelined and upgraded ones, in every division into segments.

`helpers.wires.Wire` feeds a `Connection` without a network. h11, a parser with which ours
shares nothing, is the judge of random streams. A real server answers the same cases at the end.
"""

import asyncio
import itertools
import json
import re
import socket

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.wires import Transport, Wire, request
from robandit.service.connection import (
    LARGEST_DISCARD,
    LARGEST_FRAMING,
    LARGEST_HEAD,
    MOST_CHUNKS,
    MOST_HEADERS,
    MOST_PIPELINED,
    Connection,
    Connections,
)
from robandit.service.http import LARGEST_BODY

P = "/v1/experiments/p"


CHUNKED = "Transfer-Encoding: chunked"
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
SMUGGLED = b"\r\n" * 6_000 + b"DELETE /e1 HTTP/1.1\r\nX: "

ACCEPTED = {
    "a length": (request("Content-Length: 3", body=b"abc"), [("POST", b"/x", b"abc")]),
    "no length": (request(), [("POST", b"/x", b"")]),
    "chunks": (request(CHUNKED, body=b"1\r\na\r\nA\r\n0123456789\r\n0\r\n\r\n"), [("POST", b"/x", b"a0123456789")]),
    "chunk extensions": (request(CHUNKED, body=b"1;a=b\r\na\r\n0\r\n\r\n"), [("POST", b"/x", b"a")]),
    "trailers": (request(CHUNKED, body=b"1\r\na\r\n0\r\nX: y\r\nHost: z\r\n\r\n"), [("POST", b"/x", b"a")]),
    "empty headers": (request("X:", "Y: ", "Connection:"), [("POST", b"/x", b"")]),
    "empty lines before": (b"\r\n\r\n" + request(), [("POST", b"/x", b"")]),
    "pipelined": (
        request("Content-Length: 1", body=b"a")
        + request(path="/y", method="GET")
        + request(CHUNKED, body=b"0\r\n\r\n"),
        [("POST", b"/x", b"a"), ("GET", b"/y", b""), ("POST", b"/x", b"")],
    ),
    "an absolute target": (request(path="http://x/y?z=1"), [("POST", b"/y?z=1", b"")]),
    "an absolute target without a path": (request(path="http://x?z=1"), [("POST", b"/?z=1", b"")]),
    "an absolute target of nothing else": (request(path="http://x"), [("POST", b"/", b"")]),
    "another protocol in a header": (request("X: /x RTSP/1.0", path="/x"), [("POST", b"/x", b"")]),
    "an upgrade": (request(*UPGRADE, "Content-Length: 3", body=b"abc"), [("POST", b"/x", b"abc")]),
    "an upgrade without a body": (request(*UPGRADE, method="GET"), [("GET", b"/x", b"")]),
    "an upgrade with chunks": (request(*UPGRADE, CHUNKED, body=b"3\r\nabc\r\n0\r\n\r\n"), [("POST", b"/x", b"abc")]),
    "an unknown upgrade": (
        request("Connection: keep-alive, upgrade", "Upgrade: foo", f"Content-Length: {len(SMUGGLED)}", body=SMUGGLED),
        [("POST", b"/x", SMUGGLED)],
    ),
    "a web socket": (
        request("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AAAA", method="GET"),
        [("GET", b"/x", b"")],
    ),
    "upgrades in a row": (request(*UPGRADE, "Content-Length: 1", body=b"a") * 3, [("POST", b"/x", b"a")] * 3),
}


def places(data):
    """Return where to divide a request: everywhere, if it is short."""
    return range(1, len(data)) if len(data) < 500 else range(1, len(data), len(data) // 20)


@pytest.mark.parametrize("name", ACCEPTED)
def test_requests_are_read_whole_in_any_two_segments(name):
    data, calls = ACCEPTED[name]
    for parts in (
        [data],
        *([data[:at], data[at:]] for at in places(data)),
        [data[i : i + 1] for i in range(len(data))],
    ):
        if len(parts) < 1_000:
            wire = Wire()
            assert wire.feed(*parts) == [200] * len(calls)
            assert wire.calls == calls
            assert wire.is_open
            assert b"upgrade" not in wire.headers
            assert wire.headers[b"host"] == b"x"  # not that of a trailer


REFUSED = {
    "length and chunks": request("Content-Length: 5", CHUNKED, body=b"0\r\n\r\n"),
    "chunks and length": request(CHUNKED, "Content-Length: 5", body=b"0\r\n\r\n"),
    "two lengths": request("Content-Length: 1", "Content-Length: 2", body=b"ab"),
    "a length twice": request("Content-Length: 1", "Content-Length: 1", body=b"a"),
    "a list of lengths": request("Content-Length: 1, 1", body=b"a"),
    "a length with a sign": request("Content-Length: +1", body=b"a"),
    "a negative length": request("Content-Length: -1", body=b"a"),
    "a hexadecimal length": request("Content-Length: 0x1", body=b"a"),
    "a length with a space": request("Content-Length: 1 2", body=b"abc"),
    "an empty length": request("Content-Length: ", body=b"a"),
    "a huge length": request(f"Content-Length: {'9' * 5_000}", body=b"a"),
    "an unknown encoding": request("Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "identity": request("Transfer-Encoding: identity", body=b"abc"),
    "gzip and chunked": request("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "chunked and identity": request("Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"),
    "chunked twice": request(CHUNKED, CHUNKED, body=b"0\r\n\r\n"),
    "a space before the colon": request("Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    "a vertical tab": request("Transfer-Encoding: chunked\x0b", body=b"0\r\n\r\n"),
    "chunks in HTTP/1.0": request(CHUNKED, body=b"0\r\n\r\n", version="1.0"),
    "a folded header": request("X: a", " b", "Content-Length: 1", body=b"a"),
    "a header before its name": request(" X: a"),
    "a bare line feed": b"POST /x HTTP/1.1\nHost: x\n\n",
    "a bare line feed in the head": b"POST /x HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "a bare carriage return": b"POST /x HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
    "a null byte": request("X: a\x00b"),
    "a header without a colon": request("X"),
    "a header without a name": request(": x"),
    "no host": request(host=False),
    "two hosts": request("Host: y"),
    "a line feed after a chunk's size": request(CHUNKED, body=b"1\na\r\n0\r\n\r\n"),
    "a line feed after a chunk": request(CHUNKED, body=b"1\r\na\n0\r\n\r\n"),
    "other bytes after a chunk": request(CHUNKED, body=b"1\r\naXX0\r\n\r\n"),
    "a line feed in an extension": request(CHUNKED, body=b"1;a\nb\r\na\r\n0\r\n\r\n"),
    "a negative chunk": request(CHUNKED, body=b"-1\r\na\r\n0\r\n\r\n"),
    "a chunk of 0x1": request(CHUNKED, body=b"0x1\r\na\r\n0\r\n\r\n"),
    "a chunk size with a space": request(CHUNKED, body=b"1 \r\na\r\n0\r\n\r\n"),
    "a huge chunk": request(CHUNKED, body=b"fffffffffffffffff\r\na\r\n0\r\n\r\n"),
    "a length in the trailers": request(CHUNKED, body=b"1\r\na\r\n0\r\nContent-Length: 5\r\n\r\n"),
    "CONNECT": request(method="CONNECT", path="x:1"),
    "CONNECT with a path": request(method="CONNECT", path="/x"),
    "CONNECT with an address": request("Content-Length: 1", method="CONNECT", path="http://x/x", body=b"a"),
    "CONNECT with an upgrade": request(*UPGRADE, method="CONNECT", path="/x"),
    "OPTIONS *": request(method="OPTIONS", path="*"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/2.0": request(version="2.0"),
    "HTTP/0.9": b"GET /x\r\n\r\n",
    "HTTP/1.2": request(version="1.2"),
    "RTSP": b"OPTIONS /x RTSP/1.0\r\nHost: x\r\n\r\n",
    "RTSP/1.1": b"POST /x RTSP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na",
    "RTSP with an upgrade": b"GET /x RTSP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    "ICE": b"SOURCE /x ICE/1.0\r\nHost: x\r\n\r\n",
    "an unknown method": request(method="FOO"),
    "a method in small letters": request(method="post"),
    "a path that is not ASCII": request(path="/é"),
    "a fragment": request(path="/x#y"),
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(40),
    "an upgrade with two lengths": request(*UPGRADE, "Content-Length: 1", "Content-Length: 2", body=b"ab"),
    "an upgrade with length and chunks": request(*UPGRADE, "Content-Length: 1", CHUNKED, body=b"0\r\n\r\n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ambiguous_requests_are_refused_and_end_the_connection(name):
    """No call before the refusal is lost, and none after it is made: what follows might be a part of the refused one."""
    data = REFUSED[name]
    before, after = request("Content-Length: 1", body=b"a", path="/before"), request(path="/after")
    for parts in (
        [data],
        [before + data + after],
        *([before, data[:at], data[at:] + after] for at in places(data)),
    ):
        wire = Wire()
        statuses = wire.feed(*parts)
        calls = [] if parts == [data] else [("POST", b"/before", b"a")]
        assert wire.calls == calls, parts
        assert statuses == [200] * len(calls) + [400], parts
        assert not wire.is_open
        answer = wire.transport.written.rpartition(b"\r\n\r\n")[2]
        assert json.loads(answer)["code"] == "malformed"


def test_a_refusal_does_not_overtake_an_answer():
    """uvicorn sent 400 at once: the client took it for the answer to its first call, which was then stored."""
    wire = Wire()

    async def run():
        release, transport = asyncio.Event(), Transport()

        async def slow(scope, receive, send):
            await release.wait()
            await wire.app(scope, receive, send)

        connection = Connection(Connections(slow, 100), asyncio.get_running_loop())
        connection.connection_made(transport)
        connection.data_received(request() + b"nonsense\r\n\r\n")
        await asyncio.sleep(0)
        assert transport.written == b""
        release.set()
        await asyncio.sleep(0.01)
        return re.findall(rb"HTTP/1\.1 (\d+) ", transport.written)

    assert asyncio.run(run()) == [b"200", b"400"]


def test_what_follows_a_request_that_closes_is_not_a_request():
    wire = Wire()
    assert wire.feed(request("Connection: close") + request(path="/y")) == [200]
    assert wire.calls == [("POST", b"/x", b"")]
    assert wire.transport.closed
    old = Wire()
    assert old.feed(request(version="1.0", host=False) + request(path="/y")) == [200]
    assert old.transport.closed


def test_the_rest_of_a_refused_request_is_discarded():
    """An application that does not read (401, 413, 429): the answer says that the connection ends, and it does."""
    wire = Wire(reads=False)
    rest = b"x" * (5 * LARGEST_BODY)
    assert wire.feed(request("Content-Length: 99999999"), request(path="/y"), rest) == [200]
    assert wire.calls == [("POST", b"/x", b"")]
    assert b"connection: close\r\n" in wire.transport.written
    assert wire.transport.ended
    assert not wire.transport.closed


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (request(CHUNKED, body=b"1\r\na\r\n0\r\n"), b"A: b\r\n"),  # trailers
        (request(CHUNKED, body=b"1\r\na\r\n0\r\nX: "), b"a"),  # a trailer without end
        (request(CHUNKED, body=b"1;x="), b"a"),  # an extension of a chunk
        (b"POST /x HTTP/1.1\r\n", b"A: %b\r\n" % (b"b" * 1_195)),
        (b"POST /x HTTP/1.1\r\nX: ", b"a"),
        (b"POST /", b"a"),
    ],
)
def test_heads_trailers_and_extensions_have_a_limit(start, more):
    wire = Wire()
    piece = more * (1_200 // len(more))
    assert wire.feed(start, *[piece] * (LARGEST_HEAD // len(piece) - 3)) == []
    assert wire.feed(start, *[piece] * (LARGEST_HEAD // len(piece) + 3)) == [413]
    assert wire.calls == []
    assert not wire.is_open


def test_a_segment_does_not_exceed_the_limit_of_a_head():
    """Event loops read up to 256 KiB at once."""
    assert Wire().feed(request(f"X: {'x' * 3 * LARGEST_HEAD}")) == [413]
    assert Wire().feed(request(CHUNKED, body=b"0\r\nX: " + b"x" * 3 * LARGEST_HEAD)) == [413]
    body = b"x" * 3 * LARGEST_HEAD
    wire = Wire()
    assert wire.feed(request(f"Content-Length: {len(body)}", body=body)) == [200]
    assert wire.calls == [("POST", b"/x", body)]


def test_headers_have_a_limit():
    """The head b"a:\\r\\n" * 16,000 is smaller than 64 KiB, and took 2 MB of memory."""
    assert Wire().feed(request(*["a:"] * (MOST_HEADERS - 1))) == [200]  # and a host
    for parts in ([request(*["a:"] * MOST_HEADERS)], [request(*["a:"] * 50)[:-2], b"a:\r\n" * 60]):
        wire = Wire()
        assert wire.feed(*parts) == [413]
        assert wire.calls == []
        assert not wire.is_open


def chunked(count, chunk):
    body = chunk * count + b"0\r\n\r\n"
    return [request(CHUNKED), *(body[i : i + 10_000] for i in range(0, len(body), 10_000))]


def test_small_chunks_are_read_up_to_a_limit():
    """A body of 250,000 chunks of one byte kept /healthz waiting for 110 ms."""
    count = MOST_CHUNKS - 1  # the last chunk counts, too; and more framing than a head may have
    wire = Wire()
    assert wire.feed(*chunked(count, b"1;ext=1\r\na\r\n")) == [200]
    assert wire.calls == [("POST", b"/x", b"a" * count)]
    for parts in (chunked(count + 1, b"1\r\na\r\n"), [b"".join(chunked(30_000, b"1\r\na\r\n"))]):
        wire = Wire()
        assert wire.feed(*parts) == [413]
        assert wire.calls == []
        assert not wire.is_open


def test_extensions_have_a_limit_in_all():
    extended = b"1;%b\r\na\r\n" % (b"x" * 30_000)
    assert Wire().feed(*chunked(LARGEST_FRAMING // len(extended) - 1, extended)) == [200]
    assert Wire().feed(*chunked(LARGEST_FRAMING // len(extended) + 2, extended)) == [413]


def test_the_rest_of_a_refused_request_is_discarded_up_to_a_limit():
    part = b"x" * (1 << 20)
    for more, closed in ((-1, False), (2, True)):
        wire = Wire(reads=False)
        rest = [part] * ((LARGEST_DISCARD >> 20) + more)
        assert wire.feed(request("Content-Length: 99999999"), *rest) == [200]
        assert wire.transport.closed == closed
        malformed = Wire()
        assert malformed.feed(request("Content-Length: x"), *[part] * ((LARGEST_BODY >> 20) + more)) == [400]
        assert malformed.transport.closed == closed


def test_pipelined_requests_have_a_limit():
    wire = Wire()
    assert wire.feed(request() * MOST_PIPELINED) == [200] * MOST_PIPELINED
    wire = Wire()
    assert wire.feed(request() * (MOST_PIPELINED + 10_000)) == [200] * MOST_PIPELINED + [429]
    assert len(wire.calls) == MOST_PIPELINED


def test_continue_is_said_once_and_only_to_who_is_read():
    wire = Wire()
    statuses = wire.feed(request("Content-Length: 1", "Expect: 100-continue"), b"a")
    assert statuses == [100, 200]
    assert wire.feed(request("Content-Length: 1", "Expect: 100-continue", body=b"a")) == [200]
    refused = Wire(reads=False)
    assert refused.feed(request("Content-Length: 1", "Expect: 100-continue")) == [200]
    assert not refused.is_open
    old = request("Content-Length: 1", "Expect: 100-continue", version="1.0")  # which knows no such answer
    assert Wire().feed(old, b"a") == [200]


def test_an_answer_never_has_a_line_break_in_a_header(capfd):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\nSet-Cookie: b")]})

    wire = Wire()
    wire.app = app
    assert wire.feed(request()) == []
    assert wire.transport.closed
    assert "line break" in capfd.readouterr().err


# --- random streams, with h11 as the judge --------------------------------------------------------------------------------------


def by_h11(data):
    """Return the requests that h11 reads, until it refuses one or the data end."""
    connection, calls, current = h11.Connection(h11.SERVER), [], None
    connection.receive_data(data)
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            return calls
        if isinstance(event, h11.Request):
            current = [event.method.decode(), event.target, b""]
        elif isinstance(event, h11.Data):
            current[2] += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            calls.append(tuple(current))
            if connection.their_state is not h11.DONE and connection.their_state is not h11.MIGHT_SWITCH_PROTOCOL:
                return calls
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            try:
                connection.start_next_cycle()
            except h11.LocalProtocolError:
                return calls
        elif event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            return calls


BODIES = st.one_of(
    st.binary(max_size=20).map(lambda body: (f"Content-Length: {len(body)}", body)),
    st.lists(st.binary(min_size=1, max_size=20), max_size=3).map(
        lambda parts: (CHUNKED, b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n")
    ),
    st.just(("X: y", b"")),
)
REQUESTS = st.builds(
    lambda body, upgrades, path: request(*(UPGRADE if upgrades else ()), body[0], body=body[1], path=path),
    BODIES,
    st.booleans(),
    st.sampled_from(["/", "/a?b=c", "/%2F"]),
)
DAMAGE = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b":",
        b"0",
        b"\x00",
        b"1\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
    ]
)


@settings(max_examples=amount(100, 5_000))
@given(
    st.lists(REQUESTS, min_size=1, max_size=4),
    st.lists(st.tuples(st.floats(0, 1), DAMAGE, st.integers(0, 3)), max_size=2),
    st.lists(st.floats(0, 1), max_size=3),
)
@example(
    [request("Connection: Upgrade", "Upgrade: foo", "Content-Length: 20", body=b"GET /evil HTTP/1.1\r\n")], [], [0.9]
)
def test_we_agree_with_h11_wherever_both_read_a_request(requests, damages, cuts):
    data = b"".join(requests)
    for where, text, instead_of in damages:
        at = int(where * len(data))
        data = data[:at] + text + data[at + instead_of :]
    cut_at = sorted({int(cut * len(data)) for cut in cuts} | {0, len(data)})
    wire = Wire()
    wire.feed(*[data[begin:end] for begin, end in itertools.pairwise(cut_at)])
    theirs = by_h11(data)
    common = min(len(theirs), len(wire.calls))
    assert wire.calls[:common] == theirs[:common]
    if not damages:
        assert wire.calls == theirs == by_h11(data)
        assert len(wire.calls) == len(requests)


# --- a real server ------------------------------------------------------------------------------------------------------------


def exchanged(server, *segments):
    """Send segments, and return all that comes back until the server closes, or answers a last GET /healthz."""
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        try:
            for segment in (*segments, request("Connection: close", method="GET", path="/healthz")):
                connection.sendall(segment)
        except ConnectionError:
            pass
        try:
            while part := connection.recv(65_536):
                received += part
        except ConnectionError:
            pass
    return received


def decisions(server):
    return server.call("GET", P).json["counts"]["decisions"]


@pytest.mark.xdist_group("front")
@pytest.mark.parametrize("pieces", [1, 2])
def test_an_upgrade_keeps_its_body_on_a_real_server(server, pieces):
    before = decisions(server)
    id = f"order-{pieces}"
    body = json.dumps({"id": id, "among": ["b"]}).encode()
    head = request(
        *UPGRADE, f"Authorization: Bearer {server.key}", f"Content-Length: {len(body)}", path=f"{P}/decisions"
    )
    for _ in range(3):
        received = exchanged(server, head + body) if pieces == 1 else exchanged(server, head, body)
        assert received.count(b"HTTP/1.1 200") == 2
        assert f'"id":"{id}"'.encode() in received
        assert b'"arm":"b"' in received
    assert decisions(server) == before + 1


@pytest.mark.xdist_group("front")
@pytest.mark.parametrize("size", [0, 100, 6_000])
def test_nothing_is_smuggled_behind_an_upgrade_without_a_key(server, size):
    body = b"\r\n" * size + f"DELETE {P} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n\r\n".encode()
    head = request("Connection: Upgrade", "Upgrade: foo", f"Content-Length: {len(body)}", path=f"{P}/decisions")
    for segments in ([head + body], [head, body]):
        received = exchanged(server, *segments)
        assert b"HTTP/1.1 401" in received
        assert b" 204 " not in received
    assert server.call("GET", P).status == 200


@pytest.mark.xdist_group("front")
@pytest.mark.parametrize("name", REFUSED)
def test_a_real_server_changes_nothing_for_a_refused_request(server, name):
    before = decisions(server)
    data = (
        REFUSED[name]
        .replace(b"/x", f"{P}/decisions".encode())
        .replace(b"Host: x", f"Host: x\r\nAuthorization: Bearer {server.key}".encode())
    )
    received = exchanged(server, data)
    assert re.findall(rb"HTTP/1\.1 (\d+) ", received) == [b"400"]
    assert decisions(server) == before
