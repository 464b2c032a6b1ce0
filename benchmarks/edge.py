"""The regret and the speed of decisions at the edge: ``python benchmarks/edge.py [SEEDS]``. Writes docs/results/edge.md.

Ten simulated edges make 1,000 decisions per second together, by a simulated clock. Rewards are known after a random time. An edge
sends what it has at each refresh, and then takes the allocation of the service, which makes a new one when the last is as old as
the refresh. The strict service decides each time with all rewards that are known at that moment. 20 seeds take about half an hour.
"""

from __future__ import annotations

import heapq
import json
import multiprocessing
import os
import platform
import statistics
import sys
import textwrap
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

import robandit as rb
from robandit.kernel.types import Floats, Ints
from robandit.problems import Problem
from robandit_client import Client, Edge
from service import ROOT, processor_name, table

PAGE = ROOT / "docs" / "results" / "edge.md"
PROBLEMS = ("pareto-1.6", "pareto-1.2", "latency", "lognormal", "stable-1.5", "zeros", "student-1.5", "orders")
EDGES = 10
RATE = 1_000  # decisions per second, of all edges
HORIZON = 50_000
DELAY = 0.05  # mean seconds until a reward is known; exponential
ARMS = [f"arm {i}" for i in range(10)]
ROUNDS, CALLS = 20, 10_000
SHORTEST = 0.1  # seconds: the shortest refresh that the service offers
GROWTH = 0.05  # a growing refresh is this share of the experiment's age


class Way(NamedTuple):
    """How decisions are made: with allocations of some age, or by the service each time."""

    title: str
    refresh: float = 0.0
    """Seconds; 0 if the service decides each time."""
    grows: bool = False
    """Whether the refresh is a share of the experiment's age at first."""

    def interval(self, now: float) -> float:
        """Return the seconds until the next refresh."""
        return min(self.refresh, max(SHORTEST, GROWTH * now)) if self.grows else self.refresh


STRICT = Way("strict")
WAYS = (
    STRICT,
    Way("0.1 s", 0.1),
    Way("1 s", 1.0),
    Way("10 s", 10.0),
    Way("1 s, growing", 1.0, True),
    Way("10 s, growing", 10.0, True),
)


class World:
    """The rewards of a run. The k-th reward of an arm is the same for all ways."""

    def __init__(self, problem: Problem, seed: int) -> None:
        """Draw the rewards when they are first needed."""
        self.problem = problem
        self.arms = list(problem.names)
        self.pulls = np.zeros(problem.arms, dtype=np.int64)
        self._seed = seed
        self._rewards: dict[int, Floats] = {}

    def pull(self, arm: int) -> float:
        """Return the next reward of an arm."""
        if arm not in self._rewards:
            law = self.problem.reward_laws[arm]
            self._rewards[arm] = law.sample(HORIZON, seed=self._seed * 1_000 + arm)
        self.pulls[arm] += 1
        return float(self._rewards[arm][self.pulls[arm] - 1])

    @property
    def regret(self) -> float:
        """The regret so far, as a share of that of uniform play up to the end."""
        return float(self.pulls @ self.problem.gaps) / self.problem.uniform_regret(HORIZON)


def allocation(bandit: rb.Bandit, decisions: int) -> Floats:
    """Return the shares of the arms among the next decisions in flight: what the service answers."""
    if hasattr(bandit, "allocation"):
        shares = bandit.allocation(decisions)
        return np.array([shares[arm] for arm in bandit.arms])
    copy = rb.Bandit.from_bytes(bandit.to_bytes(), compile="now")
    counts = Counter(copy.decide().arm for _ in range(decisions))
    return np.array([counts[arm] for arm in bandit.arms]) / decisions


def strict(world: World, bandit: rb.Bandit, rng: np.random.Generator) -> None:
    """Decide each time with all rewards that are known at that moment."""
    delays = rng.exponential(DELAY, HORIZON)
    position = {arm: i for i, arm in enumerate(world.arms)}
    waiting: list[tuple[float, object, float]] = []
    for t in range(HORIZON):
        now = t / RATE
        while waiting and waiting[0][0] <= now:
            _, id, value = heapq.heappop(waiting)
            bandit.reward(id, value)  # type: ignore[arg-type]
        decision = bandit.decide()
        heapq.heappush(waiting, (now + delays[t], decision.id, world.pull(position[decision.arm])))


class Allocations:
    """The service: it makes an allocation when the last one is too old, for all edges."""

    def __init__(self, bandit: rb.Bandit, way: Way) -> None:
        """Begin without one."""
        self._bandit = bandit
        self._way = way
        self._until = -1.0
        self._shares: Floats = np.empty(0)

    def at(self, now: float) -> Floats:
        """Return the allocation of a moment."""
        if now >= self._until - 1e-9:
            seconds = self._way.interval(now)
            self._shares = allocation(self._bandit, round(RATE * seconds))
            self._until = now + seconds
        return self._shares


