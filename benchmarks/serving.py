"""Servers for ``make bench-service``, and what is measured with them: loads, memory and starts. Needs Linux."""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw
import load
from load import Client, Connection, Load, batches, head, ids_in, quantile, singles
from long_log import NAME, write_database

from robandit.decisions.base import SNAPSHOT_EVERY

RUNNER = Path(__file__).parent / "service_runner.py"
VARIANTS = ("full", "off")
CONNECTIONS = 64
BATCH, BATCH_CONNECTIONS = 100, 8
OPEN, LARGE_BATCH = 100_000, 1_000
FIRST_ROUNDS, ROUNDS = 2, 2  # of replacing all open decisions: until the tables have their sizes, and afterwards
SHORT_LOG, LONG_LOG, MILLION = 25_000, 200_000, 1_000_000
TICKS = os.sysconf("SC_CLK_TCK")
FLUSHES = 50  # in each sample
REWARDS = [random.Random(1).paretovariate(1.5) for _ in range(10_000)]


class Server:
    """A server in another process. Use it with ``with``."""

    def __init__(self, command: Sequence[str], *, end: int = signal.SIGTERM) -> None:
        """Start it and wait until it announces its port. ``end`` is the signal that ends it."""
        self._end = end
        self.started = time.perf_counter()
        self._process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self.port = self._announced()

    def _announced(self) -> int:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"^(?:serving http://127\.0\.0\.1:)?(\d+)", line):
                return int(found[1])
        raise RuntimeError(f"the server did not start: exit code {self._process.wait()}")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(self._end)
        try:
            self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise

    def wait_until_ready(self) -> float:
        """Return the seconds from the start of the process to its readiness."""
        while time.perf_counter() - self.started < 120.0:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.request("GET", "/readyz")
            status = connection.getresponse().status
            connection.close()
            if status == 200:
                return time.perf_counter() - self.started
            time.sleep(0.005)
        raise TimeoutError("the server is not ready after two minutes")

    def processor(self) -> float:
        """Return the processor time of all threads, user and system, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        """Return the resident memory in MB."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        assert found
        return int(found[1]) / 1e3


def runner(path: Path, durability: str) -> Server:
    """Start a server of a database."""
    return Server([str(RUNNER), str(path), durability])


class Round(NamedTuple):
    """A load, and the processor time of the server in it."""

    load: Load
    server: float

    @property
    def per_request(self) -> float:
        """Processor time of the server per request, in seconds."""
        return self.server / self.load.requests


