"""Lemma A of docs/explanation/adakl-theorem.md (ours): the likelihood bound is at most an empirical Bernstein bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from robandit.estimators.likelihood import row_bounds
from robandit.kernel.types import Floats
from robandit.verify.interval_arithmetic import sure
from robandit.verify.statement import Effort, Evidence, Statement, Track, arithmetic, finding, number, row_of, silent

Width = Callable[[Floats, Floats, Floats, float], Floats]
SIZES = (1, 2, 3, 10, 100)
EXPONENTS = (1e-3, 1e-2, 0.1, 0.5, 2.0, 8.0)
BASES = (1e-3, 1.0, 1e3)  # the largest possible value M
LESS = 0.99
TINY_EXPONENT = 1e-6


def width(means: Floats, variances: Floats, largest: Floats, exponent: float) -> Floats:
    """Return sqrt(2 v a) + (M - m) a, by which the likelihood bound exceeds the mean at most."""
    spread: Floats = np.sqrt(2.0 * variances * exponent) + (largest - means) * exponent
    return spread


# Each kind returns values in [-1, 1], from numbers that are uniform on [0, 1).
KINDS: dict[str, Callable[[Floats], Floats]] = {
    "uniform": lambda x: 2.0 * x - 1.0,
    "two points": lambda x: np.where(x < 0.5, -1.0, 1.0),
    "rarely the largest value": lambda x: np.where(x < 0.95, -0.01, 1.0),
    "rarely the smallest value": lambda x: np.where(x < 0.95, 0.01, -1.0),
    "heavy left tail": lambda x: -np.minimum(0.01 * (1.0 - x) ** (-1.0 / 1.2), 1.0),
    "heavy right tail": lambda x: np.minimum(0.01 * (1.0 - x) ** (-1.0 / 1.2), 1.0),
    "near the largest value": lambda x: 1.0 - 1e-3 * x,
    "always the smallest value": lambda x: np.full_like(x, -1.0),
}


class Worst(NamedTuple):
    """The largest ratio of a kind, and where it occurs."""

    ratio: float
    n: int
    exponent: float


def run(effort: Effort, track: Track = silent, *, width: Width = width) -> Evidence:
    """Compare the bound with the width on samples of many shapes, sizes and exponents, and at the two extreme cases."""
    rows = effort.of(200, 5_000)
    worst: dict[str, Worst] = {}
    for place, (kind, shape) in enumerate(track(list(KINDS.items()))):
        generator = np.random.default_rng(effort.stream(30, place))
        samples = [(n, shape(generator.random((rows, n)))) for n in SIZES]
        worst[kind] = max(
            Worst(float(excess(scale * unit, np.full(rows, scale), a, width).max()), n, a)
            for n, unit in samples
            for scale in BASES
            for a in EXPONENTS
        )
    cases = rows * len(KINDS) * len(SIZES) * len(EXPONENTS) * len(BASES)
    kind = max(worst, key=lambda name: worst[name])

    lowest, two_points = np.full((1, 1), -1.0), np.array([[-1.0, 1.0]])
    one = np.ones(1)
    closed = -1.0 + 2.0 * -math.expm1(-0.5)
    return Evidence(
        ran=f"{cases:,} samples of {len(KINDS)} shapes, with {SIZES[0]} to {SIZES[-1]} values, exponents {EXPONENTS[0]:g} to "
        f"{EXPONENTS[-1]:g} and M from {BASES[0]:g} to {BASES[-1]:g}.",
        findings=(
            finding(
                "(U - m) / (sqrt(2 v a) + (M - m) a), largest of all samples",
                worst[kind].ratio,
                f"{kind}, n = {worst[kind].n}, a = {worst[kind].exponent:g}. The computed minimum is never below the true one.",
            ).at_most(1.0),
            finding(
                f"with {LESS:g} (M - m) a it fails: ratio if all values are -M and a = {EXPONENTS[0]:g}",
                float(
                    excess(
                        lowest, one, EXPONENTS[0], lambda m, v, top, a: width(m, v, top, a) - (1 - LESS) * (top - m) * a
                    )[0]
                ),
                "U is -M + 2 M (1 - e^(-a)) there.",
            ).at_least(1.0),
            finding(
                f"with {LESS:g} sqrt(2 v a) it fails: ratio for the values -M and M and a = {TINY_EXPONENT:g}",
                float(
                    excess(
                        two_points,
                        one,
                        TINY_EXPONENT,
                        lambda m, v, top, a: width(m, v, top, a) - (1 - LESS) * np.sqrt(2 * v * a),
                    )[0]
                ),
            ).at_least(1.0),
            arithmetic(
                "the bound of values that are all -M, minus -M + 2 M (1 - e^(-a)), at a = 1/2",
                abs(float(row_bounds(lowest, one, 0.5)[0]) - closed),
                f"the bound is {number(closed)} M.",
            ).at_most(1e-12),
        ),
        rows=[row_of(sure(each.ratio), case=kind, series="largest", limit=1.0) for kind, each in worst.items()],
        title="(U - m) / (sqrt(2 v a) + (M - m) a)",
        caption="The excess of the likelihood bound over the mean, divided by the width of Lemma A: the largest sample of each "
        "shape. It must be at most 1.",
    )


def excess(z: Floats, largest: Floats, exponent: float, width: Width) -> Floats:
    """Return (U - m) divided by the width, for each row; 0 if both are 0."""
    means = z.mean(axis=1)
    variances = np.square(z - means[:, None]).mean(axis=1)
    above = row_bounds(z, largest, exponent) - means
    allowed = width(means, variances, largest, exponent)
    return np.where(above > 0.0, above / np.maximum(allowed, 1e-300), 0.0)


STATEMENT = Statement(
    key="adakl-comparison",
    name="AdaKL Lemma A (ours)",
    says="For values z_j <= M with mean m and variance v, min over l >= M of l - exp(-a + mean log(l - z_j)) is at most "
    "m + sqrt(2 v a) + (M - m) a, for every a > 0.",
    run=run,
    ours=True,
)
