"""What the intervals promise, counted; the tolerance comes from the binomial law, and a wrong law must fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from robandit.estimators import Catoni, MedianOfMeans, TrimmedMean

TRIALS = 300
DELTA = 0.1


def misses(make, draw, mean, question, n=400, shards=4):
    """How many intervals of merged shards do not hold the mean."""
    count = 0
    for trial in range(TRIALS):
        rng = np.random.default_rng([7, trial])
        whole = make()
        for part in np.array_split(draw(rng, n), shards):
            shard = make()
            shard.update_many(part)
            whole.merge(shard)
        e = whole.estimate(DELTA, **question)
        count += not e.lower <= mean <= e.upper
    return count


MOST = int(binom.ppf(1 - 1e-6, TRIALS, DELTA))  # more misses than this happen once in a million to a valid interval

VALID = {
    "trimmed, negated pareto": (TrimmedMean, lambda g, n: -g.pareto(1.5, n), -2.0, {}),
    "trimmed tight, student": (TrimmedMean, lambda g, n: g.standard_t(1.5, n), 0.0, {"bonus": "tight"}),
    "trimmed, both sides": (TrimmedMean, lambda g, n: g.pareto(2.5, n), 2 / 3, {"eps": 1.0, "u": 2.7}),
    "median, pareto 1.8": (MedianOfMeans, lambda g, n: g.pareto(1.8, n), 1.25, {"eps": 0.5, "v": 5.0}),
    "catoni, pareto 2.5": (Catoni, lambda g, n: g.pareto(2.5, n), 2 / 3, {"v": 2.23}),
    "catoni, gaussian": (Catoni, lambda g, n: g.normal(3.0, 1.0, n), 3.0, {"v": 1.0, "bonus": "tight"}),
}


@pytest.mark.parametrize("name", VALID)
def test_valid_intervals_cover(name):
    assert misses(*VALID[name]) <= MOST


def _right_skewed(g: np.random.Generator, n: int) -> np.ndarray:
    """Mean 1, nearly all of it in rare large values, which are trimmed: truncated non-positivity is broken."""
    return np.where(g.random(n) < 1e-3, 1000.0, 0.001 * g.random(n))


INVALID = {
    "trimmed": (TrimmedMean, _right_skewed, 1.0, {"bonus": "tight"}, 4000),
    "median": (MedianOfMeans, lambda g, n: g.normal(0.0, 1.0, n), 0.0, {"eps": 1.0, "v": 1e-5}, 400),
    "catoni": (Catoni, lambda g, n: g.normal(0.0, 1.0, n), 0.0, {"v": 1e-3}, 400),
}


@pytest.mark.parametrize("name", INVALID)
def test_the_negative_control_fails(name):
    assert misses(*INVALID[name]) > MOST
