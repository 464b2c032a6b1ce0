"""Robandit, with the same actions as its peers. It starts with an empty cache; compilation is timed separately."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import heavy
import workload
from sample import DELTA, SIZES, VARIANCE, sample

import robandit as rb
from robandit.policies.base import Policy

PACKAGES = ["numpy", "numba"]
TABLE = workload.table()
REPLICATIONS = 200
BERNOULLI = rb.problems.bernoulli(means=workload.MEANS)
HEAVY = rb.problems.negated_pareto(means=heavy.MEANS, tail=heavy.TAIL)
HEAVY_REWARDS = heavy.table(max(heavy.HORIZONS), 1).tolist()
CHECKED = heavy.table(heavy.CHECKED, 0).tolist()


def live() -> float:
    bandit, total = rb.Bandit(range(workload.ARMS), rb.UCB1(), seed=0, compile="now"), 0.0
    for t in range(workload.ROUNDS):
        arm = bandit.select()
        reward = TABLE[arm][t]
        bandit.update(arm, reward)
        total += reward
    return total / workload.ROUNDS


def simulated(policy: Policy, problem: rb.Problem, rounds: int, replications: int) -> None:
    rb.simulate(policy, problem, rounds, replications, seed=1, threads=1, progress=False)


def heavy_live(pulls: int, rewards: list[list[float]]) -> list[int]:
    """Return the arms chosen by a live AdaR-UCB; the k-th pull of an arm returns its k-th reward."""
    bandit = rb.Bandit(range(heavy.ARMS), rb.AdaRUCB(), seed=0, compile="now")
    streams = [iter(row) for row in rewards]
    chosen = []
    for _ in range(pulls):
        arm = bandit.select()
        bandit.update(arm, next(streams[arm]))
        chosen.append(arm)
    return chosen


def heavy_live_timed(pulls: int) -> None:
    """Play without returning the arms, which the worker would send as JSON."""
    heavy_live(pulls, HEAVY_REWARDS)


def trimmed(x: Any) -> float:
    return float(rb.estimators.adaptive_trimmed_mean(x, delta=DELTA, seed=0, warn=False).upper)


def median_of_means(x: Any) -> float:
    return float(rb.estimators.median_of_means(x, delta=DELTA, eps=1.0, v=VARIANCE).upper)


def catoni(x: Any) -> float:
    return float(rb.estimators.catoni_mean(x, v=VARIANCE, delta=DELTA).upper)


def compile_seconds() -> dict[str, str]:
    """Return the processor seconds of first calls, with an empty cache."""
    calls: dict[str, Any] = {
        "UCB1, simulated": partial(simulated, rb.UCB1(), BERNOULLI, 100, 1),
        "UCB1, live": live,
        "AdaR-UCB, simulated": partial(simulated, rb.AdaRUCB(), HEAVY, 100, 1),
        "AdaR-UCB, live": partial(heavy_live_timed, 100),
    }
    seconds = {}
    for name, call in calls.items():
        start = time.process_time()
        call()
        seconds[name] = f"{time.process_time() - start:.1f}"
    return seconds


FACTS = {"robandit": rb.__version__} | compile_seconds()
ACTIONS: dict[str, tuple[Any, int]] = {
    "live": (live, workload.ROUNDS),
    "simulated": (
        partial(simulated, rb.UCB1(), BERNOULLI, workload.ROUNDS, REPLICATIONS),
        workload.ROUNDS * REPLICATIONS,
    ),
    "arms": (partial(heavy_live, heavy.CHECKED, CHECKED), heavy.CHECKED),
}
for pulls in heavy.HORIZONS:
    ACTIONS[f"AdaR-UCB {pulls}"] = (partial(simulated, rb.AdaRUCB(), HEAVY, pulls, 20), 20 * pulls)
    ACTIONS[f"AdaR-UCB live {pulls}"] = (partial(heavy_live_timed, pulls), pulls)
for n in SIZES:
    for estimator in (trimmed, median_of_means, catoni):
        ACTIONS[f"{estimator.__name__} {n}"] = (partial(estimator, sample(n)), n)
