"""How many edges one store serves: ``python benchmarks/edge_fleet.py``. Writes docs/results/edge-fleet.md.

Each cost of a server is measured alone, at two sizes; a third one checks the line. The model adds them up for hundreds of
simulated edges, which is then measured, too. Takes about two minutes, with a server of its own. docs/explanation/growth.md explains
the model.
"""

from __future__ import annotations

import heapq
import http.client
import itertools
import json
import os
import platform
import random
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from growth import Check
from long_log import ARMS, NAME, write_database
from serving import REWARDS, Server, log, runner

import robandit as rb
from service import BUILD, ROOT, processor_name, table

PAGE = ROOT / "docs" / "results" / "edge-fleet.md"
SECONDS = 4.0  # of each cost
BATCHES = (10, 100, 1_000)  # observations in a batch
DECISIONS = (1_000, 4_000, 16_000)  # of an allocation
FLEETS = ((100, 1.0, 2_000), (300, 3.0, 3_000), (500, 5.0, 2_000))
"""Edges, the seconds between two refreshes, and the decisions per second of all."""
THREADS = 16  # that play the edges
FLEET_SECONDS = 15.0
BUSY = 0.6  # the share of a core that is planned for
MILLION = 1_000_000
PATH = f"/v1/experiments/{NAME}"


