"""Time-outs and arms that hang: ``python benchmarks/deadlines.py [RUNS]`` writes docs/results/deadlines.md (60 runs: minutes).

Requests arrive at random at a given rate, each reward is the time that its request took and is known when it ends, and requests end
after 30 s. Regret is in seconds: the sum over all requests of the mean cost of the chosen arm minus that of the best one.
"""

from __future__ import annotations

import heapq
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import robandit as rb

LIMIT = 30.0
SEED = 40
WAYS = ("expire without a trace", "cost 30 s when they end", "deadline=30")
# Name: the arm to count, and the number of requests.
SCENARIOS = {
    "the best arm hangs in 5 %": (0, 3_000),
    "one arm takes 10 s": (2, 3_000),
    "nothing hangs": (2, 3_000),
    "Pareto 1.3, nothing hangs": (2, 3_000),
    "one arm never answers": (2, 2_000),
}
GOALS = {"the best arm hangs in 5 %": 240.0, "one arm takes 10 s": 220.0, "nothing hangs": 60.0}  # at 50 requests/s
DEAD_CALLS = 30
RATES = (10.0, 50.0)
PAGE = Path(__file__).parents[1] / "docs" / "results" / "deadlines.md"


def latencies(scenario: str, rng: np.random.Generator, requests: int) -> NDArray[np.float64]:
    """Return how long each request would take, one row per arm; a request that hangs takes for ever."""
    if scenario == "Pareto 1.3, nothing hangs":
        return np.stack([0.3 * mean * np.exp(rng.standard_exponential(requests) / 1.3) for mean in (1.0, 1.2, 1.5)])
    means = {"one arm takes 10 s": (1.0, 1.5, 10.0), "nothing hangs": (1.0, 1.1, 1.5)}.get(scenario, (1.0, 1.5, 2.0))
    rows = np.stack([mean * np.exp(0.7 * rng.standard_normal(requests) - 0.245) for mean in means])
    if scenario == "the best arm hangs in 5 %":
        rows[0][rng.random(requests) < 0.05] = np.inf
    elif scenario == "one arm never answers":
        rows[2] = np.inf
    return rows


def gaps(scenario: str) -> NDArray[np.float64]:
    """Return the mean cost of each arm minus that of the best one."""
    means = np.minimum(latencies(scenario, np.random.default_rng(999), 400_000), LIMIT).mean(axis=1)
    return means - means.min()  # type: ignore[no-any-return]


def play(scenario: str, rate: float, way: str, run: int, **options: Any) -> NDArray[np.int64]:
    """Return the calls of each arm in one run."""
    _, requests = SCENARIOS[scenario]
    rng = np.random.default_rng([SEED, run])
    took = latencies(scenario, rng, requests)
    arrivals = np.cumsum(rng.standard_exponential(requests)) / rate
    now = 0.0
    if way == WAYS[2]:
        options["deadline"] = LIMIT
    bandit = rb.Bandit(range(len(took)), minimize=True, clock=lambda: now, compile="now", **options)
    calls = np.zeros(len(took), dtype=np.int64)
    open_requests: list[tuple[float, Any, float]] = []
    for arrival in arrivals.tolist():
        while open_requests and open_requests[0][0] <= arrival:
            now, id, cost = heapq.heappop(open_requests)
            if cost < LIMIT or way == WAYS[1]:
                bandit.reward(id, min(cost, LIMIT))
            elif way == WAYS[0]:
                bandit.expire(id)  # with a deadline, the bandit closes it itself
        now = arrival
        decision = bandit.decide()
        cost = float(took[decision.arm, calls[decision.arm]])
        calls[decision.arm] += 1
        heapq.heappush(open_requests, (now + min(cost, LIMIT), decision.id, cost))
    return calls


def price(arms: int = 3, waiting: int = 1_000) -> tuple[float, float]:
    """Return the seconds that the evidence of so many open decisions takes per decision, and what a whole ``decide`` takes more."""
    now = [0.0]
    found = []
    for deadline in (None, LIMIT):
        bandit = rb.Bandit(range(arms), minimize=True, seed=0, deadline=deadline, clock=lambda: now[0], compile="now")
        costs = np.random.default_rng(0).lognormal(0.0, 0.7, 3_000)
        for k, cost in enumerate(costs.tolist()):
            bandit.update(k % arms, cost)
        for k in range(waiting):
            now[0] = 2.0 * k / waiting
            bandit.decide(arm=k % arms)
        found.append(best(partial(_copied, bandit.to_bytes(), now)))
    look = bandit._deadline.look  # type: ignore[union-attr]
    return best(lambda: lambda: look(now[0])), found[1] - found[0]


def _copied(data: bytes, now: list[float]) -> Callable[[], object]:
    """Return ``decide`` of a copy of a bandit."""
    return rb.Bandit.from_bytes(data, clock=lambda: now[0], compile="now").decide


def best(make: Callable[[], Callable[[], object]]) -> float:
    """Return the time of a call, in seconds: the best of many short rounds, because the machine may be busy."""
    times = []
    for _ in range(200):
        call = make()
        call()
        start = time.perf_counter()
        for _ in range(100):
            call()
        times.append((time.perf_counter() - start) / 100)
    return min(times)


def main(runs: int = 60) -> None:
    """Measure, and write the page."""
    warnings.simplefilter("ignore", rb.errors.DriftWarning)  # costs in the order in which they end look like a change
    lines = [
        "# Time-outs and arms that hang, measured",
        "",
        "Regret in seconds, mean / 95 % quantile, and in brackets the mean number of calls of the arm in question, by what becomes "
        "of time-outs (30 s).",
        "",
        f"| scenario | requests/s | {' | '.join(WAYS)} | goal |",
        "|---|---|---|---|---|---|",
    ]
    for scenario, (counted, requests) in SCENARIOS.items():
        lost = gaps(scenario)
        for rate in RATES:
            cells = []
            for way in WAYS:
                calls = np.array([play(scenario, rate, way, run) for run in range(runs)])
                regret = calls @ lost
                cells.append(
                    f"{regret.mean():,.0f} / {np.quantile(regret, 0.95):,.0f} ({calls[:, counted].mean():,.0f})"
                )
            goal = f"{GOALS[scenario]:g}" if scenario in GOALS and rate == 50.0 else ""
            goal = f"{DEAD_CALLS} calls of {requests:,}" if scenario == "one arm never answers" else goal
            lines.append(f"| {scenario} | {rate:g} | {' | '.join(cells)} | {goal} |")
            print(lines[-1], flush=True)
    look, decide = price()
    lines += [
        "",
        f"{runs} runs per cell with the same requests for all columns; AdaKL-UCB, three arms, log-normal times (sigma 0.7) with "
        "means of 1, 1.5 and 2 s (1, 1.5 and 10; 1, 1.1 and 1.5 if nothing hangs), 3,000 requests (2,000 in the last rows). A "
        "time-out costs 30 s.",
        "The goals were set from a prototype on other seeds. [Survivor bias](../how-to/production.md#time-outs-and-arms-that-hang) "
        "explains the first column.",
        "",
        f"The evidence of 1,000 open decisions of three arms takes {1e6 * look:.1f} us per decision, and a whole `decide` takes "
        f"{1e6 * decide:.1f} us more than without a deadline (2 cores, Python {sys.version.split()[0]}, best of many rounds).",
        "",
        f"`python benchmarks/deadlines.py {runs}` writes this page.",
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[-6:]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
