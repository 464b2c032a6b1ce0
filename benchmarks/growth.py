"""Check the cost model of the decision service: ``python benchmarks/growth.py``. Writes docs/results/growth.md.

Each cost is measured at two small sizes, and a straight line is drawn through both. The line predicts the cost at a larger size,
which is then measured, too. Takes about three minutes. What the numbers are for: docs/explanation/growth.md.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import load
import msgspec
import psycopg
from database import Database
from load import Client, Connection, head, ids_in, observations, singles
from long_log import ARMS, NAME, write_database
from serving import REWARDS, Group, Round, log, runner

from robandit.decisions.experiment import LiveExperiment
from robandit.decisions.settings import checked_settings
from robandit.storage import Event, StoredExperiment
from service import BUILD, ROOT, filled, postgres_version, processor_name, table

PAGE = ROOT / "docs" / "results" / "growth.md"
EVENTS = (30_000, 60_000, 200_000)  # all of them long enough for a compiled start
STARTS = 3
OPEN = (2_000, 8_000, 40_000)
LARGE_BATCH = 1_000
CONNECTIONS = (4, 16, 64)
ROUNDS = 3
REPLICAS = 3
SECONDS = 2.0
EDGES = 300
OBSERVED = (10, 100, 1_000)  # in a batch
DAY = 86_400


class Check(NamedTuple):
    """A cost at three sizes. The first two predict the third."""

    title: str
    unit: str
    sizes: tuple[float, float, float]
    costs: tuple[float, float, float]
    of: str
    """What the sizes count."""

    @property
    def slope(self) -> float:
        """The cost of one more."""
        return (self.costs[1] - self.costs[0]) / (self.sizes[1] - self.sizes[0])

    @property
    def base(self) -> float:
        """The cost at size 0."""
        return self.costs[0] - self.slope * self.sizes[0]

    @property
    def predicted(self) -> float:
        """The cost at the third size, from the first two."""
        return self.base + self.slope * self.sizes[2]

    @property
    def cells(self) -> list[str]:
        """The cells of a table."""
        low, middle, high = (_rounded(size) for size in self.sizes)
        numbers = (self.base, self.slope, self.predicted, self.costs[2])
        base, slope, predicted, measured = (_rounded(number) for number in numbers)
        line = f"{base} + {slope} x {self.of}"
        difference = f"{self.predicted / self.costs[2] - 1.0:+.0%}"
        return [f"{self.title}, {self.unit}", f"{low}, {middle}", line, high, predicted, measured, difference]


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1_000 else f"{number:.3g}"


# --- sizes ----------------------------------------------------------------------------------------------------------------


class Size(NamedTuple):
    """What a log takes."""

    sqlite: float
    table: float
    indices: float
    start: float
    """Processor seconds of a server until it is ready, without a snapshot."""


def measured_size(folder: Path, database: Database, events: int) -> Size:
    """Write a log to both stores, and start a server from it."""
    path, url = folder / f"{events}.db", database.create()
    write_database(path, REWARDS, events=events)
    write_database(url, REWARDS, events=events)
    with psycopg.connect(url) as db:
        parts = "SELECT relid FROM pg_partition_tree('robandit.event') WHERE isleaf"
        query = f"SELECT sum(pg_table_size(relid))::bigint, sum(pg_indexes_size(relid))::bigint FROM ({parts}) AS part"
        row = db.execute(query.encode()).fetchone()
    assert row is not None
    starts = []
    for _ in range(STARTS):
        with runner(url) as server:
            server.wait_until_ready()
            starts.append(server.processor())
    database.drop(url)
    return Size(path.stat().st_size, row[0], row[1], statistics.median(starts))


def size_checks(folder: Path, database: Database) -> list[Check]:
    """Measure what logs of three lengths take."""
    log(f"logs of {EVENTS} events")
    sizes = [measured_size(folder, database, events) for events in EVENTS]

    def check(title: str, unit: str, value: Callable[[Size], float]) -> Check:
        return Check(title, unit, EVENTS, _three(value(size) for size in sizes), "events")

    return [
        check("SQLite file", "bytes", lambda size: size.sqlite),
        check("PostgreSQL, table of events", "bytes", lambda size: size.table),
        check("PostgreSQL, its indices", "bytes", lambda size: size.indices),
        check("start without a snapshot, processor time", "us", lambda size: size.start * 1e6),
    ]


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    first, second, third = values
    return first, second, third


# --- open decisions -------------------------------------------------------------------------------------------------------


def snapshot_checks() -> list[Check]:
    """Measure snapshots with open decisions."""
    log(f"snapshots with {OPEN} open decisions")
    settings = checked_settings(
        arms=ARMS, policy=None, minimize=True, seed=1, reward_window=None, on_expiry="drop", max_open=None, drawn=0
    )
    stored = StoredExperiment(1, NAME, 0, 0, msgspec.json.encode(settings))
    made: list[Event] = []
    experiment = LiveExperiment(
        stored, settings, clock=time.time, find=lambda *_: None, emit=made.append, compile="now"
    )
    experiment.create()
    for reward in REWARDS:
        experiment.reward(experiment.decide().event.id, reward)
    bytes_, seconds = [], []
    opened = 0
    for size in OPEN:
        while opened < size:
            experiment.decide()
            opened += 1
        start = time.process_time()
        content = [experiment.snapshot().content for _ in range(5)]
        seconds.append((time.process_time() - start) / 5)
        bytes_.append(len(content[0]))
    return [
        Check("a snapshot", "bytes", OPEN, _three(bytes_), "open decisions"),
        Check("  its processor time", "us", OPEN, _three(value * 1e6 for value in seconds), "open decisions"),
    ]


def memory_check(database: Database) -> Check:
    """Measure the memory of a replica with open decisions."""
    log(f"memory with {OPEN} open decisions")
    url = database.create()
    key = write_database(url, REWARDS)
    items = b'{"items":[%b]}' % b",".join([b"{}"] * LARGE_BATCH)
    decide = head("POST", f"/v1/experiments/{NAME}/decisions/batch", key) % len(items) + items
    reward = head("POST", f"/v1/experiments/{NAME}/rewards/batch", key)
    used = []
    with runner(url) as server:
        server.wait_until_ready()
        connection = Connection(server.port)
        for _ in range(10):  # caches fill, and code is compiled
            parts = [b'{"id":"%b","value":1.0}' % id for id in ids_in(connection.call(decide))]
            body = b'{"items":[%b]}' % b",".join(parts)
            connection.call(reward % len(body) + body)
        opened = 0
        for size in OPEN:
            while opened < size:
                connection.call(decide)
                opened += LARGE_BATCH
            used.append(server.memory())
        connection.close()
    database.drop(url)
    return Check("memory of a replica", "bytes", OPEN, _three(value * 1e6 for value in used), "open decisions")


# --- processors -----------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What an event costs under a load."""

    commits: float
    """Commits per event."""
    server: float
    """Processor time of all replicas, in microseconds."""
    database: float
    wal: float
    """Bytes of the write-ahead log."""
    following: float
    """Processor time of the last replica, in microseconds."""


