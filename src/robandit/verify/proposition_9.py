"""Proposition 9: the threshold equation has a unique root if c L is below the number of non-zero values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from robandit.errors import NoThresholdError
from robandit.estimators import trimming_threshold
from robandit.estimators.formulas.threshold import C
from robandit.kernel.types import Floats
from robandit.laws import Pareto, ZeroInflated
from robandit.verify.drawn_samples import always, clipped
from robandit.verify.proposition_10 import ETA, doubling
from robandit.verify.statement import Effort, Evidence, Statement, Track, finding, number, silent

ULP = 2.0**-52
CLOSE = 1e-9  # relative distance from the corners of F at which it is evaluated
Solver = Callable[..., Any]


@dataclass
class SampleResults:
    """The results of the samples."""

    residuals: list[float] = field(default_factory=list)
    """|F(M) - c L| / (c L) at the solver's root, in units of the rounding error."""
    single: list[bool] = field(default_factory=list)
    """Whether F crosses c L once, from above, at the solver's root, and decreases."""
    rejected: list[bool] = field(default_factory=list)
    """Whether, with c L >= m, the solver raises and F does not cross c L."""
    above_zero: list[bool] = field(default_factory=list)
    """Whether F > 0 everywhere, so that F(M) = 0, the equation of round 1, has no solution."""


