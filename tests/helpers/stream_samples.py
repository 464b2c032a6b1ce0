"""Data of many kinds for accumulators, each by name; all finite, in an order that means nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Draw = Callable[[np.random.Generator, int], np.ndarray]

KINDS: dict[str, Draw] = {
    "pareto 1.2": lambda g, n: g.pareto(1.2, n),
    "negated pareto 1.5": lambda g, n: -1.0 - g.pareto(1.5, n),
    "pareto 2.5": lambda g, n: g.pareto(2.5, n),
    "student 1.5": lambda g, n: g.standard_t(1.5, n),
    "cauchy": lambda g, n: g.standard_cauchy(n),
    "log-normal": lambda g, n: g.lognormal(0.0, 2.0, n),
    "gaussian": lambda g, n: g.normal(0.0, 1.0, n),
    "gaussian far from zero": lambda g, n: g.normal(1e9, 1.0, n),
    "few zeros": lambda g, n: np.where(g.random(n) < 0.6, 0.0, g.pareto(1.5, n)),
    "two values": lambda g, n: np.where(g.random(n) < 0.5, -1.0, 1.0),
    "constant": lambda g, n: np.full(n, 0.1),
    "small integers": lambda g, n: g.integers(-3, 4, n).astype(float),
    "huge": lambda g, n: 1e300 * g.standard_t(1.5, n).clip(-1e6, 1e6),
    "tiny": lambda g, n: 1e-300 * g.standard_t(1.5, n),
    "subnormal": lambda g, n: 5e-324 * g.integers(-100, 100, n),
    "all scales": lambda g, n: 10.0 ** g.uniform(-300.0, 300.0, n) * g.choice([-1.0, 1.0], n),
    "one outlier": lambda g, n: np.where(np.arange(n) == 7, 1e12, g.normal(5.0, 1.0, n)),
}


def sample(kind: str, n: int, seed: int = 0) -> np.ndarray:
    return KINDS[kind](np.random.default_rng([seed, n]), n)
