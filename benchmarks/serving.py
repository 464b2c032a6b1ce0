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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import apsw
import load
import msgspec
from database import Database
from load import Client, Connection, Load, batches, head, ids_in, observations, quantile, singles
from long_log import ARMS, NAME, write_database

from robandit.decisions.base import SNAPSHOT_EVERY

RUNNER = Path(__file__).parent / "service_runner.py"
READER = Path(__file__).parent / "log_reader.py"
SQLITE, OFF, ONE, TWO = "SQLite", "SQLite, no flushes", "PostgreSQL, 1 replica", "PostgreSQL, 2 replicas"
SORTED = "  each experiment on one"
ALONE, READ, READ_ELSEWHERE = "no reader", "a reader of the same log", "a reader of another log"
CONNECTIONS = 64
EXPERIMENTS = 20
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


def runner(location: Path | str, durability: str = "full") -> Server:
    """Start a server of a database: the path of an SQLite file, or a URL."""
    return Server([str(RUNNER), f"sqlite:{location}" if isinstance(location, Path) else location, durability])


class Used(NamedTuple):
    """What servers have used and stored so far."""

    server: float
    """Processor time of all servers, in seconds."""
    database: float
    """Processor time of PostgreSQL."""
    events: float
    commits: float

    def since(self, before: Used) -> Used:
        """Return the difference."""
        return Used(*(now - then for now, then in zip(self, before, strict=True)))


class Group:
    """One or more servers of the same store."""

    def __init__(self, key: str, servers: Sequence[Server], database: Database | None = None) -> None:
        """Keep them. ``database`` is the PostgreSQL that they share."""
        self.key = key
        self.servers = servers
        self.ports = [server.port for server in servers]
        self.database = database

    def used(self) -> Used:
        """Return what was used and stored so far."""
        events = commits = 0.0
        for port in self.ports:
            connection = Connection(port)
            text = connection.call(head("GET", "/metrics", self.key) % 0).decode()
            connection.close()
            events += _value(text, "robandit_commit_events_sum")
            commits += _value(text, "robandit_commit_events_count")
        database = 0.0 if self.database is None else self.database.processor()
        return Used(sum(server.processor() for server in self.servers), database, events, commits)


def _value(metrics: str, name: str) -> float:
    found = re.search(rf"^{name}(?:{{}})? (\S+)$", metrics, re.MULTILINE)
    assert found, name
    return float(found[1])


class Round(NamedTuple):
    """A load, and what the servers used in it."""

    load: Load
    server: float
    """Processor time of all servers, in seconds."""
    database: float = 0.0
    """Processor time of PostgreSQL."""
    events: float = 0.0
    commits: float = 1.0

    @property
    def per_request(self) -> float:
        """Processor time of the servers per request, in seconds."""
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
        self.database = statistics.median(each.database / each.load.requests for each in rounds)
        self.per_commit = statistics.median(each.events / each.commits for each in rounds)
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
    groups: Mapping[str, Group],
    disk: Disk,
    make: Callable[[str, int], Sequence[Client]],
    rounds: int,
    seconds: float,
    beside: Callable[[str], AbstractContextManager[object]] = lambda name: nullcontext(),
) -> dict[str, Variant]:
    """Put the same load on groups of servers in turns. ``make`` returns the clients of a variant in a round.

    Round 0 is not measured. ``beside`` is entered during a load.
    """
    measured: dict[str, list[Round]] = {name: [] for name in groups}
    for number in range(rounds + 1):
        for name, group in groups.items():
            clients = make(name, number)
            with beside(name):
                before = group.used()
                found = load.run(group.ports, clients, seconds if number else 1.0, probe=True)
                if number:
                    measured[name].append(Round(found, *group.used().since(before)))
        disk.sample()
    return {name: Variant(each) for name, each in measured.items()}


class Loads(NamedTuple):
    """The loads, each on several groups of servers."""

    singles: dict[str, Variant]
    own_ids: dict[str, Variant]
    one: dict[str, Variant]
    batches: dict[str, Variant]
    observed: dict[str, Variant]
    experiments: dict[str, Variant]
    reading: dict[str, Variant]