def cost(group: Group, connections: int, url: str, ports: Sequence[int]) -> Cost:
    """Measure the costs per event of singles on some of the servers."""

    def clients() -> list[Client]:
        return [singles(NAME, group.key, REWARDS[i:]) for i in range(connections)]

    load.run(ports, clients(), 1.0)
    time.sleep(1.0)  # others catch up
    before, last, wal = group.used(), group.servers[-1].processor(), _written(url)
    found = load.run(ports, clients(), SECONDS)
    time.sleep(1.0)
    done = Round(found, *group.used().since(before))
    per_event = 1e6 / done.events
    following = (group.servers[-1].processor() - last) * per_event
    written = (_written(url) - wal) / done.events
    return Cost(done.commits / done.events, done.server * per_event, done.database * per_event, written, following)


def _median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each field."""
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def _written(url: str) -> int:
    with psycopg.connect(url) as db:
        row = db.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])


class Processors(NamedTuple):
    """Costs per event by the number of commits, and with several replicas."""

    checks: list[Check]
    following: float
    """Processor time of a replica for an event of another one, in microseconds."""


def processors(database: Database) -> Processors:
    """Measure replicas under loads."""
    with ExitStack() as stack:
        url = database.create()
        key = write_database(url, REWARDS)

        def group(number: int) -> Group:
            made = Group(key, [stack.enter_context(runner(url)) for _ in range(number)], database)
            for server in made.servers:
                server.wait_until_ready()
            return made

        alone = group(1)
        load.run(alone.ports, [singles(NAME, key, REWARDS)], 4.0)  # the policy is compiled meanwhile
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CHECKPOINT")  # its cost is that of the databases before
        log(f"one replica at {CONNECTIONS} connections")
        rounds = [[cost(alone, connections, url, alone.ports) for connections in CONNECTIONS] for _ in range(ROUNDS)]
        costs = [_median(each) for each in zip(*rounds, strict=True)]
        log("a second replica that follows")
        second = group(1)
        two = Group(key, [*alone.servers, *second.servers], database)
        followed = _median([cost(two, CONNECTIONS[-1], url, two.ports[:1]) for _ in range(ROUNDS)])
        log(f"{REPLICAS} replicas that share the load")
        all_of_them = Group(key, [*two.servers, *group(REPLICAS - 2).servers], database)
        shared = _median([cost(all_of_them, CONNECTIONS[-1], url, all_of_them.ports) for _ in range(ROUNDS)])
    commits = _three(each.commits for each in costs)

    def check(title: str, unit: str, value: Callable[[Cost], float]) -> Check:
        return Check(title, unit, commits, _three(value(each) for each in costs), "commits per event")

    replica = check("replica, per event", "us", lambda each: each.server)
    expected = replica.base + replica.slope * shared.commits  # without what the others do
    alone_, both = expected, expected + followed.following
    return Processors(
        [
            replica,
            check("PostgreSQL, per event", "us", lambda each: each.database),
            check("write-ahead log, per event", "bytes", lambda each: each.wal),
            Check("all replicas, per event", "us", (1, 2, REPLICAS), (alone_, both, shared.server), "replicas"),
        ],
        followed.following,
    )


# --- edges ----------------------------------------------------------------------------------------------------------------


def edge_checks(database: Database) -> list[Check]:
    """Measure what a cycle of an edge costs, which gets an allocation and sends a batch of observations."""
    with ExitStack() as stack:
        url = database.create()
        key = write_database(url, REWARDS)
        group = Group(key, [stack.enter_context(runner(url)) for _ in range(2)], database)
        for server in group.servers:
            server.wait_until_ready()
        load.run(group.ports, [singles(NAME, key, REWARDS)], 4.0)  # the policy is compiled meanwhile
        log(f"{EDGES} edges that send batches of {OBSERVED}")
        found = []
        for k, size in enumerate(OBSERVED):
            clients = [
                observations(NAME, key, REWARDS[i:], f"life{k:04d}x{i:04d}", size, refresh=True) for i in range(EDGES)
            ]
            before, last = group.used(), group.servers[-1].processor()
            done = load.run(group.ports[:1], clients, 2.0 * SECONDS)
            time.sleep(1.0)  # the other replica catches up
            used, cycles = group.used().since(before), done.requests / 2e6
            following = group.servers[-1].processor() - last
            found.append(((used.server - following) / cycles, following / cycles, used.database / cycles))
    titles = (f"replica, per cycle of {EDGES} edges", "  another replica that follows", "  PostgreSQL")
    columns = zip(*found, strict=True)
    return [
        Check(title, "us", OBSERVED, _three(column), "observations")
        for title, column in zip(titles, columns, strict=True)
    ]


def edges_plan(checks: Sequence[Check]) -> str:
    """Return what follows for edges: how many one store serves, and a million decisions per second."""
    answer, follow, database = checks
    lines = []
    for rate, refresh in ((10, 1.0), (10, 10.0), (1_000, 0.1), (1_000, 1.0)):
        size = min(LARGE_BATCH, rate * refresh)
        costs = [(check.base + check.slope * size) / size for check in (answer, follow, database)]
        per_core = 0.6e6 / costs[0]
        million = ", ".join(f"{cost:.2g}" for cost in costs)
        lines.append([f"{rate:,}", f"{refresh:g} s", f"{per_core / rate:,.0f}", f"{per_core:,.0f}", million])
    titles = ["decisions/s of an edge", "refresh", "edges on one replica", "decisions/s", "cores for 1,000,000/s"]
    return table(titles, lines, 0)


# --- the page -------------------------------------------------------------------------------------------------------------


def plan(checks: Sequence[Check], following: float) -> str:
    """Return what follows for a service, as a table."""
    sqlite, heap, indices = checks[:3]
    by_name = {check.title: check for check in checks}
    replica, database = by_name["replica, per event"], by_name["PostgreSQL, per event"]
    wal = by_name["write-ahead log, per event"]
    lines = []
    for rate in (100, 1_000, 10_000):
        per_commit = max(1.0, rate / 200.0)  # commits of 5 ms, one after the other
        c, d = (check.base + check.slope / per_commit for check in (replica, database))
        daily = rate * DAY / 1e9
        disk = daily * (heap.slope + indices.slope)
        logged = daily * (wal.base + wal.slope / per_commit)
        needed = _replicas(rate, c, following)
        lines.append(
            [
                f"{rate:,}",
                f"{daily * sqlite.slope:.3g}",
                f"{disk:.3g}",
                f"{logged:.3g}",
                f"{rate * c / 1e6:.2g}",
                f"{rate * following / 1e6:.2g}",
                f"{rate * d / 1e6:.2g}",
                needed,
            ]
        )
    titles = [
        "events/s",
        "SQLite, GB a day",
        "PostgreSQL, GB a day",
        "its log, GB a day",
        "cores to decide",
        "cores to follow, each replica",
        "cores of PostgreSQL",
        "replicas at 60 %",
    ]
    return table(titles, lines, 0)


def _replicas(rate: float, c: float, f: float, share: float = 0.6) -> str:
    """Return the number of replicas that keep their processors below a share, at least two."""
    for number in range(1, 100):
        if rate / number * (c + (number - 1) * f) / 1e6 <= share:
            return str(max(2, number))
    return "split the experiments"


def page(checks: Sequence[Check], following: float, edges: Sequence[Check], seconds: float) -> str:
    """Return the page of results."""
    replica = next(check for check in checks if check.title == "replica, per event")
    c = replica.base + replica.slope * replica.sizes[2]
    machine = f"{processor_name()}, {platform.system()}, Python {platform.python_version()}, {postgres_version()}"
    titles = ["cost", "measured at", "line", "checked at", "predicted", "measured", "difference"]
    parts = [
        "# The growth of the decision service: predicted and measured",
        table(titles, [check.cells for check in (*checks, *edges)], 2),
        "Each cost is measured at two small sizes. The line through both predicts the cost at a larger size, which is also "
        'measured. Processor times are those of all threads and processes. In "all replicas", the first two costs are computed.',
        f"At {CONNECTIONS[-1]} connections, an event takes c = {c:.3g} us on the replica that answers the call, and "
        f"f = {following:.3g} us on one that follows: c / f = {c / following:.1f}.",
        "## What follows from the lines",
        plan(checks, following),
        "The server creates the ids, and there are no contexts. The rate is constant over the day. Commits are assumed to take "
        "5 ms.",
        "## Edges",
        edges_plan(edges),
        f"Each edge gets an allocation, and then sends what it observed, up to {LARGE_BATCH:,} decisions in a batch. *edges on one "
        "replica*: with 60 % of a core. *cores*: of the replicas that answer, of each one that follows, and of PostgreSQL. A "
        "replica that follows needs more than a core at a million: split the experiments over stores.",
        f"Written by `python benchmarks/growth.py` in {seconds:.0f} seconds on {os.cpu_count()} shared cores ({machine}; load "
        f"average at the end {os.getloadavg()[0]:.1f}). [How the service grows](../explanation/growth.md) explains the model.",
    ]
    return "\n\n".join(part if part[0] in "#|" else filled(part) for part in parts) + "\n"


def main() -> None:
    """Measure, print the table, and write the page."""
    begin = time.perf_counter()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as name, Database(Path(name) / "postgres") as database:
        checks = size_checks(Path(name), database)
        checks += snapshot_checks()
        checks.append(memory_check(database))
        found = processors(database)
        edges = edge_checks(database)
    checks += found.checks
    text = page(checks, found.following, edges, time.perf_counter() - begin)
    PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