class Variant:
    """The rounds of one load on one server."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        """Compute the medians over the rounds."""
        loads = [each.load for each in rounds]
        self.rate = statistics.median(each.rate for each in loads)
        self.p50 = statistics.median(each.p50 for each in loads)
        self.p99 = statistics.median(quantile(each.latencies, 0.99) for each in loads)
        self.per_request = statistics.median(each.per_request for each in rounds)
        self.client = statistics.median(each.client / each.requests for each in loads)
        probes = sorted(value for each in loads for value in each.probes)
        self.probes = (quantile(probes, 0.5), quantile(probes, 0.99), probes[-1]) if probes else None
        self.longest = statistics.median(each.probes[-1] for each in loads) if probes else 0.0


class Disk:
    """Samples of the time of a flush, in the folder of the databases."""

    def __init__(self, folder: Path) -> None:
        """Start without samples."""
        self._path = folder / "flushed"
        self.seconds: list[float] = []

    def sample(self) -> None:
        """Append 4 KiB and flush, some times."""
        handle = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        try:
            for _ in range(FLUSHES):
                os.write(handle, bytes(4096))
                start = time.perf_counter()
                os.fdatasync(handle)
                self.seconds.append(time.perf_counter() - start)
        finally:
            os.close(handle)

    @property
    def median(self) -> float:
        """F, in seconds."""
        return statistics.median(self.seconds)


def log(text: str) -> None:
    """Tell what is being measured."""
    print(text, file=sys.stderr, flush=True)


def in_turns(
    servers: dict[str, Server],
    disk: Disk,
    make: Callable[[str, int], list[Client]],
    rounds: int,
    seconds: float,
) -> dict[str, Variant]:
    """Put the same load on the servers in turns. ``make`` returns the clients of a variant in a round; round 0 is not measured."""
    measured: dict[str, list[Round]] = {name: [] for name in servers}
    for number in range(rounds + 1):
        for name, server in servers.items():
            clients = make(name, number)
            before = server.processor()
            found = load.run(server.port, clients, seconds if number else 1.0, probe=True)
            if number:
                measured[name].append(Round(found, server.processor() - before))
        disk.sample()
    return {name: Variant(each) for name, each in measured.items()}


class Loads(NamedTuple):
    """The four loads, each on both servers."""

    singles: dict[str, Variant]
    own_ids: dict[str, Variant]
    batches: dict[str, Variant]
    one: dict[str, Variant]


def loads(folder: Path, disk: Disk) -> Loads:
    """Measure requests per second and latencies with and without flushes."""
    paths = {name: folder / f"{name}.db" for name in VARIANTS}
    keys = {name: write_database(path, REWARDS) for name, path in paths.items()}
    with runner(paths["full"], "full") as full, runner(paths["off"], "off") as off:
        servers = {"full": full, "off": off}

        def decide(name: str, connections: int) -> list[Client]:
            return [singles(NAME, keys[name], REWARDS[i:]) for i in range(connections)]

        for name, server in servers.items():
            server.wait_until_ready()
            load.run(server.port, decide(name, CONNECTIONS), 3.0)  # the policy is compiled meanwhile
        log(f"singles at {CONNECTIONS} connections")
        many = in_turns(servers, disk, lambda name, _: decide(name, CONNECTIONS), 5, 2.5)
        log("the same with ids of the client")
        named = in_turns(
            servers,
            disk,
            lambda name, number: [
                singles(NAME, keys[name], REWARDS[i:], own_ids=f"018f3c9e-7c1b-7d3a-{number:04d}-{i:08d}")
                for i in range(CONNECTIONS)
            ],
            2,
            2.0,
        )
        log("singles at 1 connection")
        one = in_turns(servers, disk, lambda name, _: decide(name, 1), 4, 1.5)
        log(f"batches of {BATCH} at {BATCH_CONNECTIONS} connections")
        several = in_turns(
            servers,
            disk,
            lambda name, _: [batches(NAME, keys[name], REWARDS[i:], BATCH) for i in range(BATCH_CONNECTIONS)],
            4,
            2.5,
        )
    return Loads(many, named, several, one)


class Memory(NamedTuple):
    """Resident memory of a server, in MB."""

    empty: float
    full: list[float]
    """With all decisions open, and after each time that all of them were rewarded and others opened."""


def memory(folder: Path) -> Memory:
    """Open many decisions, and replace them by others."""
    path = folder / "open.db"
    key = write_database(path, REWARDS)
    items = b'{"items":[%b]}' % b",".join([b"{}"] * LARGE_BATCH)
    decide = head("POST", f"/v1/experiments/{NAME}/decisions/batch", key) % len(items) + items
    reward = head("POST", f"/v1/experiments/{NAME}/rewards/batch", key)
    with runner(path, "full") as server:
        server.wait_until_ready()
        connection = Connection(server.port)

        def opened() -> list[bytes]:
            return ids_in(connection.call(decide))

        def close(ids: list[bytes]) -> None:
            parts = [b'{"id":"%b","value":%r}' % pair for pair in zip(ids, REWARDS, strict=False)]
            body = b'{"items":[%b]}' % b",".join(parts)
            connection.call(reward % len(body) + body)

        for _ in range(20):  # caches fill, and code is compiled
            close(opened())
        empty = server.memory()
        waiting = [opened() for _ in range(OPEN // LARGE_BATCH)]
        full = [server.memory()]
        for _ in range(FIRST_ROUNDS + ROUNDS):
            for i, ids in enumerate(waiting):
                close(ids)
                waiting[i] = opened()
            full.append(server.memory())
        connection.close()
    return Memory(empty, full)


class Starts(NamedTuple):
    """Starts of a server from logs of different lengths."""

    per_event: float
    """Processor time per event without a snapshot, in seconds."""
    short: float
    """Processor time of a start with a short log."""
    million: float
    """Seconds until a server with a million events and a snapshot of all of them is ready."""
    crashed: float
    """The same with the snapshot before that one."""
    tail: int
    """The number of events after it."""


def started(path: Path, tries: int = 3) -> tuple[float, float]:
    """Return the median seconds and processor seconds until a server is ready. It is killed, so that it takes no snapshot."""
    seconds, processor = [], []
    for _ in range(tries):
        with Server(
            ["-m", "robandit", "serve", "--port", "0", "--store", f"sqlite:{path}"], end=signal.SIGKILL
        ) as server:
            seconds.append(server.wait_until_ready())
            processor.append(server.processor())
    return statistics.median(seconds), statistics.median(processor)


def starts(folder: Path) -> Starts:
    """Measure starts with and without a snapshot."""
    paths = [folder / f"{name}.db" for name in ("short", "long", "million")]
    log(f"writing logs of {LONG_LOG:,} and {MILLION:,} events")
    write_database(paths[0], REWARDS, events=SHORT_LOG)
    write_database(paths[1], REWARDS, events=LONG_LOG)
    write_database(paths[2], REWARDS, events=MILLION, snapshots=(MILLION - SNAPSHOT_EVERY, MILLION))
    log("starting from logs")
    started(paths[0], 1)  # the file system and the compiler fill their caches
    _, short = started(paths[0])
    _, long = started(paths[1])
    million, _ = started(paths[2], 5)
    db = apsw.Connection(str(paths[2]))
    db.execute("DELETE FROM snapshot WHERE seq = (SELECT max(seq) FROM snapshot)")
    tail: int = db.execute("SELECT (SELECT max(head) FROM experiment) - (SELECT max(seq) FROM snapshot)").get
    db.close()
    crashed, _ = started(paths[2])
    return Starts((long - short) / (LONG_LOG - SHORT_LOG), short, million, crashed, tail)
