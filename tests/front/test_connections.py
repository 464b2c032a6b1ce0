"""How many connections there may be, how long they may wait, and who is closed first."""

import asyncio
import http.client
import itertools
import json
import os
import resource
import socket
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from helpers.amount import FRONT
from helpers.serving import Server
from helpers.wires import Transport, request
from robandit.service import server
from robandit.service.connection import (
    HEAD_PATIENCE,
    IDLE_PATIENCE,
    LINGER,
    LONGEST_LINGER,
    MOST_TURNED_AWAY,
    Connection,
    Connections,
)


class House:
    """Connections to an application that knows who asks for /known or /slow, and ends /slow when it is released."""

    def __init__(self, most):
        self.connections = Connections(self.app, most)
        self.released = asyncio.Event()

    async def app(self, scope, receive, send):
        if scope["raw_path"] != b"/stranger":
            scope["known"] = True
        slow = scope["raw_path"] == b"/slow"
        headers = [] if slow else [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if slow:
            await self.released.wait()
        await send({"type": "http.response.body", "body": b"x"})

    def opened(self):
        made = Connection(self.connections, asyncio.get_running_loop())
        made.transport = Transport()
        made.connection_made(made.transport)
        return made

    async def called(self, path):
        made = self.opened()
        made.data_received(request(path=path))
        for _ in range(3):
            await asyncio.sleep(0)
        return made


def in_loop(test):
    def run():
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


async def settled():
    """Let everything go on that can: a pause of some milliseconds may be over before, on a busy machine."""
    for _ in range(100):
        await asyncio.sleep(0)


def closed(connections):
    return [each.transport.closed for each in connections]


@in_loop
async def test_the_stranger_that_waits_longest_is_closed_first():
    house = House(most=8)  # 6 of them may be strangers
    known = [await house.called("/known") for _ in range(2)]
    strangers = [house.opened() for _ in range(6)]
    strangers[0].data_received(b"POST /x HTTP/1.1\r\nX: ")  # an unfinished head also waits
    assert closed(known + strangers) == [False] * 8
    more = [house.opened() for _ in range(5)]
    assert closed(strangers) == [True] * 5 + [False]
    assert closed(known + more) == [False] * 7


@in_loop
async def test_strangers_take_no_room_of_known_clients():
    house = House(most=8)
    strangers = [house.opened() for _ in range(100)]
    assert closed(strangers) == [True] * 94 + [False] * 6
    known = [await house.called("/known") for _ in range(8)]
    assert closed(known) == [False] * 8
    assert all(closed(strangers))


@in_loop
async def test_known_clients_that_wait_give_way_if_the_house_is_full():
    house = House(most=4)
    known = [await house.called("/known") for _ in range(4)]
    known.append(await house.called("/known"))
    assert closed(known) == [True, False, False, False, False]
    await house.called("/known")
    assert closed(known) == [True, True, False, False, False]


@in_loop
async def test_who_is_being_answered_is_not_closed():
    house = House(most=4)
    busy = [await house.called("/slow") for _ in range(3)]
    assert closed([*busy, house.opened()]) == [False] * 4
    # All four are busy: nobody can be closed.
    busy.append(await house.called("/slow"))
    assert closed(busy) == [False] * 4
    away = [house.opened() for _ in range(MOST_TURNED_AWAY + 5)]
    assert away[0].transport.written.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in away[0].transport.written
    assert closed(away) == [False] * MOST_TURNED_AWAY + [True] * 5
    house.connections.tick(asyncio.get_running_loop().time() + LINGER + 1)
    assert all(closed(away))
    assert closed(busy) == [False] * 4
    for each in away:
        each.connection_lost(None)
    house.released.set()
    await settled()
    assert all(each.transport.written.endswith(b"x\r\n0\r\n\r\n") for each in busy)
    assert house.opened().transport.written == b""


@in_loop
async def test_a_lost_connection_makes_room():
    house = House(most=4)
    for path in ("/slow", "/stranger", "/known") * 10:
        made = await house.called(path)
        assert not made.transport.closed
        made.connection_lost(None)
        made.connection_lost(None)
    house.released.set()
    await settled()
    assert house.connections.is_empty


@in_loop
async def test_single_bytes_do_not_prolong_a_connection():
    """In 0.2, a line break every three seconds kept a connection open without end."""
    house = House(most=4)
    now = asyncio.get_running_loop().time()
    silent = house.opened()
    head = house.opened()
    head.data_received(b"POST /x HTT")
    answered = await house.called("/stranger")
    before = [each.deadline for each in (silent, head, answered)]
    assert before == pytest.approx([now + HEAD_PATIENCE, now + HEAD_PATIENCE, now + IDLE_PATIENCE], abs=1)
    await settled()
    head.data_received(b"P/1.1\r\n")
    for each in (silent, answered):
        each.data_received(b"\r\n")
    assert [each.deadline for each in (silent, head, answered)] == before
    house.connections.tick(now + HEAD_PATIENCE + 1)
    assert closed([silent, head, answered]) == [True, True, False]
    answered.data_received(b"P")  # a head that begins must come soon
    assert answered.deadline == pytest.approx(now + HEAD_PATIENCE, abs=1)
    house.connections.tick(now + HEAD_PATIENCE + 1)
    assert answered.transport.closed


@in_loop
async def test_a_client_that_does_not_read_is_closed():
    house = House(most=4)
    now = asyncio.get_running_loop().time()
    slow = await house.called("/slow")
    house.connections.tick(now + 1_000)
    assert not slow.transport.closed  # the application takes its time
    slow.pause_writing()
    slow.resume_writing()
    house.connections.tick(now + 1_000)
    assert not slow.transport.closed
    slow.pause_writing()
    house.connections.tick(now + HEAD_PATIENCE + 1)
    assert slow.transport.closed


@in_loop
async def test_a_client_that_reads_steadily_has_as_long_as_it_needs():
    """Until now, it had 30 seconds for all that was written at once."""
    house = House(most=4)
    now = asyncio.get_running_loop().time()
    slow = await house.called("/slow")
    slow.transport.unsent = 1_000
    slow.pause_writing()
    closing = house.opened()
    closing.transport.unsent = 1_000
    closing.transport.abort = lambda: setattr(closing, "aborted", True)
    closing.data_received(request("Connection: close", path="/stranger"))
    await settled()
    closing.aborted = False
    for _ in range(10):
        now += HEAD_PATIENCE + 1
        slow.transport.unsent -= 10
        closing.transport.unsent -= 10
        house.connections.tick(now)
        assert (slow.transport.closed, closing.aborted) == (False, False)
    house.connections.tick(now + HEAD_PATIENCE - 1)
    assert (slow.transport.closed, closing.aborted) == (False, False)
    house.connections.tick(now + HEAD_PATIENCE + 1)
    assert slow.transport.closed
    assert closing.aborted


@in_loop
async def test_the_rest_of_a_refused_request_is_discarded_for_some_seconds():
    """However much it is, so that the client can send it and then read the answer. A client that drips has less time."""
    house = House(most=4)
    start = asyncio.get_running_loop().time()
    sending, dripping = [house.opened() for _ in range(2)]
    for each in (sending, dripping):
        each.data_received(request("Content-Length: 99999999", path="/stranger"))
    await settled()
    survived = []
    for seconds in range(1, 31):
        for _ in range(8):
            if not sending.transport.closed:
                sending.data_received(bytes(1 << 20))
        if not dripping.transport.closed:
            dripping.data_received(b"x")
        house.connections.tick(start + seconds)
        survived.append((sending.transport.closed, dripping.transport.closed))
    assert survived.index((False, True)) <= LINGER + 1
    assert LONGEST_LINGER - 2 <= survived.index((True, True)) <= LONGEST_LINGER + 1


@in_loop
async def test_a_new_request_is_a_new_wait():
    """A client that has begun to send a body is not closed before one that has been idle for less time."""
    house = House(most=2)
    sending, idle = [await house.called("/known") for _ in range(2)]
    sending.data_received(request("Content-Length: 5", path="/slow", body=b"x"))
    house.opened()
    assert closed([sending, idle]) == [False, True]


@in_loop
async def test_who_does_not_read_gets_no_further_answers():
    """Otherwise, the answers to pipelined requests would take memory without a limit, even without a key."""
    house = House(most=4)
    now = asyncio.get_running_loop().time()
    client = house.opened()
    client.transport.on_write = client.pause_writing
    client.data_received(request(path="/stranger") * 3)
    await settled()
    assert client.transport.written.count(b"HTTP/1.1 200") == 1
    assert not client.transport.reading
    client.resume_writing()
    await settled()
    assert client.transport.written.count(b"HTTP/1.1 200") == 2
    client.transport.on_write = None
    client.resume_writing()
    await settled()
    assert client.transport.written.count(b"HTTP/1.1 200") == 3
    assert client.transport.reading

    client.transport.on_write = client.pause_writing
    client.data_received(request(path="/stranger"))
    await settled()
    client.data_received(request(path="/stranger") + b"nonsense\r\n\r\n")  # the first one is answered, but not read
    await settled()
    assert client.transport.written.count(b"HTTP/1.1 ") == 4
    house.connections.tick(now + HEAD_PATIENCE / 2)
    assert not client.transport.closed
    client.transport.on_write = None
    client.resume_writing()
    await settled()
    assert [part[:3] for part in client.transport.written.split(b"HTTP/1.1 ")[1:]] == [b"200"] * 5 + [b"400"]

    other = house.opened()
    other.transport.on_write = other.pause_writing
    other.data_received(request(path="/stranger") * 2)
    await settled()
    house.connections.tick(now + HEAD_PATIENCE + 1)
    assert other.transport.closed


@in_loop
async def test_a_cancelled_answer_does_not_break_its_connection():
    house = House(most=4)
    client = await house.called("/slow")
    client.pause_writing()
    waiting = asyncio.ensure_future(client.drained())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    client.resume_writing()
    house.released.set()
    await settled()
    assert client.transport.written.endswith(b"x\r\n0\r\n\r\n")


@in_loop
async def test_a_client_that_has_sent_all_still_gets_its_answers():
    """As `nc -N` does. Who closes in the middle of a request or of an answer has left."""
    house = House(most=8)
    client = house.opened()
    client.data_received(request(path="/stranger") * 3)
    assert client.eof_received()
    await settled()
    assert client.transport.written.count(b"HTTP/1.1 200") == 3
    assert client.transport.written.count(b"connection: close") == 1
    assert client.transport.closed

    client = house.opened()
    client.data_received(request(path="/stranger") + b"nonsense\r\n\r\n")
    assert client.eof_received()
    await settled()
    assert [part[:3] for part in client.transport.written.split(b"HTTP/1.1 ")[1:]] == [b"200", b"400"]

    assert not house.opened().eof_received()
    assert not (await house.called("/stranger")).eof_received()
    assert not (await house.called("/slow")).eof_received()  # a stream
    for part in (b"POST /x HTTP/1.1\r\n", request("Content-Length: 5", path="/stranger", body=b"x")):
        cut = house.opened()
        cut.data_received(part)
        assert not cut.eof_received()


def test_nothing_is_frozen_before_garbage_is_collected(monkeypatch):
    """Garbage that is frozen stays for ever. Each compilation that ends is frozen once."""
    acts, busy = [], iter([True, True, False, False, True, False, False])

    class Service:
        is_ready = True

        async def start(self):
            pass

        async def stop(self):
            pass

        def end_streams(self):
            pass

    def is_busy():
        state = next(busy, None)
        if state is None:
            running.stop()
        return bool(state)

    monkeypatch.setattr(server, "is_busy", is_busy)
    monkeypatch.setattr(server, "TICK", 0.001)
    monkeypatch.setattr(
        server, "gc", SimpleNamespace(collect=lambda: acts.append("collect"), freeze=lambda: acts.append("freeze"))
    )
    running = server.Server(Service())
    with server.listening("127.0.0.1", 0) as listener:
        asyncio.run(running.run(listener))
    assert acts == ["collect", "freeze"] * 2


def test_the_limit_of_open_files_limits_connections(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 4_096))
    assert server._most_connections() == 1_024 - server.OWN_FILES
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, -1))
    assert server._most_connections() == server.MOST_CONNECTIONS


