"""Reward streams by name: each function takes a generator, an arm and a count."""

import numpy as np
from hypothesis import strategies as st

from robandit.kernel.loops import LARGEST_REWARD, playable


def rewards_within(size=LARGEST_REWARD):
    """Return a strategy for rewards of at most this size; numbers too small to be squared are left out."""
    return st.floats(-size, size).filter(playable)


def _two_point(rng, arm, n):
    """The law of the lower bounds: rarely a large loss, otherwise a small one."""
    rare = 0.05 / (1 + arm)
    return np.where(rng.random(n) < rare, -1.0 / rare, -0.25 * arm)


KINDS = {
    "losses, tail 1.1": lambda rng, arm, n: -(1 + 0.2 * arm) * (1 + rng.pareto(1.1, n)),
    "losses, tail 1.5": lambda rng, arm, n: -(1 + 0.1 * arm) * rng.pareto(1.5, n),
    "losses, tail 2.5": lambda rng, arm, n: -(0.5 + arm) * (1 + rng.pareto(2.5, n)),
    "student": lambda rng, arm, n: rng.standard_t(1.5, n) - 0.3 * arm,
    "cauchy": lambda rng, arm, n: rng.standard_cauchy(n) - arm,
    "log-normal losses": lambda rng, arm, n: -rng.lognormal(0.1 * arm, 2.0, n),
    "gains": lambda rng, arm, n: (1 + 0.1 * arm) * rng.pareto(1.2, n),
    "narrow": lambda rng, arm, n: -1000.0 - 0.001 * arm + 0.001 * rng.standard_normal(n),
    "narrow gains": lambda rng, arm, n: 1e6 + 0.01 * arm + 0.01 * rng.standard_normal(n),
    "half zeros": lambda rng, arm, n: np.where(rng.random(n) < 0.6, 0.0, -(1 + 0.1 * arm) * rng.pareto(1.5, n)),
    "mostly zeros": lambda rng, arm, n: np.where(rng.random(n) < 0.99, 0.0, rng.standard_normal(n) - arm),
    "integers": lambda rng, arm, n: rng.integers(-3, 2, n).astype(float),
    "coins": lambda rng, arm, n: np.where(rng.random(n) < 0.5, -0.3, 0.7),
    "constants": lambda rng, arm, n: np.full(n, -0.1 * (1 + arm // 2)),
    "two points": _two_point,
    "zeros": lambda rng, arm, n: np.zeros(n) if arm == 0 else rng.standard_normal(n),
}


def _rising(n):
    return np.arange(1.0, n + 1.0)


# Rewards of one arm that are not independent: each function takes a generator and a count.
HARD = {
    "ascending": lambda rng, n: _rising(n),
    "descending": lambda rng, n: -_rising(n),
    "growing": lambda rng, n: np.exp(_rising(n) * 0.03),
    "losses grow": lambda rng, n: -np.exp(_rising(n) * 0.03),
    "growing, both signs": lambda rng, n: np.resize([1.0, -1.0], n) * np.exp(_rising(n) * 0.03),
    "slowing": lambda rng, n: np.log(_rising(n)),
    "sorted gains": lambda rng, n: np.sort(rng.pareto(1.5, n)),
    "sorted losses": lambda rng, n: np.sort(-rng.pareto(1.5, n)),
    "losses, largest last": lambda rng, n: -np.sort(rng.pareto(1.5, n)),
    "sorted cauchy": lambda rng, n: np.sort(rng.standard_cauchy(n)),
    "alternating scales": lambda rng, n: np.resize([1.0, 1e6, 1e-6, -1e3, 1e-3, -1.0], n),
    "sawtooth": lambda rng, n: _rising(n) % 300,
    "zeros, then a jump": lambda rng, n: np.where(_rising(n) < 300, 0.0, 5.0 + rng.standard_normal(n)),
    "a distant cluster": lambda rng, n: rng.standard_normal(n) + np.where(_rising(n) < 129, 0.0, 1000.0),
    "two clusters": lambda rng, n: (
        rng.standard_normal(n) + np.select([_rising(n) < 129, _rising(n) < 900], [0.0, 50.0], 80.0)
    ),
    "a walk": lambda rng, n: np.cumsum(rng.standard_normal(n)),
    "a wild start": lambda rng, n: rng.standard_t(2, n) * np.where(_rising(n) < 129, 1e9, 1.0),
}
