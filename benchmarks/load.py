"""A load client for the decision service: many connections in one thread, with little processor time of its own.

Requests are bytes that are made beforehand as far as possible; answers are searched, not decoded. Each connection sends its next
request when the answer to the last one is complete (a closed loop). Part of ``make bench-service``; needs Linux.
"""

from __future__ import annotations

import json
import re
import select
import socket
import time
from collections.abc import Callable, Sequence
from itertools import count, cycle
from typing import NamedTuple, TypeAlias

Client: TypeAlias = Callable[[bytes], bytes]
"""Takes the body of the last answer (empty at first) and returns the next request."""

PROBE_EVERY = 0.01  # seconds between two calls of /healthz
PATIENCE = 30.0  # seconds without any answer, after which the load fails
_LENGTH = b"content-length: "
_ID = re.compile(rb'"id":"([^"]+)"')


class Load(NamedTuple):
    """What a load measured."""

    requests: int
    seconds: float
    latencies: list[float]
    """Seconds of each request, sorted."""
    probes: list[float]
    """Seconds of each call of /healthz during the load, sorted."""
    client: float
    """Processor time of the client, in seconds."""

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    @property
    def p50(self) -> float:
        """The median latency, in seconds."""
        return quantile(self.latencies, 0.5)


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return a quantile of sorted values."""
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def head(method: str, path: str, key: str = "") -> bytes:
    """Return the first lines of a request without its Content-Length, ready for ``%``."""
    access = f"Authorization: Bearer {key}\r\n" if key else ""
    text = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{access}Content-Type: application/json\r\n"
    return text.replace("%", "%%").encode() + b"Content-Length: %d\r\n\r\n"


def singles(experiment: str, key: str, rewards: Sequence[float], *, own_ids: str = "") -> Client:
    """Return a client that decides and then sends the reward of that decision, again and again.

    ``own_ids`` is the start of the ids that it gives to its decisions; without one, the server names them.
    """
    decide = head("POST", f"/v1/experiments/{experiment}/decisions", key)
    reward = head("POST", f"/v1/experiments/{experiment}/rewards", key)
    values = cycle([b"%r" % value for value in rewards])
    numbers = count()
    deciding = False

    def following(body: bytes) -> bytes:
        nonlocal deciding
        deciding = not deciding
        if deciding:
            sent = b'{"id":"%b-%d"}' % (own_ids.encode(), next(numbers)) if own_ids else b""
            return decide % len(sent) + sent
        start = body.index(b'"id":"') + 6
        sent = b'{"id":"%b","value":%b}' % (body[start : body.index(b'"', start)], next(values))
        return reward % len(sent) + sent

    return following


def batches(experiment: str, key: str, rewards: Sequence[float], size: int) -> Client:
    """Return a client that makes a batch of decisions and then sends a batch of their rewards, again and again."""
    path = f"/v1/experiments/{experiment}"
    items = b'{"items":[%b]}' % b",".join([b"{}"] * size)
    decide = head("POST", f"{path}/decisions/batch", key) % len(items) + items
    reward = head("POST", f"{path}/rewards/batch", key)
    values = cycle([b'","value":%r}' % value for value in rewards])
    deciding = False

    def following(body: bytes) -> bytes:
        nonlocal deciding
        deciding = not deciding
        if deciding:
            return decide
        ids = ids_in(body)
        if len(ids) != size:
            raise RuntimeError(f"{len(ids)} decisions instead of {size}: {body[:300]!r}")
        sent = b'{"items":[%b]}' % b",".join([b'{"id":"' + each + next(values) for each in ids])
        return reward % len(sent) + sent

    return following


def observations(
    experiment: str, key: str, rewards: Sequence[float], life: str, size: int, *, refresh: bool = False
) -> Client:
    """Return a client that gets an allocation, and then sends batches of decisions of an edge, again and again.

    With ``refresh``, it gets an allocation before each batch.
    """
    path = f"/v1/experiments/{experiment}"
    allocate = (head("GET", f"{path}/allocation", key) % 0).replace(b"Content-Length: 0\r\n", b"")
    send = head("POST", f"{path}/observations/batch", key)
    values = cycle([b"%r" % value for value in rewards])
    numbers = count()
    draws: list[bytes] = []

    def check(body: bytes) -> None:
        if body and (b'"refused":[]' not in body or b'"replayed":0' not in body):
            raise RuntimeError(f"not all observations were learned: {body[:300]!r}")

    def following(body: bytes) -> bytes:
        has_made = body.startswith(b'{"experiment"')
        if not body or (refresh and not has_made):
            check(body)
            return allocate
        if has_made:
            made = json.loads(body)
            draws.clear()
            usual = zip(made["arms"], made["probabilities"], strict=True)
            arm, share = max(usual, key=lambda pair: pair[1])
            draws.append(b'"arm":"%b","propensity":%r' % (arm.encode(), share))
            draws.append(b'"allocation":"%b","decided":%.3f' % (made["version"].encode(), time.time()))
        else:
            check(body)
        rest, id = b",".join(draws), life.encode()
        parts = [b'{"id":"%b-%d",%b,"value":%b}' % (id, next(numbers), rest, next(values)) for _ in range(size)]
        sent = b'{"items":[%b]}' % b",".join(parts)
        return send % len(sent) + sent

    return following


def ids_in(body: bytes) -> list[bytes]:
    """Return the ids in an answer."""
    return _ID.findall(body)


class Connection:
    """A connection whose answers are collected until they are complete."""

    __slots__ = ("buffer", "missing", "sent", "socket")

    def __init__(self, port: int) -> None:
        """Connect to a server on this machine."""
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.missing = 0
        """Bytes of the answer that have not come yet, if its head is complete."""
        self.sent = 0.0

    def send(self, request: bytes) -> None:
        """Send a request."""
        self.sent = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """Return the body of the answer, or None if it is not complete. Raise an error if the status is not 2xx."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionError("the server closed a connection")
        self.buffer += part
        if self.missing:
            self.missing -= len(part)
        else:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return None
            start = self.buffer.index(_LENGTH, 0, end) + len(_LENGTH)
            length = int(self.buffer[start : self.buffer.index(b"\r", start)])
            self.missing = end + 4 + length - len(self.buffer)
        if self.missing:
            return None
        answer, self.buffer = self.buffer, b""
        if not answer.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"the server refused a call: {answer[:500]!r}")
        return answer[answer.index(b"\r\n\r\n") + 4 :]

    def call(self, request: bytes) -> bytes:
        """Send a request and wait for the answer."""
        self.send(request)
        while (body := self.receive()) is None:
            pass
        return body

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


