"""What the checks of the estimator share: laws with known facts, samples from them, and thresholds of many samples at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robandit.estimators.threshold import C, row_thresholds
from robandit.kernel.types import Floats
from robandit.laws import Law, Pareto, StudentT, ZeroInflated, two_point
from robandit.verify.statement import Effort, Finding
from robandit.verify.statistics import Interval, sure
from robandit.wording import joined

__all__ = [
    "LOST",
    "NONPOSITIVE",
    "POSITIVE",
    "Orders",
    "always",
    "blocks",
    "clipped",
    "enough",
    "listed",
    "orders",
    "quantile",
    "roots",
    "usable",
]

# The last is an arm of the paper's Theorem 4 with eps = 1/2, u = 1 and Delta = 0.4: a loss of (u/Delta)^(1/eps) with probability
# Delta^(1+1/eps) u^(-1/eps).
NONPOSITIVE: dict[str, Law] = {
    "negated Pareto 1.2": -Pareto(tail=1.2),
    "negated Pareto 1.5": -Pareto(tail=1.5),
    "negated Pareto 2.5": -Pareto(tail=2.5),
    "Student t 1.5": StudentT(dof=1.5),
    "half zero, negated Pareto 1.5": ZeroInflated(-Pareto(tail=1.5), 0.5),
    "rare loss": two_point(-(0.4**-2.0), 0.0, 1.0 - 0.4**3.0),
}
"""Laws with E[X 1{|X| > M}] <= 0 for every M."""

POSITIVE: dict[str, Law] = {
    "Pareto 1.2": Pareto(tail=1.2),
    "Pareto 1.5": Pareto(tail=1.5),
    "Pareto 2.5": Pareto(tail=2.5),
}
"""Laws for which that is wrong."""

LOST = 1e300
"""Stands for what a missing threshold would have led to: beyond every bound, and a number still, for figures and JSON."""

BLOCK = 2**20  # values held at once


def blocks(
    law: Law, n: int, trials: int, effort: Effort, *key: int, pair: bool = True
) -> Iterator[tuple[Floats, Floats]]:
    """Independent samples X and X' of n values, ``trials`` rows of them, a block of rows at a time.

    ``key`` says which check and case they are for. Without ``pair`` there is X' alone, given twice.
    """
    rows = max(1, BLOCK // n)
    for block, start in enumerate(range(0, trials, rows)):
        count = min(rows, trials - start)
        seed = np.random.SeedSequence(effort.seed, spawn_key=(*key, block))
        drawn = law.sample((1 + pair) * count * n, seed).reshape(-1, count, n)
        yield drawn[0], drawn[-1]


def enough(law: Law, n: int, level: float, c: float = C) -> bool:
    """Whether twice as many non-zero values are expected as a threshold needs, so that nearly every sample has one."""
    return n * law.nonzero_probability >= 2.0 * c * level


def roots(matrix: Floats, level: float, c: float = C) -> Floats:
    """The threshold of each row, NaN where there is none."""
    found = np.full(len(matrix), math.nan)
    some = np.count_nonzero(matrix, axis=1) > c * level
    if some.any():
        found[some] = row_thresholds(matrix if some.all() else matrix[some], level, c)
    return found


def usable(found: Floats, matrix: Floats, level: float, c: float = C) -> tuple[NDArray[np.bool_], int]:
    """Which rows have a threshold, and how many have none, or no number, though one exists: each of those is a failure.

    Rows that have none are excused: M depends on X' alone, so that what is said of it is as valid given that it exists.
    """
    exists = np.count_nonzero(matrix, axis=1) > c * level
    finite = np.isfinite(found)
    return finite, int((exists & ~finite).sum())


def clipped(matrix: Floats, thresholds: Floats) -> Floats:
    """F(M) = sum_j min((x_j / M)^2, 1) of each row at its own M > 0."""
    with np.errstate(over="ignore", under="ignore"):
        total: Floats = np.square(np.minimum(np.abs(matrix) / thresholds[:, None], 1.0)).sum(axis=1)
    return total


class Orders(NamedTuple):
    """Orders eps in (0, 1] of which a law has E|X|^(1+eps) = u."""

    eps: Floats
    u: Floats

    def threshold(self, n: int, level: float) -> float:
        """The least of (u n / L)^(1/(1+eps)), which is the threshold of Robust UCB."""
        return float(((self.u * n / level) ** (1.0 / (1.0 + self.eps))).min())

    def width(self, n: int, level: float) -> float:
        """The least of u^(1/(1+eps)) (L/n)^(eps/(1+eps))."""
        return float((self.u ** (1.0 / (1.0 + self.eps)) * (level / n) ** (self.eps / (1.0 + self.eps))).min())


@cache
def orders(law: Law) -> Orders:
    """Ten orders up to nearly the largest; 1 is among them where the variance exists."""
    most = law.tail_index - 1.0
    eps = np.linspace(0.1, 1.0, 10) if most > 1.0 else most * np.linspace(0.1, 0.95, 10)
    return Orders(eps, np.array([law.absolute_moment(1.0 + e) for e in eps]))


def always(
    claim: str, good: Sequence[bool], misprints: tuple[str, ...] = (), note: str = "", headline: str = ""
) -> Finding:
    """That something is so in every sample: the share of them is 1."""
    part = sure(sum(good) / len(good))
    return Finding(
        claim=claim, **part._asdict(), least=1.0, most=1.0, misprints=misprints, note=note, headline=headline
    )


def quantile(values: Sequence[float] | Floats, share: float, confidence: float = 0.99) -> Interval:
    """A quantile of a law from independent values: the ends are values themselves, by the binomial law of how many lie below it.

    >>> quantile(range(1000), 0.5)
    Interval(measured=500.0, low=458.0, high=541.0)
    """
    from scipy.special import bdtrik

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    tail = (1.0 - confidence) / 2.0
    low, high = (int(np.ceil(bdtrik(p, n, share))) for p in (tail, 1.0 - tail))
    place = min(int(n * share), n - 1)
    below = ordered[low - 1] if low >= 1 else -math.inf
    above = ordered[high] if high < n else math.inf
    return Interval(float(ordered[place]), float(below), float(above))


def listed(numbers: Sequence[float]) -> str:
    """Several numbers in a sentence."""
    return joined([f"{x:,.4g}" for x in numbers])