def run(effort: Effort, track: Track = silent, *, solve: Solver = trimming_threshold, guard: float = 4.0) -> Evidence:
    """Evaluate F around its corners, in doubles and in fractions, and run the guards of Algorithm 1 as printed."""
    rng = np.random.default_rng(effort.stream(9))
    count, exact, runs = effort.of((1_000, 150, 60), (10_000, 1_500, 600))
    tally = SampleResults()
    for kind in track(KINDS):
        for _ in range(count // len(KINDS)):
            _look(_sample(rng, kind, 200), rng, solve, tally)
        for _ in range(exact // len(KINDS)):
            _look_exactly(_sample(rng, kind, 12), rng, solve, tally)

    first = [_first_request(guard, run, effort) for run in range(runs)]
    printed = [_first_request(-guard, run, effort) for run in range(runs)]
    level = 3.0 * np.log(np.arange(1, 1_000_001))
    missing = float((C * level[1:] - (guard * level[:-1] + 1.0)).min())
    findings = (
        finding(
            "with 0 < c L < m the solver's root solves the equation: largest residual, in units of rounding",
            max(tally.residuals),
            "The unit is (3 m + 8) 2^-52, a bound on the rounding errors of the solver and of F.",
        ).at_most(1.0),
        always(
            "and it is unique, since F decreases beyond the smallest value and crosses c L once: share of samples",
            tally.single,
        ),
        always(
            "with c L >= m there is no root (at equality, an interval of roots), and the solver raises: share of samples",
            tally.rejected,
        ),
        always(
            "with the guard m <= 4 log tau^-3 as printed, the first root requested does not exist: share of runs",
            [not r.exists for r in printed],
            f"It is requested in round {max(r.tau for r in printed)} for one value; more than {number(C * math.log(8.0))} are "
            "needed. The right side of the guard is negative, so the guard never holds.",
            misprints=("1",),
        ),
        always(
            "with the sign corrected, m <= 4 log tau^3, the first root requested still does not exist: share of runs",
            [not r.exists for r in first],
            misprints=("2",),
            note="A root needs m > c L with c = 5.83. For every tau from 2 to 1,000,000 at least "
            f"{number(missing)} non-zero values are missing, since 4 L(tau - 1) + 1 < c L(tau).",
            headline="Algorithm 1 as printed asks for roots that do not exist: its guard is too small.",
        ),
        finding(
            "Algorithm 2 then returns its start, 1e-16, and the index is 0: largest absolute index",
            max(r.index for r in first),
            "The index is 0 whatever the rewards are.",
        ).at_most(10.0 * ETA, misprints=("2c",)),
        always(
            "in round 1 the equation is F(M) = 0, and F is positive everywhere: share of samples",
            tally.above_zero,
            misprints=("4",),
            note="The algorithm never solves it: in round 1 every arm takes the branch N = 0.",
        ),
    )
    return Evidence(
        ran=f"{len(tally.residuals):,} random samples of up to 200 values over 16 decades, with ties and zeros: F is evaluated "
        f"next to and between all of its corners ({exact:,} samples in exact fractions). {len(tally.rejected):,} samples with "
        f"too few non-zero values. {runs} runs of Algorithm 1's forced exploration with 1 to 5 arms for each version of its guard.",
        findings=findings,
    )


KINDS: tuple[Callable[[np.random.Generator, int], Floats], ...] = (
    lambda rng, n: 1.0 + rng.pareto(rng.uniform(0.3, 3.0), n),
    lambda rng, n: rng.standard_cauchy(n),
    lambda rng, n: rng.integers(1, 5, n).astype(float),
    lambda rng, n: np.ones(n),
    lambda rng, n: 10.0 ** rng.uniform(-8.0, 8.0, n),
)


def _sample(rng: np.random.Generator, kind: Callable[[np.random.Generator, int], Floats], most: int) -> Floats:
    """Draw 1 to ``most`` values with zeros, both signs and a scale between 1e-8 and 1e8."""
    n = int(rng.integers(1, most + 1))
    zero = rng.random(n) < rng.choice([0.0, rng.random()])
    sample: Floats = np.where(zero, 0.0, kind(rng, n) * rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-8.0, 8.0))
    return sample


def _level(rng: np.random.Generator, m: int) -> tuple[float, float, float]:
    """Draw delta, c and a = c L, where a is below m: near 0, near m, or anywhere between."""
    part = rng.choice([rng.random(), 1e-6 * rng.random(), 1.0 - 1e-6 * rng.random()])
    delta = float(10.0 ** rng.uniform(-6.0, -0.1))
    c = max(part, 1e-9) * m / -math.log(delta)
    return delta, c, c * -math.log(delta)


def _around(sizes: Floats, most: float) -> Floats:
    """Return points next to and between all corners of F, and beyond both ends."""
    corners = np.unique(sizes)
    beside = (corners * factor for factor in (1.0 - CLOSE, 1.0, 1.0 + CLOSE))
    between = np.sqrt(corners[1:]) * np.sqrt(corners[:-1])
    low, high = corners[0], max(most, corners[-1])
    return np.unique(np.concatenate([*beside, between, np.geomspace(low / 1e3, high * 1e3, 64)]))


def _values(sizes: Floats, points: Floats) -> Floats:
    return clipped(np.broadcast_to(sizes, (len(points), len(sizes))), points)


def _look(x: Floats, rng: np.random.Generator, solve: Solver, tally: SampleResults) -> None:
    """Check a sample in doubles."""
    sizes = np.abs(x[x != 0.0])
    m = len(sizes)
    tally.rejected.append(_is_rejected(x, m, rng, solve))
    if m == 0:
        return
    delta, c, a = _level(rng, m)
    root = float(solve(x, delta, c=c))
    unit = (3 * m + 8) * ULP
    tally.residuals.append(abs(float(_values(sizes, np.array([root]))[0]) - a) / a / unit)
    points = _around(sizes, root)
    values = _values(sizes, points)
    clear = np.abs(values - a) > unit * a  # in doubles, the other points cannot be distinguished from the root
    above = values[clear] > a
    last, first = points[clear][above].max(), points[clear][~above].min()
    falls = (np.diff(values) <= unit * values[:-1]).all()
    tally.single.append(bool(last < first and last < root * (1.0 + CLOSE) and first > root * (1.0 - CLOSE) and falls))
    tally.above_zero.append(bool((values > 0.0).all()))


def _is_rejected(x: Floats, m: int, rng: np.random.Generator, solve: Solver) -> bool:
    """Return whether the solver correctly rejects a sample with c L >= m. With delta = 1/e, L is 1 and c L is c."""
    equal = bool(m > 0 and rng.random() < 0.3)
    a = float(m) if equal else (m + 1e-3) * (1.0 + rng.exponential())
    try:
        solve(x, math.exp(-1.0), c=a)
    except NoThresholdError:
        sizes = np.abs(x[x != 0.0])
        values = _values(sizes, _around(sizes, 1.0)) if m else np.zeros(1)
        flat = np.count_nonzero(values == a) > 1
        return bool((values <= a).all() and flat) if equal else bool((values < a).all())
    return False


def _look_exactly(x: Floats, rng: np.random.Generator, solve: Solver, tally: SampleResults) -> None:
    """Check a sample in exact fractions, which show decreases that are too small for doubles."""
    sizes = sorted(Fraction(abs(v)) for v in x if v != 0.0)
    if not (m := len(sizes)):
        return
    delta, c, a = _level(rng, m)
    root = Fraction(float(solve(x, delta, c=c)))

    def f(point: Fraction) -> Fraction:
        return sum((min((z / point) ** 2, Fraction(1)) for z in sizes), Fraction(0))

    unit, level = Fraction((3 * m + 8) * ULP), Fraction(a)
    tally.residuals.append(float(abs(f(root) - level) / level / unit))
    corners = sorted({sizes[0] / 1000, *sizes, max(sizes[-1], root) * 1000})
    points = sorted({*corners, *((low + high) / 2 for low, high in pairwise(corners)), root})
    values = {point: f(point) for point in points}
    flat = all(values[p] == m for p in points if p <= sizes[0])
    falls = all(values[p] > values[q] for p, q in pairwise(points) if p >= sizes[0])
    above = all(values[p] > level for p in points if p < root)
    below = all(values[p] < level for p in points if p > root)
    tally.single.append(flat and falls and above and below)


@dataclass(frozen=True)
class Request:
    """The first root that a run requests: its round, whether it exists, and the absolute index with Algorithm 2's result."""

    tau: int
    exists: bool
    index: float


def _first_request(guard: float, run: int, effort: Effort) -> Request:
    """Run Algorithm 1 until an arm is not forced (N > 0 and m > guard log tau^3), and return the root requested for it."""
    arms = 1 + run % 5
    law = ZeroInflated(-Pareto(tail=1.5), (0.0, 0.5)[run // 5 % 2])
    rounds = 400 * arms
    rewards = law.sample(2 * rounds, effort.stream(9, run)).reshape(2, rounds)
    times: list[list[int]] = [[] for _ in range(arms)]
    for tau in range(1, rounds):
        level = 3.0 * math.log(tau)
        for own in times:
            m = int(np.count_nonzero(rewards[1, own]))
            if own and m > guard * level:
                threshold = float(doubling(rewards[1:, own], C * level, np.array([ETA]))[0][0])
                kept = np.where(np.abs(rewards[0, own]) <= threshold, rewards[0, own], 0.0)
                spread = kept.std(ddof=1) * math.sqrt(2.0 * level / len(own)) if len(own) > 1 else 0.0
                index = kept.mean() + spread + 10.0 * threshold * level / len(own)
                return Request(tau, m > C * level, abs(float(index)))
        min(times, key=len).append(tau)
    raise AssertionError(f"with the guard {guard} no root is requested in {rounds} rounds")


STATEMENT = Statement(
    key="proposition-9",
    name="Proposition 9",
    says="sum_j min((x_j/M)^2, 1) = c L has exactly one positive root M if 0 < c L < m, the number of non-zero x_j.",
    run=run,
    aliases=("prop-9",),
)