def run(ports: int | Sequence[int], clients: Sequence[Client], seconds: float, *, probe: bool = False) -> Load:
    """Let clients send requests for some seconds, each on its own connection, and wait for their last answers.

    The connections go to the servers in turns, as a balancer would spread them. With ``probe``, another connection calls /healthz
    of the first one at regular times.
    """
    ports = [ports] if isinstance(ports, int) else ports
    poll = select.epoll()
    connections: dict[int, tuple[Connection, Client]] = {}
    latencies: list[float] = []
    probes: list[float] = []
    health = Connection(ports[0])
    health_request = head("GET", "/healthz") % 0
    try:
        for client, port in zip(clients, cycle(ports), strict=False):
            connection = Connection(port)
            connections[connection.socket.fileno()] = connection, client
            poll.register(connection.socket.fileno(), select.EPOLLIN)
        poll.register(health.socket.fileno(), select.EPOLLIN)
        health_at = health.socket.fileno()
        processor = time.process_time()
        start = now = time.perf_counter()
        end = start + seconds
        for connection, client in connections.values():
            connection.send(client(b""))
        busy = len(connections)
        probing = False
        next_probe = start + PROBE_EVERY if probe else end
        last = start
        while busy or probing:
            ready = poll.poll(PROBE_EVERY)
            for at, _ in ready:
                if at == health_at:
                    if health.receive() is not None:
                        probing = False
                        probes.append(time.perf_counter() - health.sent)
                    continue
                connection, client = connections[at]
                body = connection.receive()
                if body is None:
                    continue
                last = now = time.perf_counter()
                latencies.append(now - connection.sent)
                if now < end:
                    connection.send(client(body))
                else:
                    busy -= 1
            now = time.perf_counter()
            if now >= next_probe and now < end and not probing:
                health.send(health_request)
                probing = True
                next_probe = now + PROBE_EVERY
            if now - last > PATIENCE:
                raise TimeoutError(f"no answer for {PATIENCE:.0f} s: {busy} connections wait")
        taken, processor = now - start, time.process_time() - processor
    finally:
        for connection, _ in connections.values():
            connection.close()
        health.close()
        poll.close()
    return Load(len(latencies), taken, sorted(latencies), sorted(probes), processor)
