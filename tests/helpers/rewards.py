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
