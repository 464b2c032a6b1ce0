"""Do recorded rewards contradict truncated non-positivity, E[(X - a) 1{|X - a| > M}] <= 0 for every M >= 0?

The test. Write d = x - a for the values that differ from the point a. For a law that is symmetric about a, the signs
of the d are fair coins, independent of all the |d|. So for any set of values that is chosen by the |d| alone,

    P( sum d >= z sqrt(sum d^2) ) <= exp(-z^2 / 2)        (Efron 1969: Hoeffding's inequality, given the |d|).

A plain count is added, since one huge value makes sqrt(sum d^2) as large as the sum: k coins are all heads with
probability 2^-k, which is worth z = sqrt(2 k log 2). The sets looked at are the n, n/2, n/4, ... values farthest from
a, down to ``LEAST`` (ties of the nearest are taken along, so that each set is {|d| > M} for some M). With G sets, z =
sqrt(2 log(2 G / alpha)) and a union bound over sets and the two statistics make the probability of a false
contradiction at most alpha. No moment has to exist.

For which laws this is exact: for more than the symmetric ones, for all where at every distance the left is at least
as likely as the right, P(d > 0 given |d|) <= 1/2: fair coins dominate their signs, and both statistics rise with each
sign. Every law at or below a is among them. For other left-skewed laws about their median (negated Pareto, log-normal,
exponential) it is measured, not proved (tests/diagnostics/test_assumption.py). About 0 the laws to fear are those whose
bulk lies above 0 and whose mean is not, thanks to rare large losses: of c - Pareto with mean exactly 0 the more samples are
contradicted the heavier the tail. No test can do without such errors: a loss so rare and so
large that it has not been seen yet can make any mean negative. "Contradicted" is therefore said of the rewards seen.

About the median. The centre must not come from the values that are tested, and its error must not pass for skewness:
off by one standard error, it moves the sum by as much as chance does. So one half of the values gives an upper
confidence limit c of the median (order statistics and Hoeffding's inequality, half of alpha), and the others are
tested about c (the other half). A hash of the position says which value is in which half, so that no pattern in the
order of the values does. For a symmetric law with a single peak (or flat) and c at or above its
centre, at every distance from c the left is at least as likely as the right, so the level is alpha again.
"Contradicted" means: about every centre that the median may reasonably have.

Symmetry. If a law is symmetric, then it and its negation are truncated non-positive about their medians. So values
and negated values are tested, with half of alpha each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from robandit.diagnostics.samples import check_about, check_confidence, hashed, sample
from robandit.kernel.types import Floats

__all__ = ["Nonpositivity", "Point", "judge", "truncated_nonpositivity"]

LEAST = 8  # values in the smallest set: the statistic is at most 1.2 times the root of their number
Point = float | Literal["median", "symmetric"]


@dataclass(frozen=True, kw_only=True)
class Nonpositivity:
    """What a sample says about truncated non-positivity. It is true unless the sample contradicts it."""

    verdict: Literal["contradicted", "not contradicted", "too few values"]
    about: float
    """The point; about the median: the upper confidence limit of the median, about which half of the values were tested."""
    center: Literal["given", "median"]
    n: int
    """Values given."""
    worst: float
    """The M for which the statistic is largest."""
    count: int
    """How many of the tested values lie farther than that from the point."""
    mean: float
    """The mean over all tested values of (x - about) 1{|x - about| > worst}: what should not be above 0."""
    statistic: float
    """Their sum over the root of the sum of their squares; or, if all lie above and it is more, sqrt(2 log 2 count)."""
    limit: float
    """What the statistic exceeds by chance with probability at most 1 - confidence."""
    confidence: float
    differ: int = 0
    """How many of the tested values differ from the point."""
    mirrored: bool = False
    """Whether the negated values were tested; ``about`` is then a lower limit of the median, and ``mean`` should not be below 0."""

    def __bool__(self) -> bool:
        """Whether the assumption may stand."""
        return self.verdict != "contradicted"

    def __str__(self) -> str:
        """The verdict in words."""
        if self.verdict == "too few values":
            return f"{self.point}: too few values ({self.n}) to say"
        said = self.verdict.upper() if self.verdict == "contradicted" else self.verdict
        return f"{self.point}: {said} ({self.evidence})"

    @property
    def point(self) -> str:
        """Where, in words."""
        if self.center == "given":
            return f"about {self.about:.4g}"
        return "about the median" + (
            "" if math.isnan(self.about) else f" (at {'least' if self.mirrored else 'most'} {self.about:.4g})"
        )

    @property
    def evidence(self) -> str:
        """What the verdict rests on, in words."""
        if math.isnan(self.statistic):
            return "no value lies elsewhere"
        seen = f"z = {self.statistic:.3g} against {self.limit:.3g}"
        if self.verdict != "contradicted":
            return seen
        those = "values" if self.worst == 0.0 else f"the {self.count} values farther than {self.worst:.4g} from it"
        return f"{those} add up to {'less' if self.mirrored else 'more'} than 0, {seen}"


def truncated_nonpositivity(x: Any, about: float | Literal["median"] = 0.0, confidence: float = 0.99) -> Nonpositivity:
    """Whether a sample contradicts E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0.

    This is what AdaR-UCB assumes of the best arm about 0, and centred policies about its median. For a law, of which
    everything is known, ask ``law.truncated_nonpositivity(about)`` instead.

    Parameters
    ----------
    x
        Independent values of one arm, in an order that does not depend on them.
    about
        The point, or ``"median"``.
    confidence
        A law that is symmetric (about the median: and has a single peak), or that lies at or below the point, is
        contradicted by chance with probability at most 1 - confidence. See the module for the test, and for which
        other laws this is so.

    Examples
    --------
    >>> from robandit.laws import Pareto, StudentT
    >>> print(truncated_nonpositivity(StudentT(dof=1.5, loc=3.0).sample(2000, seed=0), "median"))
    about the median (at most 3.181): not contradicted (z = 0.248 against 3.98)
    >>> truncated_nonpositivity(StudentT(dof=1.5, loc=3.0).sample(2000, seed=0)).verdict
    'contradicted'
    >>> truncated_nonpositivity(Pareto(tail=1.5).sample(2000, seed=0), "median").verdict
    'contradicted'
    >>> truncated_nonpositivity((-Pareto(tail=1.5)).sample(2000, seed=0), "median").verdict
    'not contradicted'

    References
    ----------
    B. Efron. Student's t-test under symmetry conditions. Journal of the American Statistical Association 64, 1969.
    """
    values = sample(x)
    check_about(about)
    check_confidence(confidence)
    return judge(values, about, 1.0 - confidence)


def judge(values: Floats, about: Point, alpha: float) -> Nonpositivity:
    """The same for a checked sample, at level ``alpha``; no values are too few. ``"symmetric"``: the median, to both sides."""
    if about == "symmetric":
        found, other = judge(values, "median", alpha / 2.0), mirror(judge(-values, "median", alpha / 2.0))
        worse = found and (not other or other.statistic > found.statistic)
        return replace(other if worse else found, confidence=1.0 - alpha)
    if about == "median":
        order = np.argsort(hashed(np.arange(1, len(values) + 1, dtype=np.uint64)))
        half = (len(values) + 1) // 2
        centre = _upper_median(values[order[:half]], alpha / 2.0)
        return _tested(values[order[half:]], centre, alpha / 2.0, alpha, "median", len(values))
    return _tested(values, float(about), alpha, alpha, "given", len(values))


def mirror(found: Nonpositivity) -> Nonpositivity:
    """What was found for negated values, in words and numbers for the values themselves."""
    return replace(found, about=-found.about, mean=-found.mean, mirrored=True)


def _upper_median(values: Floats, alpha: float) -> float:
    """An order statistic that is below the median with probability at most alpha; NaN if there is none."""
    n = len(values)
    rank = math.ceil(n / 2.0 + math.sqrt(n * math.log(1.0 / alpha) / 2.0))
    return float(np.partition(values, rank - 1)[rank - 1]) if 1 <= rank <= n else math.nan


def _tested(
    values: Floats, about: float, level: float, alpha: float, center: Literal["given", "median"], n: int
) -> Nonpositivity:
    # in units of a power of two, so that squares neither overflow nor vanish, and ties stay ties
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
        # with the ties of the last; an M below all of them and at or above the next
        ends = np.array([np.searchsorted(-size, -size[k - 1], side="right") for k in counts or [len(offset)]])
        heads = np.where(below[ends - 1] == 0, np.sqrt(2.0 * math.log(2.0) * ends), -math.inf)
        found = np.maximum(sums[ends - 1] / np.sqrt(squares[ends - 1]), heads)
        best = int(np.argmax(found))
        count, statistic = int(ends[best]), float(found[best])
        worst = math.ldexp(float(size[count]), power) if count < len(size) else 0.0
        mean = math.ldexp(float(sums[count - 1]) / len(values), power)
    verdict: Literal["contradicted", "not contradicted", "too few values"] = "not contradicted"
    if math.isnan(about) or 2.0 * math.log(2.0) * len(values) < limit**2:  # all above the point would not be enough
        verdict = "too few values"
    elif counts and statistic > limit:
        verdict = "contradicted"
    return Nonpositivity(
        verdict=verdict,
        about=about,
        center=center,
        n=n,
        worst=worst,
        count=count,
        mean=mean,
        statistic=statistic,
        limit=limit,
        confidence=1.0 - alpha,
        differ=0 if math.isnan(about) else len(offset),
    )
