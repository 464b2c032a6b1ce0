"""Time per round on rewards that are not independent: sorted, drifting, growing, on alternating scales.

    python benchmarks/hard_sequences.py

``make bench`` prints the slowest of them. Every arm of a live bandit gets the same sequence, so that arms are hard to tell apart.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import robandit as rb
from robandit.kernel.types import Floats
from robandit.policies.base import Policy

Sequence = Callable[[np.random.Generator, Floats], Floats]
"""Makes rewards from a generator and the numbers 1, 2, ..., n."""

SEQUENCES: dict[str, Sequence] = {
    "independent": lambda rng, i: -1.0 - rng.pareto(1.5, len(i)),
    "ascending": lambda rng, i: i,
    "descending": lambda rng, i: -i,
    "growing exponentially": lambda rng, i: np.exp(340.0 * i / len(i)),
    "losses that grow exponentially": lambda rng, i: -np.exp(340.0 * i / len(i)),
    "both signs, growing exponentially": lambda rng, i: np.where(i % 2 == 0, 1.0, -1.0) * np.exp(340.0 * i / len(i)),
    "ascending ever slower": lambda rng, i: np.log(i),
    "sorted gains": lambda rng, i: np.sort(rng.pareto(1.5, len(i))),
    "sorted losses": lambda rng, i: np.sort(-rng.pareto(1.5, len(i))),
    "sorted, both signs": lambda rng, i: np.sort(rng.standard_t(2.0, len(i))),
    "alternating scales": lambda rng, i: np.resize([1.0, 1e6, 1.0, 1e-6], len(i)),
    "two scales": lambda rng, i: np.resize([1e6, 1e-6], len(i)),
    "sawtooth": lambda rng, i: i % 1000,
    "constant": lambda rng, i: np.full(len(i), 3.0),
    "zeros, then a jump": lambda rng, i: np.where(i < 500, 0.0, i),
    "a cluster far from the first rewards": lambda rng, i: np.where(
        i <= 128, rng.standard_normal(len(i)), 1000.0 + 1e-3 * i
    ),
    "noise far from the first rewards": lambda rng, i: rng.standard_normal(len(i)) + np.where(i <= 128, 0.0, 1000.0),
    "two levels, then ascending": lambda rng, i: np.where(i <= 128, np.where(i % 2 == 0, -1.0, 1.0), 2.0 + 1e-6 * i),
    "random walk": lambda rng, i: np.cumsum(rng.standard_normal(len(i))),
}


class Time(NamedTuple):
    """Microseconds of select() and update() in a live bandit: processor time of a round on average, and of the slowest round."""

    sequence: str
    mean: float
    worst: float
    fallbacks: int


def times(policy: Policy, arms: int, rounds: int) -> list[Time]:
    """Measure all sequences."""
    found = []
    for name, sequence in SEQUENCES.items():
        rewards = sequence(np.random.default_rng(0), np.arange(1.0, rounds + 1.0)).tolist()
        bandit = rb.Bandit(range(arms), policy, seed=0, compile="now")
        used = [0] * arms
        worst = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the data do drift
            begun = time.process_time()
            for _ in range(rounds):
                start = time.thread_time()
                arm = bandit.select()
                bandit.update(arm, rewards[used[arm]])
                worst = max(worst, time.thread_time() - start)
                used[arm] += 1
            seconds = time.process_time() - begun
        found.append(Time(name, seconds / rounds * 1e6, worst * 1e6, bandit.counters()["fallbacks"]))
    return found


def slowest(policy: Policy, arms: int, rounds: int = 100_000) -> tuple[Time, float]:
    """Return the slowest sequence, and its time as a multiple of the time with independent rewards."""
    found = times(policy, arms, rounds)
    worst = max(found, key=lambda each: each.mean)
    return worst, worst.mean / found[0].mean


def main() -> None:
    for arms, rounds in ((2, 100_000), (10, 100_000), (100, 100_000)):
        for policy in (rb.AdaKLUCB(), rb.AdaKLProved(), rb.AdaRUCB()):
            print(f"{policy.name}, K={arms}, T={rounds:g}: us per round, slowest round, fallbacks")
            for each in times(policy, arms, rounds):
                print(f"  {each.sequence:<40} {each.mean:8.2f} {each.worst:10.0f} {each.fallbacks:8d}", flush=True)


if __name__ == "__main__":
    main()
