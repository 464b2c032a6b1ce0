"""Measure the limits of an arm's difference to its log: ``python benchmarks/reference_limits.py`` prints them (a minute).

Each of 1,000 logs has 500 rows and three arms with the same law, so the true difference is 0. The arm with the lowest mean is
chosen, and the limits of `robandit.diagnostics.reference.log_reference` for this arm hold if they contain 0. They promise 95 %.
The numbers are in docs/how-to/recorded-rewards.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robandit.diagnostics.reference import log_reference

LOGS = 1_000
ROWS = {"a": 300, "b": 150, "c": 50}
Generator = np.random.Generator
LAWS: dict[str, Callable[[Generator, int], Any]] = {
    "Gaussian": lambda rng, n: rng.normal(size=n) + 1.0,
    "exponential": lambda rng, n: rng.exponential(size=n),
    "log-normal": lambda rng, n: rng.lognormal(sigma=1.0, size=n),
    "Pareto 2.5": lambda rng, n: rng.pareto(2.5, n) + 1.0,
    "Pareto 1.5": lambda rng, n: rng.pareto(1.5, n) + 1.0,
}


def held(law: Callable[[Generator, int], Any], logs: int = LOGS) -> float:
    """Return the share of logs in which the limits of the chosen arm contain its true difference to the log."""
    rng, count = np.random.default_rng(5), 0
    for _ in range(logs):
        log = {arm: law(rng, n) for arm, n in ROWS.items()}
        reference = log_reference(log)
        assert reference.below is not None
        assert reference.above is not None
        means = [float(values.mean()) for values in log.values()]
        best = int(np.argmin(means))
        off = means[best] - reference.mean
        count += -reference.above[best] <= off <= reference.below[best]
    return count / logs


if __name__ == "__main__":
    for name, law in LAWS.items():
        print(f"{name}: {100.0 * held(law):.0f} %", flush=True)
