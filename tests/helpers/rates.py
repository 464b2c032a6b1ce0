"""How often `resolution` calls one of two arms with equal means better: `python tests/helpers/rates.py` prints the table of
docs/explanation/diagnose.md (a quarter of an hour)."""

import sys

import numpy as np

from robandit.diagnostics.resolution import limits, resolution


def pareto(tail, sign=1.0):
    """Mean 0, and a tail on one side."""
    return lambda rng, n: sign * (rng.pareto(tail, n) + 1.0 - tail / (tail - 1.0))


LAWS = {
    "Gaussian": lambda rng, n: rng.normal(size=n),
    "Pareto 2.5": pareto(2.5),
    "Pareto 1.5": pareto(1.5),
    "negated Pareto 1.5": pareto(1.5, -1.0),
    "log-normal 2": lambda rng, n: np.exp(2.0 * rng.normal(size=n)) - np.exp(2.0),
}
PAIRS = [
    ("Gaussian", "Gaussian"),
    ("Pareto 2.5", "Pareto 2.5"),
    ("Pareto 1.5", "Pareto 1.5"),
    ("Gaussian", "Pareto 2.5"),
    ("Gaussian", "Pareto 1.5"),
    ("Gaussian", "negated Pareto 1.5"),
    ("Pareto 1.5", "negated Pareto 1.5"),
    ("Gaussian", "log-normal 2"),
]


def false_rates(first, second, n, runs, seed=1):
    """The share of runs that call an arm the best: as it is, and by the bootstrap without the allowance."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        (rival,) = resolution({"a": LAWS[first](rng, n), "b": LAWS[second](rng, n)}).others
        found.append((rival.excluded, rival.low + rival.allowance > 0.0))
    return np.mean(found, axis=0)


def coverage(law, n, runs, seed=1):
    """The share of runs in which the limits of the mean hold it."""
    rng = np.random.default_rng(seed)
    ends = np.array([limits(LAWS[law](rng, n))[:2] for _ in range(runs)])
    return float(np.mean((ends[:, 0] <= 0.0) & (ends[:, 1] >= 0.0)))


if __name__ == "__main__":
    RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for size in (100, 1000):
        for pair in PAIRS:
            print(size, *pair, false_rates(*pair, size, RUNS), flush=True)
        for law in LAWS:
            print(size, law, "covered", coverage(law, size, RUNS), flush=True)
