"""The price of sticky units: ``python benchmarks/sticky.py [RUNS]`` prints the regret of three ways to decide for users.

Three arms with mean costs 1, 1.1 and 1.3, AdaKL-UCB, 5,000 requests, 5 per user on average. The costs of one user resemble each
other: each cost is the mean of its arm, times a log-normal effect of the user (sigma 0.8), times log-normal noise (sigma 0.5).
Regret is in per cent of choosing arms at random. 300 runs take some ten minutes.
"""

from __future__ import annotations

import sys

import numpy as np

import robandit as rb

MEANS = np.array([1.0, 1.1, 1.3])
REQUESTS = 5_000
PER_USER = 5
PRESENT = 100  # users who come again
OF_USER, OF_REQUEST = 0.8, 0.5  # sigmas
WAYS = ("not sticky", "sticky, the first reward is learned", "sticky, every reward is learned")


def regret(way: str, run: int) -> float:
    """Return the regret of one run, in per cent of choosing at random."""
    rng = np.random.default_rng([39, run])
    sticky_for = None if way == WAYS[0] else 1e9
    bandit = rb.Bandit([0, 1, 2], minimize=True, sticky_for=sticky_for, compile="now")
    users: list[tuple[str, float]] = []
    pulls = np.zeros(len(MEANS))
    for request in range(REQUESTS):
        if not users or rng.random() < 1.0 / PER_USER:
            if len(users) == PRESENT:
                users.pop(int(rng.integers(PRESENT)))
            users.append((f"user {request}", lognormal(rng, OF_USER)))
            unit, effect = users[-1]
        else:
            unit, effect = users[int(rng.integers(len(users)))]
        event = bandit.decided(unit=None if sticky_for is None else unit)
        pulls[event.arm] += 1
        cost = float(MEANS[event.arm]) * effect * lognormal(rng, OF_REQUEST)
        if event.repeat and way == WAYS[2]:
            bandit.update(event.arm, cost)  # as if the cost of a repeat were news
        bandit.reward(event.id, cost)
    gaps = MEANS - MEANS.min()
    return float(100.0 * (pulls @ gaps) / (gaps.mean() * REQUESTS))


def lognormal(rng: np.random.Generator, sigma: float) -> float:
    """Return a log-normal number with mean 1."""
    return float(np.exp(sigma * rng.standard_normal() - sigma**2 / 2.0))


def main(runs: int = 300) -> None:
    """Print the mean and the 95 % quantile of each way."""
    for way in WAYS:
        found = [regret(way, run) for run in range(runs)]
        error = np.std(found) / np.sqrt(runs)
        print(
            f"{way:36s} mean {np.mean(found):5.1f} % (s.e. {error:.1f}), 95 % quantile {np.quantile(found, 0.95):5.1f} %"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