def loads(folder: Path, disk: Disk) -> Loads:
    """Measure requests per second and latencies."""
    with ExitStack() as stack:
        database = stack.enter_context(Database(folder / "postgres"))

        def group(locations: Sequence[Path | str], durability: str = "full") -> Group:
            key = write_database(locations[0], REWARDS)
            servers = [stack.enter_context(runner(location, durability)) for location in locations]
            return Group(key, servers, None if isinstance(locations[0], Path) else database)

        groups = {
            SQLITE: group([folder / "full.db"]),
            OFF: group([folder / "off.db"], "off"),
            # Each has a database of its own: otherwise the second replica would follow the load on the first one.
            ONE: group([database.create()]),
            TWO: group([database.create()] * 2),
        }
        both = {ONE: groups[ONE], TWO: groups[TWO]}

        def decide(name: str, connections: int) -> list[Client]:
            return [singles(NAME, groups[name].key, REWARDS[i:]) for i in range(connections)]

        for name, each in groups.items():
            for server in each.servers:
                server.wait_until_ready()
            load.run(each.ports, decide(name, CONNECTIONS), 3.0)  # the policy is compiled meanwhile
        log(f"singles at {CONNECTIONS} connections")
        many = in_turns(groups, disk, lambda name, _: decide(name, CONNECTIONS), 5, 2.0)
        log("the same with ids of the client")
        named = in_turns(
            groups,
            disk,
            lambda name, number: [
                singles(NAME, groups[name].key, REWARDS[i:], own_ids=f"018f3c9e-7c1b-7d3a-{number:04d}-{i:08d}")
                for i in range(CONNECTIONS)
            ],
            2,
            2.0,
        )
        log("singles at 1 connection")
        alone = {name: each for name, each in groups.items() if name != TWO}
        one = in_turns(alone, disk, lambda name, _: decide(name, 1), 4, 1.5)
        log(f"batches of {BATCH} at {BATCH_CONNECTIONS} connections")
        several = in_turns(
            groups,
            disk,
            lambda name, _: [batches(NAME, groups[name].key, REWARDS[i:], BATCH) for i in range(BATCH_CONNECTIONS)],
            3,
            2.0,
        )
        log(f"observations in batches of {LARGE_BATCH:,} at {BATCH_CONNECTIONS} connections")
        observed = in_turns(
            groups,
            disk,
            lambda name, number: [
                observations(NAME, groups[name].key, REWARDS[i:], f"life{number:04d}x{i:04d}", LARGE_BATCH)
                for i in range(BATCH_CONNECTIONS)
            ],
            3,
            2.0,
        )
        log(f"{EXPERIMENTS} experiments at {CONNECTIONS} connections")
        many_experiments = _experiments(both, disk)
        log("singles while another replica reads")
        reading = _reading(both, disk)
    return Loads(many, named, one, several, observed, many_experiments, reading)


def _experiments(groups: Mapping[str, Group], disk: Disk) -> dict[str, Variant]:
    """Measure singles on many experiments: with any replica for each call, and with one replica per experiment."""
    for group in groups.values():
        create(group, [f"{NAME}-{i}" for i in range(EXPERIMENTS)])

    def decide(name: str, _: int) -> list[Client]:
        # Connections go to the two replicas in turns. So in one case, those of an experiment go to both, in the other to one.
        place = range(CONNECTIONS) if name == SORTED else [i // 2 for i in range(CONNECTIONS)]
        key = variants[name].key
        return [singles(f"{NAME}-{place[i] % EXPERIMENTS}", key, REWARDS[i:]) for i in range(CONNECTIONS)]

    variants = {**groups, SORTED: groups[TWO]}
    for name, group in variants.items():
        load.run(group.ports, decide(name, 0), 3.0)  # compiled meanwhile
    return in_turns(variants, disk, decide, 4, 2.0)


def create(group: Group, names: Sequence[str]) -> None:
    """Create experiments, and wait until all servers know them."""
    body = msgspec.json.encode({"arms": ARMS, "minimize": True, "seed": 1})
    for name in names:
        for method, sent, ports in (("PUT", body, group.ports[:1]), ("GET", b"", group.ports)):
            for port in ports:
                connection = Connection(port)
                connection.call(head(method, f"/v1/experiments/{name}", group.key) % len(sent) + sent)
                connection.close()


def _reading(groups: Mapping[str, Group], disk: Disk) -> dict[str, Variant]:
    """Measure singles on one replica while the other one is read from.

    Reading takes processor time, which may cost writes. So the same is measured with a reader of another database: what remains
    is the cost of sharing.
    """
    writers = Group(groups[TWO].key, groups[TWO].servers[:1], groups[TWO].database)
    variants = dict.fromkeys((ALONE, READ, READ_ELSEWHERE), writers)

    @contextmanager
    def reader(name: str) -> Iterator[None]:
        if name == ALONE:
            yield
            return
        port, key = (groups[TWO].ports[1], writers.key) if name == READ else (groups[ONE].ports[0], groups[ONE].key)
        process = subprocess.Popen([sys.executable, str(READER), str(port), NAME, key])
        try:
            yield
        finally:
            process.terminate()
            process.wait()

    return in_turns(
        variants,
        disk,
        lambda *_: [singles(NAME, writers.key, REWARDS[i:]) for i in range(CONNECTIONS)],
        3,
        2.0,
        reader,
    )


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