def at_the_edge(way: Way, world: World, bandit: rb.Bandit, rng: np.random.Generator) -> None:
    """Let edges decide from allocations, and send at each refresh what they have."""
    allocations = Allocations(bandit, way)
    unsent: list[list[tuple[float, int, float]]] = [[] for _ in range(EDGES)]
    due = [(way.interval(0.0) * i / EDGES if i else 0.0, i) for i in range(EDGES)]
    started = [
        0.0
    ] * EDGES  # an edge decides from its first allocation on; the first interval is shorter for all but one
    heapq.heapify(due)
    left = HORIZON
    while left:
        now, edge = heapq.heappop(due)
        known = sorted(each for each in unsent[edge] if each[0] <= now)
        if known:
            unsent[edge] = [each for each in unsent[edge] if each[0] > now]
            bandit.update_many([world.arms[arm] for _, arm, _ in known], [value for _, _, value in known])
        shares = allocations.at(now)
        following = now + way.interval(now)
        started[edge] += (following - now) * RATE / EDGES
        number = min(left, int(started[edge]))
        started[edge] -= number
        left -= number
        arms: Ints = rng.choice(len(shares), number, p=shares)
        times = now + np.arange(number) * EDGES / RATE + rng.exponential(DELAY, number)
        unsent[edge] += [(float(at), int(arm), world.pull(int(arm))) for at, arm in zip(times, arms, strict=True)]
        heapq.heappush(due, (following, edge))


def regret(way: Way, task: str, seed: int) -> float:
    """Return the regret of a way in one run, as a share of uniform play's."""
    problem = next(each.problem for each in rb.suites.heavy().tasks if each.name == task)
    world = World(problem, seed)
    rng = np.random.default_rng(np.random.SeedSequence((seed, 39)))
    bandit = rb.Bandit(world.arms, seed=seed, compile="now")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # false alarms of changes are expected in so many runs
        if way == STRICT:
            strict(world, bandit, rng)
        else:
            at_the_edge(way, world, bandit, rng)
    return world.regret


def regrets(seeds: int, processes: int) -> Iterator[tuple[str, dict[Way, Floats]]]:
    """Yield the regrets of each problem as soon as they are known."""
    with ProcessPoolExecutor(processes) as pool:
        runs = {
            (task, way): [pool.submit(regret, way, task, seed) for seed in range(seeds)]
            for task in PROBLEMS
            for way in WAYS
        }
        for task in PROBLEMS:
            yield task, {way: np.array([run.result() for run in runs[task, way]]) for way in WAYS}


# --- the speed in the client --------------------------------------------------------------------------------------------


class Stub(BaseHTTPRequestHandler):
    """Answers calls of an edge as the service does, as fast as Python can."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        shares = {"version": "v", "arms": ARMS, "probabilities": [1.0 / len(ARMS)] * len(ARMS)}
        self._answer({"experiment": "x", **shares, "valid_for": 3_600.0, "made": 0.0, "decisions": 1})

    def do_POST(self) -> None:
        items = self.rfile.read(int(self.headers["content-length"])).count(b'"id":')
        self._answer({"learned": items, "late": 0, "expired": 0, "replayed": 0, "refused": []})

    def _answer(self, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    def log_message(self, format: str, *args: object) -> None:
        pass


def stub(ports: Connection) -> None:
    """Serve in a process of its own, until it is ended."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    ports.send(server.server_address[1])
    server.serve_forever()


class Speed(NamedTuple):
    """Processor time of the client, in microseconds: the median of the rounds, and the best one."""

    title: str
    median: float
    best: float

    @property
    def cells(self) -> list[str]:
        """The cells of a table."""
        return [self.title, f"{self.median:.2f}", f"{self.best:.2f}", f"{1e6 / self.median:,.0f}"]


@contextmanager
def stubbed() -> Iterator[Edge]:
    """Yield an edge of a service that does nothing."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=stub, args=(theirs,), daemon=True)
    process.start()
    try:
        with Client(f"http://127.0.0.1:{ours.recv()}", timeout=60.0) as client:
            yield client.edge("x", refresh=3_600.0)
    finally:
        process.terminate()
        process.join()


def memory() -> tuple[float, float]:
    """Return the bytes of an open decision, and of an observation that waits and was sent once."""
    with stubbed() as edge:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(CALLS):
            edge.decide()
        opened = tracemalloc.get_traced_memory()[0] - before
        with edge._sending:  # so that nothing is sent meanwhile
            for id in list(edge._open):
                edge.reward(id, 1.5)
            for each in edge.waiting:
                assert each.body
            waiting = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    return opened / CALLS, waiting / CALLS


def speeds() -> list[Speed]:
    """Measure what a decision and its reward take in one thread, and with what is sent in the background."""
    taken: dict[str, list[float]] = {"decide": [], "reward": [], "both, with all that is sent in the background": []}
    deciding, rewarding, both = taken.values()
    with stubbed() as edge:
        for _ in range(ROUNDS):
            start, begin = time.process_time(), time.thread_time()
            decisions = [edge.decide() for _ in range(CALLS)]
            middle = time.thread_time()
            for decision in decisions:
                edge.reward(decision, 1.5)
            end = time.thread_time()
            edge.flush(60.0)
            deciding.append(middle - begin)
            rewarding.append(end - middle)
            both.append(time.process_time() - start)
    return [
        Speed(title, statistics.median(each) / CALLS * 1e6, min(each) / CALLS * 1e6) for title, each in taken.items()
    ]


# --- the page -------------------------------------------------------------------------------------------------------------


def ratio(ours: Floats, strict: Floats) -> tuple[float, float]:
    """Return the mean regret as a multiple of the strict one's, and its standard error over the (paired) seeds."""
    value = ours.mean() / strict.mean()
    return value, float(np.std(ours - value * strict, ddof=1) / np.sqrt(len(ours)) / strict.mean())


