"""Tests whether recorded rewards contradict truncated non-positivity: E[(X - a) 1{|X - a| > M}] <= 0 for every M >= 0.

The test. Let d = x - a for the values that differ from the point a. If a law is symmetric about a, the signs of the d are
fair coins, independent of all |d|. So for any set of values that is chosen by the |d| alone,

    P( sum d >= z sqrt(sum d^2) ) <= exp(-z^2 / 2)        (Efron 1969: Hoeffding's inequality, given the |d|).

A second statistic is a count, since one huge value makes sqrt(sum d^2) as large as the sum. All k coins are heads with probability
2^-k, which corresponds to z = sqrt(2 k log 2). The sets are the n, n/2, n/4, ... values farthest from a, down to ``LEAST`` values.
Each includes the ties of its nearest value, so that it is {|d| > M} for some M. With G sets, z = sqrt(2 log(2 G / alpha)) and a
union bound over the sets and the two statistics, a false contradiction has probability at most alpha. No moment has to exist.

The level is exact for all laws where at every distance the left is at least as likely as the right, P(d > 0 given |d|) <= 1/2,
such as all laws at or below a. For other left-skewed laws about their median (negated Pareto, log-normal, exponential) it is
measured, not proved. Some laws have most of their mass above 0, but a mean at or below 0 because of rare large losses, such as
c - Pareto with mean 0: the heavier the tail, the more often it is contradicted. No test avoids such errors, since a loss that has
not occurred yet can make any mean negative. "Contradicted" refers to the rewards seen.

About the median. The centre must not come from the values that are tested. So one half of the values, by a hash of the position,
gives an upper confidence limit c of the median, and the other half is tested about c. Each half has level alpha / 2. For a
symmetric law with a single peak and c at or above its centre, the left is at least as likely as the right at every distance from
c, so the level is alpha again. "Contradicted" then refers to every plausible value of the median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from robandit.kernel.random import hashed
from robandit.kernel.types import Floats

LEAST = 8  # values in the smallest set; the statistic is at most 1.2 times the root of their number
Point = float | Literal["median", "symmetric"]
Verdict = Literal["contradicted", "not contradicted", "too few values"]


@dataclass(frozen=True)
class Nonpositivity:
    """The result of a test of truncated non-positivity. Its truth value is False if the sample contradicts the assumption."""

    verdict: Verdict
    about: float
    """The point. For the median, its upper confidence limit, about which half of the values were tested."""
    center: Literal["given", "median"]
    n: int
    """The size of the sample."""
    worst: float
    """The M with the largest statistic."""
    count: int
    """The number of tested values farther than ``worst`` from the point."""
    mean: float
    """The mean of (x - about) 1{|x - about| > worst} over all tested values. It should not be above 0."""
    statistic: float
    """Sum of the counted x - about over the root of the sum of squares, or sqrt(2 log 2 count) if all are > 0 and it is larger."""
    limit: float
    """The critical value: by chance, the statistic exceeds it with probability at most 1 - confidence."""
    confidence: float
    differ: int = 0
    """The number of tested values that differ from the point."""
    mirrored: bool = False
    """Whether negated values were tested (costs). Then ``about`` is a lower limit of the median, and ``mean`` should be >= 0."""

    def __repr__(self) -> str:
        return f"<Nonpositivity: {self.verdict}, {self.n:,} values>"

    def __bool__(self) -> bool:
        return self.verdict != "contradicted"

    def __str__(self) -> str:
        if self.verdict == "too few values":
            return f"{self.point}: too few values ({self.n}) to tell"
        return f"{self.point}: {self.verdict if self else 'CONTRADICTED'} ({self.evidence})"

    def mirror(self) -> Nonpositivity:
        """Return the same result for the negated values."""
        return replace(self, about=0.0 - self.about, mean=0.0 - self.mean, mirrored=not self.mirrored)

    @property
    def point(self) -> str:
        """The point, in words."""
        if self.center == "given":
            return f"about {self.about:.4g}"
        limit = f" (at {'least' if self.mirrored else 'most'} {self.about:.4g})"
        return "about the median" + ("" if math.isnan(self.about) else limit)

    @property
    def evidence(self) -> str:
        """The evidence for the verdict, in words."""
        if math.isnan(self.statistic):
            return "no value differs from it"
        numbers = f"z = {self.statistic:.3g} against {self.limit:.3g}"
        if self.verdict != "contradicted":
            return numbers
        subject = "values" if self.worst == 0.0 else f"the {self.count} values farther than {self.worst:.4g} from it"
        return f"{subject} add up to {'less' if self.mirrored else 'more'} than 0, {numbers}"


def judge(values: Floats, about: Point, alpha: float, minimize: bool = False) -> Nonpositivity:
    """Test checked values (perhaps none), or the negated costs, at level ``alpha``. ``"symmetric"`` tests both about the median."""
    if about == "symmetric":
        right, left = judge(values, "median", alpha / 2.0), judge(-values, "median", alpha / 2.0)
        if right and (not left or left.statistic > right.statistic):  # convert the result of the negated values
            return replace(left.mirror(), confidence=1.0 - alpha)
        return replace(right, confidence=1.0 - alpha)
    if minimize:
        return judge(-values, about if about == "median" else -float(about), alpha).mirror()
    if about == "median":
        order = np.argsort(hashed(np.arange(1, len(values) + 1, dtype=np.uint64)))
        half = (len(values) + 1) // 2
        centre = _upper_median(values[order[:half]], alpha / 2.0)
        return _tested(values[order[half:]], centre, alpha / 2.0, alpha, "median", len(values))
    return _tested(values, float(about), alpha, alpha, "given", len(values))


def _upper_median(values: Floats, alpha: float) -> float:
    """Return an order statistic that is below the median with probability at most alpha, or NaN if there is none."""
    n = len(values)
    rank = math.ceil(n / 2.0 + math.sqrt(n * math.log(1.0 / alpha) / 2.0))
    return float(np.partition(values, rank - 1)[rank - 1]) if 1 <= rank <= n else math.nan


def _tested(
    values: Floats, about: float, level: float, alpha: float, center: Literal["given", "median"], n: int
) -> Nonpositivity:
    # In units of a power of two, squares neither overflow nor vanish, and ties stay ties.
    power = math.frexp(max(float(np.max(np.abs(values), initial=0.0)), abs(about)))[1] if about == about else 0
    offset = np.ldexp(values, -power) - math.ldexp(about, -power)
    offset = offset[offset != 0.0]
    counts = [len(offset) >> g for g in range(max(len(offset).bit_length(), 1)) if len(offset) >> g >= LEAST]
    limit = math.sqrt(2.0 * math.log(2.0 * max(len(counts), 1) / level))
    worst, count, statistic, mean = math.nan, 0, math.nan, math.nan
    if len(offset):
        size = np.abs(offset)
        order = np.argsort(-size, kind="stable")
        size, offset = size[order], offset[order]
        sums, squares, below = np.cumsum(offset), np.cumsum(offset * offset), np.cumsum(offset < 0.0)
        # Each set includes the ties of its last value. M is below all of them, and at or above the next value.
        ends = np.array([np.searchsorted(-size, -size[k - 1], side="right") for k in counts or [len(offset)]])
        heads = np.where(below[ends - 1] == 0, np.sqrt(2.0 * math.log(2.0) * ends), -math.inf)
        statistics = np.maximum(sums[ends - 1] / np.sqrt(squares[ends - 1]), heads)
        largest = int(np.argmax(statistics))
        count, statistic = int(ends[largest]), float(statistics[largest])
        worst = math.ldexp(float(size[count]), power) if count < len(size) else 0.0
        mean = math.ldexp(float(sums[count - 1]) / len(values), power)
    verdict: Verdict = "not contradicted"
    if math.isnan(about) or 2.0 * math.log(2.0) * len(values) < limit**2:  # too few even if all were above the point
        verdict = "too few values"
    elif counts and statistic > limit:
        verdict = "contradicted"
    differ = 0 if math.isnan(about) else len(offset)
    return Nonpositivity(verdict, about, center, n, worst, count, mean, statistic, limit, 1.0 - alpha, differ)