class Line:
    """A connection to the server, and an edge that speaks on it."""

    def __init__(self, port: int, key: str, edge: int) -> None:
        """Connect."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {"Authorization": f"Bearer {key}"}
        self._numbers = itertools.count()
        self._life = f"{random.SystemRandom().getrandbits(32):08x}{edge:04d}"
        self._random = random.Random(edge)
        self.version = ""
        self._arms: list[str] = []
        self._shares: list[float] = []

    def _call(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
        self._connection.request(method, PATH + path, body, self._headers | (headers or {}))
        response = self._connection.getresponse()
        raw = response.read()
        if response.status == 304:
            return None
        if response.status != 200:
            raise RuntimeError(f"the server refused a call: {response.status} {raw[:300]!r}")
        return json.loads(raw)

    def refresh(self, seconds: float) -> bool:
        """Take the newest allocation. Return whether it is another one."""
        known = {"If-None-Match": f'"{self.version}"'} if self.version else {}
        found = self._call("GET", f"/allocation?for={seconds:g}s", headers=known)
        if found is None:
            return False
        self.version, self._arms, self._shares = found["version"], found["arms"], found["probabilities"]
        return True

    def send(self, size: int) -> int:
        """Send a batch of observations, of decisions that are drawn now. Return how many the service learned."""
        now = time.time()
        items = []
        for arm, share in self._random.choices(list(zip(self._arms, self._shares, strict=True)), self._shares, k=size):
            drawn = {"arm": arm, "propensity": share, "allocation": self.version}
            times = {"decided": now - 0.1, "rewarded": now}
            value = self._random.choice(REWARDS) * (1.0 + 0.1 * self._arms.index(arm))
            items.append({"id": f"{self._life}-{next(self._numbers)}", **drawn, **times, "value": value})
        found = self._call("POST", "/observations/batch", json.dumps({"items": items}).encode())
        if found["refused"]:
            raise RuntimeError(f"the server refused an observation: {found['refused'][0]}")
        return int(found["learned"])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def per_call(server: Server, calls: Iterator[object]) -> float:
    """Return the processor time of the server per call, in microseconds."""
    number, start, end = 0, server.processor(), time.perf_counter() + SECONDS
    for _ in calls:
        number += 1
        if time.perf_counter() > end:
            break
    return (server.processor() - start) / number * 1e6


class Costs(NamedTuple):
    """Processor time of a server in microseconds."""

    refresh: float
    batch: Check
    allocation: Check

    def edges(self, refreshes: float, rate: float) -> float:
        """Return the cores that edges keep busy which refresh and decide so often per second, together."""
        requests = refreshes * (self.refresh + self.batch.base)
        return (requests + rate * (self.batch.slope + max(self.allocation.slope, 0.0))) / 1e6

    def allocations(self, seconds: float) -> float:
        """Return the cores that a new allocation every so many seconds keeps busy."""
        return self.allocation.base / seconds / 1e6


def allocation_check() -> Check:
    """Measure how long an allocation takes, by the number of its decisions."""
    bandit: Any = rb.Bandit(ARMS, seed=1, minimize=True, compile="now")
    for i, reward in enumerate(REWARDS):
        bandit.update(ARMS[i % len(ARMS)], reward * (1.0 + 0.1 * (i % len(ARMS))))
    found = []
    for decisions in DECISIONS:
        bandit.allocation(decisions)
        start = time.process_time()
        for _ in range(20):
            bandit.allocation(decisions)
        found.append((time.process_time() - start) / 20 * 1e6)
    return Check("an allocation", "us", DECISIONS, (found[0], found[1], found[2]), "decisions")


def costs(server: Server, line: Line) -> Costs:
    """Measure each cost alone."""
    log("refreshes")
    line.refresh(3_600.0)
    refresh = per_call(server, (line.refresh(3_600.0) for _ in itertools.count()))
    batches = []
    for size in BATCHES:
        log(f"batches of {size}")
        batches.append(per_call(server, (line.send(size) for _ in itertools.count())))
    batch = Check("a batch of observations", "us", BATCHES, (batches[0], batches[1], batches[2]), "observations")
    return Costs(refresh, batch, allocation_check())


class Fleet(NamedTuple):
    """What a fleet took."""

    edges: int
    seconds: float
    refreshes: float
    """Refreshes per second, as they were made."""
    rate: float
    """Decisions per second, as they were sent."""
    cores: float
    late: float
    """The longest delay of a refresh, in seconds."""


def fleet(server: Server, key: str, edges: int, seconds: float, rate: float) -> Fleet:
    """Play a fleet: each edge sends its observations, and then refreshes, at its own times."""
    log(f"{edges} edges, {seconds:g} s, {rate:,} decisions/s")
    lines = [Line(server.port, key, edge) for edge in range(edges)]
    for line in lines:
        line.refresh(seconds)
    size = round(rate * seconds / edges)
    begin = time.perf_counter()
    sent, late = [0] * THREADS, [0.0] * THREADS

    def play(thread: int) -> None:
        own = lines[thread::THREADS]
        due = [(begin + seconds * (i + random.random()) / len(own), i) for i in range(len(own))]
        heapq.heapify(due)
        while due[0][0] < begin + FLEET_SECONDS:
            at, i = heapq.heappop(due)
            time.sleep(max(at - time.perf_counter(), 0.0))
            late[thread] = max(late[thread], time.perf_counter() - at)
            own[i].send(size)
            own[i].refresh(seconds)
            sent[thread] += 1
            heapq.heappush(due, (at + seconds * random.uniform(0.9, 1.1), i))

    threads = [threading.Thread(target=play, args=(thread,)) for thread in range(THREADS)]
    before = server.processor()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    taken = time.perf_counter() - begin
    for line in lines:
        line.close()
    refreshes = sum(sent) / taken
    return Fleet(edges, seconds, refreshes, refreshes * size, (server.processor() - before) / taken, max(late))


# --- the page -------------------------------------------------------------------------------------------------------------


def served(found: Costs) -> str:
    """Return how many edges one replica serves, as a table."""
    rows = []
    for seconds in (0.1, 1.0, 10.0):
        for rate in (1, 10, 100, 1_000):  # decisions per second of an edge
            edges = max(BUSY - found.allocations(seconds), 0.0) / found.edges(1.0 / seconds, rate)
            stores = MILLION / (edges * rate) if edges else float("inf")
            rows.append([f"{seconds:g} s", f"{rate:,}", f"{edges:,.0f}", f"{edges * rate:,.0f}", f"{stores:,.0f}"])
    titles = ["refresh", "decisions/s of an edge", "edges", "decisions/s", "stores for 1,000,000 decisions/s"]
    return table(titles, rows, 1)


def page(found: Costs, fleets: list[Fleet], seconds: float) -> str:
    """Return the page of results."""
    titles = ["cost", "measured at", "line", "checked at", "predicted", "measured", "difference"]
    rows = []
    errors = []
    for each in fleets:
        predicted = found.edges(each.refreshes, each.rate) + found.allocations(each.seconds)
        errors.append(predicted / each.cores - 1.0)
        made = [f"{each.edges}", f"{each.seconds:g} s", f"{each.refreshes:,.0f}", f"{each.rate:,.0f}"]
        cores = [f"{predicted:.3f}", f"{each.cores:.3f}", f"{errors[-1]:+.0%}"]
        rows.append([*made, *cores, f"{each.late * 1e3:,.0f} ms"])
    machine = f"{processor_name()}, {platform.system()}, Python {platform.python_version()}"
    parts = [
        "# How many edges one store serves",
        served(found),
        f"Edges that keep {BUSY:.0%} of one core of one replica busy, by the model, and the stores (each with one replica) that a "
        "million decisions per second need. Every decision is observed. The model's "
        f"error was {min(errors):+.0%} to {max(errors):+.0%} where it was checked (below); beyond those rates it extrapolates.",
        "## The model",
        "One edge costs (g + b) / R + r (s + a) per second, and all together a new allocation every R. R is the refresh in "
        f"seconds, r its decisions per second, g a refresh that finds nothing new ({found.refresh:,.0f} us), b + s n a batch of n "
        "observations, a the allocation's time per decision (0 if its slope is not positive).",
        table(titles, [found.batch.cells, found.allocation.cells], 2),
        "## Fleets of simulated edges",
        table(
            ["edges", "refresh", "refreshes/s", "decisions/s", "cores, predicted", "measured", "difference", "latest"],
            rows,
            0,
        ),
        f"Each edge sends its observations and then refreshes, for {FLEET_SECONDS:.0f} s. *Latest* is the longest time that a "
        "refresh began after it was due; edges and server share the cores.",
        f"An SQLite file with full durability, {len(ARMS)} arms, the default policy. Written by `python benchmarks/edge_fleet.py` "
        f"in {seconds:.0f} seconds on {os.cpu_count()} shared cores ({machine}; load average {os.getloadavg()[0]:.1f}), "
        f"{time.strftime('%Y-%m-%d')}.",
    ]
    filled = [part if part.startswith(("#", "|")) else textwrap.fill(part, 130) for part in parts]
    return "\n\n".join(filled) + "\n"


def main() -> None:
    begin = time.perf_counter()
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        path = Path(name) / "fleet.db"
        key = write_database(path, REWARDS, events=2_000)
        with runner(path) as server:
            server.wait_until_ready()
            line = Line(server.port, key, 9_999)
            line.refresh(1.0)
            for _ in range(5):  # the policy is compiled meanwhile
                line.send(100)
                time.sleep(1.0)
            found = costs(server, line)
            line.close()
            fleets = [fleet(server, key, *each) for each in FLEETS]
    PAGE.write_text(page(found, fleets, time.perf_counter() - begin))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
