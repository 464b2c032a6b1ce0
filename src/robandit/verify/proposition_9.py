"""Proposition 9: when the equation of the threshold has a root, and that it is the only one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from robandit.errors import NoThresholdError
from robandit.estimators import trimming_threshold
from robandit.estimators.threshold import C
from robandit.kernel.types import Floats
from robandit.laws import Pareto, ZeroInflated
from robandit.verify import drawing
from robandit.verify.drawn_samples import always, clipped
from robandit.verify.proposition_10 import ETA, doubling
from robandit.verify.statement import Effort, Finding, Ran, Statement, Track, number, untracked
from robandit.verify.statistics import sure

__all__ = ["STATEMENT", "run"]

ULP = 2.0**-52
CLOSE = 1e-9  # how near to its corners F is looked at
Solver = Callable[..., Any]


@dataclass
class Seen:
    """What the samples showed."""

    residuals: list[float] = field(default_factory=list)
    """|F(M) - c L| / (c L) at the root found, in units of what rounding explains."""
    single: list[bool] = field(default_factory=list)
    """Whether F crosses c L once, from above, at the root found, and falls."""
    refused: list[bool] = field(default_factory=list)
    """With c L >= m: whether the solver refuses, and F does not cross c L."""
    above_zero: list[bool] = field(default_factory=list)
    """Whether F > 0 everywhere: nothing solves F(M) = 0, which is what round 1 asks for."""


def run(effort: Effort, track: Track = untracked, *, solve: Solver = trimming_threshold, guard: float = 4.0) -> Ran:
    """Look at F around all its corners, in doubles and in exact arithmetic, and run the guards of Algorithm 1 as printed."""
    rng = np.random.default_rng(np.random.SeedSequence(effort.seed, spawn_key=(9,)))
    count, exact, runs = effort.of((1_000, 150, 60), (10_000, 1_500, 600))
    seen = Seen()
    for kind in track(KINDS):
        for _ in range(count // len(KINDS)):
            _look(_sample(rng, kind, 200), rng, solve, seen)
        for _ in range(exact // len(KINDS)):
            _look_exactly(_sample(rng, kind, 12), rng, solve, seen)

    first = [_first_request(guard, run, effort) for run in range(runs)]
    printed = [_first_request(-guard, run, effort) for run in range(runs)]
    tau = np.arange(2, 1_000_001)
    level, before = 3.0 * np.log(tau), 3.0 * np.log(tau - 1)
    missing = float((C * level - (guard * before + 1.0)).min())
    index = max(r.index for r in first)
    worst = max(seen.residuals)
    findings = (
        Finding(
            claim="with 0 < c L < m the root that is found solves the equation: largest residual, in units of rounding",
            **sure(worst)._asdict(),
            most=1.0,
            note="Unit: (3 m + 8) 2^-52, which bounds the rounding of the solver and of F.",
        ),
        always(
            "and it is the only one, for F falls beyond the smallest value and crosses c L once: share of samples",
            seen.single,
        ),
        always(
            "with c L >= m there is none, or an interval of them at equality, and the solver refuses: share of samples",
            seen.refused,
        ),
        always(
            "the guard m <= 4 log tau^-3 as printed lets a root be asked for that does not exist: share of runs",
            [not r.exists for r in printed],
            ("1",),
            f"In round {max(r.tau for r in printed)}, of one value, where more than {number(C * math.log(8.0))} are needed: the "
            "right side is negative, so the guard never holds.",
        ),
        always(
            "with the sign mended, m <= 4 log tau^3, the first root that is asked for still does not exist: share of runs",
            [not r.exists for r in first],
            ("2",),
            "It needs m > c L and c = 5.83. For every tau from 2 to 1,000,000 at least "
            f"{number(missing)} non-zero values are missing: 4 L(tau - 1) + 1 < c L(tau).",
            "Algorithm 1 as printed asks for roots that do not exist: its guard is too small.",
        ),
        Finding(
            claim="Algorithm 2 then returns its start, 1e-16, and the index is 0: largest size of the index",
            **sure(index)._asdict(),
            most=10.0 * ETA,
            misprints=("2c",),
            note="Whatever the rewards were.",
        ),
        always(
            "in round 1 the equation is F(M) = 0 and F is positive everywhere: share of samples",
            seen.above_zero,
            ("4",),
            "The branch N = 0 comes first: round 1 never asks.",
        ),
    )
    return Ran(
        ran=f"{len(seen.residuals):,} random samples of up to 200 values over 16 decades, with ties and zeros, F looked at "
        f"beside and between all of its corners ({exact:,} of them in exact fractions), and {len(seen.refused):,} with too few "
        "non-zero values; "
        f"{runs} runs of Algorithm 1's forced exploration with 1 to 5 arms for each reading of its guard.",
        findings=findings,
        figure=drawing.curves(
            list(_curves(effort, solve)),
            [{"x": x, "y": 1.0, "series": "c L"} for x in (0.03, 30.0)],
            x_title="M, in units of the root (in units of the smallest value, where there is no root)",
            y_title="F(M) / (c L)",
        ),
        caption="F(M) = sum of min((x/M)^2, 1) for four samples. It is the number m of non-zero values up to the smallest of "
        "them and falls from there: with m > c L it crosses c L once. The sample with m < c L stays below.",
    )


def _pareto(rng: np.random.Generator, n: int) -> Floats:
    sizes: Floats = 1.0 + rng.pareto(rng.uniform(0.3, 3.0), n)
    return sizes


KINDS: tuple[Callable[[np.random.Generator, int], Floats], ...] = (
    _pareto,
    lambda rng, n: rng.standard_cauchy(n),
    lambda rng, n: rng.integers(1, 5, n).astype(float),
    lambda rng, n: np.ones(n),
    lambda rng, n: 10.0 ** rng.uniform(-8.0, 8.0, n),
)


def _sample(rng: np.random.Generator, kind: Callable[[np.random.Generator, int], Floats], most: int) -> Floats:
    """Of 1 to ``most`` values: a share of zeros, both signs, a scale between 1e-8 and 1e8."""
    n = int(rng.integers(1, most + 1))
    zero = rng.random(n) < rng.choice([0.0, rng.random()])
    sample: Floats = np.where(zero, 0.0, kind(rng, n) * rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-8.0, 8.0))
    return sample


def _level(rng: np.random.Generator, m: int) -> tuple[float, float, float]:
    """delta, c and a = c L below m: anywhere, near 0, or near m."""
    part = rng.choice([rng.random(), 1e-6 * rng.random(), 1.0 - 1e-6 * rng.random()])
    delta = float(10.0 ** rng.uniform(-6.0, -0.1))
    c = max(part, 1e-9) * m / -math.log(delta)
    return delta, c, c * -math.log(delta)


def _around(sizes: Floats, most: float) -> Floats:
    """Points beside and between all corners of F, and beyond both ends."""
    corners = np.unique(sizes)
    beside = (corners * factor for factor in (1.0 - CLOSE, 1.0, 1.0 + CLOSE))
    between = np.sqrt(corners[1:]) * np.sqrt(corners[:-1])
    low, high = corners[0], max(most, corners[-1])
    return np.unique(np.concatenate([*beside, between, np.geomspace(low / 1e3, high * 1e3, 64)]))


def _values(sizes: Floats, points: Floats) -> Floats:
    return clipped(np.broadcast_to(sizes, (len(points), len(sizes))), points)


def _look(x: Floats, rng: np.random.Generator, solve: Solver, seen: Seen) -> None:
    """A sample, in doubles."""
    sizes = np.abs(x[x != 0.0])
    m = len(sizes)
    _look_without(x, m, rng, solve, seen)
    if m == 0:
        return
    delta, c, a = _level(rng, m)
    root = float(solve(x, delta, c=c))
    unit = (3 * m + 8) * ULP
    residual = abs(float(_values(sizes, np.array([root]))[0]) - a) / a
    seen.residuals.append(residual / unit)
    points = _around(sizes, root)
    values = _values(sizes, points)
    clear = np.abs(values - a) > unit * a  # the others are the root itself, as far as doubles can tell
    above = values[clear] > a
    last, first = points[clear][above].max(), points[clear][~above].min()
    falls = (np.diff(values) <= unit * values[:-1]).all()
    seen.single.append(bool(last < first and last < root * (1.0 + CLOSE) and first > root * (1.0 - CLOSE) and falls))
    seen.above_zero.append(bool((values > 0.0).all()))


def _look_without(x: Floats, m: int, rng: np.random.Generator, solve: Solver, seen: Seen) -> None:
    """The same sample with c L at or above its number of non-zero values. With delta = 1/e, L is 1 and c L is c."""
    equal = bool(m > 0 and rng.random() < 0.3)
    a = float(m) if equal else (m + 1e-3) * (1.0 + rng.exponential())
    try:
        solve(x, math.exp(-1.0), c=a)
    except NoThresholdError:
        sizes = np.abs(x[x != 0.0])
        values = _values(sizes, _around(sizes, 1.0)) if m else np.zeros(1)
        flat = np.count_nonzero(values == a) > 1
        seen.refused.append(bool((values <= a).all() and flat) if equal else bool((values < a).all()))
    else:
        seen.refused.append(False)


def _look_exactly(x: Floats, rng: np.random.Generator, solve: Solver, seen: Seen) -> None:
    """A sample, in fractions: what falls by less than a double can tell is seen to fall."""
    sizes = sorted(Fraction(abs(v)) for v in x if v != 0.0)
    m = len(sizes)
    if m == 0:
        return
    delta, c, a = _level(rng, m)
    root = Fraction(float(solve(x, delta, c=c)))

    def f(point: Fraction) -> Fraction:
        return sum((min((z / point) ** 2, Fraction(1)) for z in sizes), Fraction(0))

    unit = Fraction((3 * m + 8) * ULP)
    level = Fraction(a)
    seen.residuals.append(float(abs(f(root) - level) / level / unit))
    corners = sorted({sizes[0] / 1000, *sizes, max(sizes[-1], root) * 1000})
    points = sorted({*corners, *((low + high) / 2 for low, high in pairwise(corners)), root})
    values = {point: f(point) for point in points}
    flat = all(values[p] == m for p in points if p <= sizes[0])
    falls = all(values[p] > values[q] for p, q in pairwise(points) if p >= sizes[0])
    above = all(values[p] > level for p in points if p < root)
    below = all(values[p] < level for p in points if p > root)
    seen.single.append(flat and falls and above and below)


@dataclass(frozen=True)
class Request:
    """The first root that a run asks for."""

    tau: int
    exists: bool
    index: float
    """What Algorithm 2 makes of it."""


def _first_request(guard: float, run: int, effort: Effort) -> Request:
    """Algorithm 1 up to the first arm that is not explored by force: N = 0 or m <= guard log tau^3, fewest rounds first."""
    arms = 1 + run % 5
    law = ZeroInflated(-Pareto(tail=1.5), (0.0, 0.5)[run // 5 % 2])
    rounds = 400 * arms
    drawn = law.sample(2 * rounds, np.random.SeedSequence(effort.seed, spawn_key=(9, run))).reshape(2, rounds)
    times: list[list[int]] = [[] for _ in range(arms)]
    for tau in range(1, rounds):
        level = 3.0 * math.log(tau)
        for mine in times:
            m = int(np.count_nonzero(drawn[1, mine]))
            if mine and m > guard * level:
                threshold = float(doubling(drawn[1:, mine], C * level, np.array([ETA]))[0][0])
                kept = np.where(np.abs(drawn[0, mine]) <= threshold, drawn[0, mine], 0.0)
                spread = kept.std(ddof=1) * math.sqrt(2.0 * level / len(mine)) if len(mine) > 1 else 0.0
                index = kept.mean() + spread + 10.0 * threshold * level / len(mine)
                return Request(tau, m > C * level, abs(float(index)))
        min(times, key=len).append(tau)
    raise AssertionError(f"with the guard {guard} no root is asked for in {rounds} rounds")


def _curves(effort: Effort, solve: Solver) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(np.random.SeedSequence(effort.seed, spawn_key=(9, 0, 0)))
    a = C * math.log(8.0)
    samples = {
        "Pareto 1.2, m = 100": 1.0 + rng.pareto(1.2, 100),
        "Pareto 0.5, m = 20": 1.0 + rng.pareto(0.5, 20),
        "all equal, m = 40": np.ones(40),
        "Pareto 1.2, m = 8": 1.0 + rng.pareto(1.2, 8),
    }
    for name, x in samples.items():
        unit = float(solve(x, 0.125)) if len(x) > a else float(x.min())
        points = np.geomspace(0.03, 30.0, 61)
        for point, value in zip(points, _values(x, points * unit), strict=True):
            yield {"x": float(point), "y": float(value / a), "series": name}


STATEMENT = Statement(
    key="proposition-9",
    name="Proposition 9",
    says="sum_j min((x_j/M)^2, 1) = c L has exactly one positive root M if 0 < c L < m, the number of x_j that are not 0.",
    run=run,
    aliases=("prop-9",),
)