def ratios(found: dict[str, dict[str, list[float]]]) -> list[list[str]]:
    """Return the rows of a table: a row for each problem, and their geometric mean."""
    rows = []
    values: dict[str, list[float]] = {way.title: [] for way in WAYS[1:]}
    for task, regrets_ in found.items():
        strictly = np.array(regrets_[STRICT.title])
        cells = [task, f"{100.0 * strictly.mean():.3g}"]
        for title, each in values.items():
            value, error = ratio(np.array(regrets_[title]), strictly)
            each.append(value)
            cells.append(f"{value:.2f} ± {error:.2f}")
        rows.append(cells)
    means = [f"**{statistics.geometric_mean(each):.2f}**" for each in values.values()]
    return [*rows, ["geometric mean", "", *means]]


def page(found: dict[str, dict[str, list[float]]], seconds: float, measured: list[Speed]) -> str:
    """Return the page of results."""
    seeds = len(found[PROBLEMS[0]][STRICT.title])
    titles = ["problem", "strict, %", *(way.title for way in WAYS[1:])]
    opened, waiting = memory()
    pairs = {
        way.title: [(np.array(each[way.title]), np.array(each[STRICT.title])) for each in found.values()]
        for way in WAYS
    }
    mean = {title: statistics.geometric_mean(ratio(*pair)[0] for pair in each) for title, each in pairs.items()}
    added = {
        title: max(100.0 * float(np.mean(ours - strict_)) for ours, strict_ in each) for title, each in pairs.items()
    }
    machine = f"{processor_name()}, {platform.system()}, Python {platform.python_version()}"
    paragraphs = [
        "# Decisions at the edge",
        "## Regret by the age of allocations",
        table(titles, ratios(found), 1),
        "Regret as a multiple of that of the service if it decides each time (*strict*, in per cent of uniform play), with the "
        "standard error, by the seconds between two refreshes. *Growing*, as the service does it: at first "
        f"{SHORTEST:g} s, then {GROWTH:.0%} of the age of the experiment, up to the given seconds.",
        f"The goal is at most 1.25 at 1 s. The geometric mean is {mean['1 s']:.2f}, and {mean['1 s, growing']:.2f} if the refresh "
        "grows. The cost comes at the start, because the first allocation knows nothing: in points of uniform play, a refresh of "
        f"1 s adds {added['1 s']:.1f} at most, and {added['1 s, growing']:.1f} if it grows.",
        f"{EDGES} edges with different phases make {RATE:,} decisions per second together, for {HORIZON / RATE:.0f} s. A reward is "
        f"known after an exponential time with the mean {DELAY * 1e3:.0f} ms, to the strict service as well. The default policy, "
        f"the suite `heavy`, {seeds} seeds; the k-th reward of an arm is the same in all columns.",
        "## Local decisions",
        table(["call", "us, median", "us, best", "per second and core"], [each.cells for each in measured], 1),
        f"Processor time of the client with {len(ARMS)} arms, in {ROUNDS} rounds of {CALLS:,} calls. The goal for `decide` is "
        "below 2 us. The last row has all threads of the client, with JSON and HTTP. "
        f"An open decision takes {opened:.0f} bytes, an observation that waits {waiting:.0f}.",
        f"Written by `python benchmarks/edge.py {seeds}` ({seconds / 60.0:.0f} minutes for the regret) on {os.cpu_count()} shared "
        f"cores ({machine}; load average {os.getloadavg()[0]:.1f}), {time.strftime('%Y-%m-%d')}.",
    ]
    filled = [part if part.startswith(("#", "|")) else textwrap.fill(part, 130) for part in paragraphs]
    return "\n\n".join(filled) + "\n"


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    measured = speeds()
    for each in measured:
        print(*each.cells, sep="  ")
    start = time.perf_counter()
    found = {}
    for task, regrets_ in regrets(seeds, processes):
        found[task] = {way.title: regrets_[way].tolist() for way in WAYS}
        print(*ratios({task: found[task]})[0], sep="  ", flush=True)
    PAGE.write_text(page(found, time.perf_counter() - start, measured))
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