# --- real servers, with the loops of uvloop and of asyncio ----------------------------------------------------------------

LOOPS = pytest.mark.xdist_group("loops")


@pytest.fixture(scope="module", params=["uvloop", "asyncio"] if FRONT else ["uvloop"])  # `make front` runs both
def running(request, tmp_path_factory):
    """A server with one of the event loops, and 64 descriptors for connections."""
    folder, environment = tmp_path_factory.mktemp("front"), {}
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    else:
        (folder / "uvloop.py").write_text("raise ImportError\n")
        environment["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (server.OWN_FILES + 64, limits[1]))
    try:
        started = Server(folder / "robandit.db", authenticate=True, env=environment)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with started:
        started.call("PUT", "/v1/experiments/p", {"arms": ["a", "b"]})
        yield started


def burst(server, count):
    """Open connections without waiting for the server."""
    made = []
    for _ in range(count):
        made.append(socket.socket())
        made[-1].setblocking(False)
        with suppress(BlockingIOError):
            made[-1].connect((server.host, server.port))
    return made


@LOOPS
def test_idle_connections_without_a_key_do_not_stop_a_real_server(running):
    """In 0.2, there were resets for everybody once all descriptors were used."""
    idle = burst(running, 400)
    try:
        for _ in range(20):
            assert running.call("GET", "/v1/experiments").status == 200
    finally:
        for each in idle:
            each.close()


@LOOPS
def test_a_real_server_recovers_when_it_can_accept_nothing(running):
    pid = running.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 3, limits[1]))
    try:
        idle = burst(running, 50)
        time.sleep(0.5)
        for each in idle:
            each.close()
        until = time.monotonic() + 30
        status = None
        while status != 200:
            assert time.monotonic() < until
            with suppress(OSError):
                status = running.call("GET", "/v1/experiments").status
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@LOOPS
def test_a_client_that_closes_its_half_gets_its_answer_from_a_real_server(running):
    """And one that leaves has made its decision."""
    before = running.call("GET", "/v1/experiments/p").json["counts"]["decisions"]
    for version, leaves in itertools.product(("1.0", "1.1"), (False, True)):
        id = f"order-{version}-{leaves}"
        body = json.dumps({"id": id}).encode()
        lines = (f"Authorization: Bearer {running.key}", f"Content-Length: {len(body)}")
        with socket.create_connection((running.host, running.port), timeout=30) as client:
            client.sendall(request(*lines, body=body, path="/v1/experiments/p/decisions", version=version))
            if not leaves:
                client.shutdown(socket.SHUT_WR)
                received = b"".join(iter(lambda: client.recv(65_536), b""))
                assert received.startswith(b"HTTP/1.1 200 ")
                assert id.encode() in received
        until = time.monotonic() + 30
        while running.call("GET", f"/v1/experiments/p/decisions/{id}").status != 200:
            assert time.monotonic() < until
    assert running.call("GET", "/v1/experiments/p").json["counts"]["decisions"] == before + 4


@LOOPS
@pytest.mark.parametrize("size", [8 << 20, 20 << 20])
def test_a_client_that_sends_too_much_reads_why_from_a_real_server(running, size):
    """It sends everything before it reads, as Python's http.client does."""
    for key, status in ((running.key, 413), ("wrong", 401)):
        client = http.client.HTTPConnection(running.host, running.port, timeout=60)
        client.request("POST", "/v1/experiments/p/decisions", bytes(size), {"Authorization": f"Bearer {key}"})
        assert client.getresponse().status == status
        client.close()


@LOOPS
@pytest.mark.skipif(not FRONT, reason="it waits for seconds: make front runs it")
@pytest.mark.parametrize("line", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_refused_request_that_drips_is_closed_by_a_real_server(running, line):
    with socket.create_connection((running.host, running.port), timeout=30) as client:
        client.sendall(request(line, "Expect: 100-continue", path="/v1/experiments/p/decisions"))
        received = b"".join(iter(lambda: client.recv(65_536), b""))  # until the server has said everything
        assert received.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in received
        with pytest.raises(ConnectionError):  # noqa: PT012 the loop ends with it
            for _ in range(200):
                client.sendall(b"1")
                time.sleep(0.1)
