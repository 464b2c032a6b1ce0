"""Samples from NumPy's generators, so that nothing is compiled."""

import numpy as np

SYMMETRIC = {
    "gaussian": lambda rng, n: rng.normal(size=n),
    "student_1.5": lambda rng, n: rng.standard_t(1.5, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "uniform": lambda rng, n: rng.uniform(-1.0, 1.0, n),
    "student_zeros": lambda rng, n: rng.standard_t(1.5, n) * (rng.random(n) < 0.4),
}
LEFT = {
    "negated_pareto_1.1": lambda rng, n: -rng.pareto(1.1, n) - 1.0,
    "negated_pareto_1.5": lambda rng, n: -rng.pareto(1.5, n) - 1.0,
    "negated_pareto_2.5": lambda rng, n: -rng.pareto(2.5, n) - 1.0,
    "negated_lognormal": lambda rng, n: -rng.lognormal(size=n),
    "negated_pareto_zeros": lambda rng, n: (-rng.pareto(1.5, n) - 1.0) * (rng.random(n) < 0.4),
}
RIGHT = {
    "pareto_1.5": lambda rng, n: rng.pareto(1.5, n) + 1.0,
    "pareto_2.5": lambda rng, n: rng.pareto(2.5, n) + 1.0,
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "clicks": lambda rng, n: (rng.random(n) < 0.3).astype(float),
}
ALL = SYMMETRIC | LEFT | RIGHT


def drawn(name, n, seed=0):
    return ALL[name](np.random.default_rng(seed), n)


def part_of(values, sampled, seed=0):
    """Return a `Part` of many values: a random sample in their order, and the extremes."""
    from robandit.diagnostics.part import Part

    ordered = np.sort(values)
    kept = np.sort(np.random.default_rng(seed).choice(len(values), sampled, replace=False))
    return Part(
        sample=values[kept],
        n=len(values),
        mean=float(values.mean()),
        smallest=ordered[:1000],
        largest=ordered[::-1][:1000],
    )
