"""Laws, samples and thresholds that the checks of the estimator share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robandit.estimators.formulas.threshold import C
from robandit.estimators.threshold import row_thresholds
from robandit.intervals import Interval, quantile_interval, share
from robandit.kernel.types import Floats
from robandit.laws import Law, Pareto, StudentT, ZeroInflated, two_point
from robandit.verify.interval_arithmetic import divided
from robandit.verify.statement import Effort, Finding, Row, finding, row_of
from robandit.wording import joined

TAILS = (1.2, 1.5, 2.5)
# "rare loss" is an arm of the paper's Theorem 4 with eps = 1/2, u = 1 and Delta = 0.4. It loses (u/Delta)^(1/eps) with
# probability Delta^(1+1/eps) u^(-1/eps).
NONPOSITIVE: dict[str, Law] = {
    **{f"negated Pareto {tail}": -Pareto(tail=tail) for tail in TAILS},
    "Student t 1.5": StudentT(dof=1.5),
    "half zero, negated Pareto 1.5": ZeroInflated(-Pareto(tail=1.5), 0.5),
    "rare loss": two_point(-(0.4**-2.0), 0.0, 1.0 - 0.4**3.0),
}
"""Laws with E[X 1{|X| > M}] <= 0 for every M."""
POSITIVE = {f"Pareto {tail}": Pareto(tail=tail) for tail in TAILS}
"""Laws with E[X 1{|X| > M}] > 0 for some M."""
LAWS: dict[str, Law] = {**NONPOSITIVE, **POSITIVE}
DELTAS = (0.1, 0.01)
LOST = 1e300
"""The result of a trial without a threshold. It exceeds every bound but is finite, as JSON requires."""
BLOCK = 2**20  # values in memory at once


def sizes_and_trials(effort: Effort) -> tuple[tuple[int, ...], int]:
    """Return the sample sizes, and the number of samples per size."""
    return effort.of(((64, 512), 2_000), ((64, 512, 4096), 10_000))


def blocks(
    law: Law, n: int, trials: int, effort: Effort, *key: int, pair: bool = True
) -> Iterator[tuple[Floats, Floats]]:
    """Yield blocks of independent samples X and X', with n values per row and ``trials`` rows in total.

    ``key`` identifies the check and the case. With ``pair=False``, only X' is drawn and stands in both places.
    """
    rows = max(1, BLOCK // n)
    for block, start in enumerate(range(0, trials, rows)):
        count = min(rows, trials - start)
        values = law.sample((1 + pair) * count * n, effort.stream(*key, block)).reshape(-1, count, n)
        yield values[0], values[-1]


def enough(law: Law, n: int, level: float, c: float = C) -> bool:
    """Return whether nearly all samples have a threshold: on average they have twice the non-zero values that it needs."""
    return n * law.nonzero_probability >= 2.0 * c * level


def deltas_for(law: Law, n: int) -> list[float]:
    """Return the deltas at which nearly all samples have a threshold."""
    return [delta for delta in DELTAS if enough(law, n, math.log(1.0 / delta))]


def roots(matrix: Floats, level: float, c: float = C) -> Floats:
    """Return the threshold of each row, or NaN if it does not exist."""
    thresholds = np.full(len(matrix), math.nan)
    exists = np.count_nonzero(matrix, axis=1) > c * level
    if exists.any():
        thresholds[exists] = row_thresholds(matrix if exists.all() else matrix[exists], level, c)
    return thresholds


def usable(thresholds: Floats, matrix: Floats, level: float, c: float = C) -> tuple[NDArray[np.bool_], int]:
    """Return the mask of rows with a finite threshold, and the number of failures: a threshold exists but was not found."""
    # Rows without a threshold are not failures: M depends only on X', so the claims also hold given that M exists.
    exists = np.count_nonzero(matrix, axis=1) > c * level
    finite = np.isfinite(thresholds)
    return finite, int((exists & ~finite).sum())


def clipped(matrix: Floats, thresholds: Floats) -> Floats:
    """Return F(M) = sum_j min((x_j / M)^2, 1) for each row, at the M > 0 of that row."""
    with np.errstate(over="ignore", under="ignore"):
        total: Floats = np.square(np.minimum(np.abs(matrix) / thresholds[:, None], 1.0)).sum(axis=1)
    return total


class Orders(NamedTuple):
    """Orders eps in (0, 1], and the moment u = E|X|^(1+eps) of a law at each order."""

    eps: Floats
    u: Floats

    def threshold(self, n: int, level: float) -> float:
        """Return the smallest (u n / L)^(1/(1+eps)) of all orders, which is the threshold of Robust UCB."""
        return float(((self.u * n / level) ** (1.0 / (1.0 + self.eps))).min())


@cache
def orders(law: Law) -> Orders:
    """Return ten orders up to nearly the largest finite one, including 1 if the variance is finite."""
    most = law.tail_index - 1.0
    eps = np.linspace(0.1, 1.0, 10) if most > 1.0 else most * np.linspace(0.1, 0.95, 10)
    return Orders(eps, np.array([law.absolute_moment(1.0 + e) for e in eps]))


def always(claim: str, successes: Sequence[bool], note: str = "", **details: object) -> Finding:
    """Return the finding that every sample satisfies a claim: the share of successes is 1."""
    return finding(claim, sum(successes) / len(successes), note).between(1.0, 1.0, **details)


def failure_rate(failures: int, trials: int, allowed: float, confidence: float) -> Interval:
    """Return the failure probability divided by the allowed probability."""
    return divided(share(failures, trials, confidence), allowed)


def quantile(values: Sequence[float] | Floats, share: float, confidence: float = 0.99) -> Interval:
    """Estimate a quantile from independent values, with an exact confidence interval, which may be infinite."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    low, high = quantile_interval(ordered, share, confidence)
    middle = float(ordered[min(int(len(ordered) * share), len(ordered) - 1)])
    return Interval(middle, -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)


def worst_rows(cases: Iterable[tuple[str, float, Interval]], limit: float) -> list[Row]:
    """Return the rows of a table from (law, delta, interval), with the largest interval for each law and delta."""
    worst: dict[tuple[str, float], Interval] = {}
    for law, delta, interval in cases:
        worst[law, delta] = max(worst.get((law, delta), interval), interval)
    return [row_of(worst[law, d], case=law, series=f"delta = {d:g}", limit=limit) for law, d in worst]


def joint_text(cases: int, confidence: float) -> str:
    """Return the sentence about the joint confidence of all cases."""
    return f"{cases} cases with {100 * confidence:.3f}% intervals, which hold jointly at 99%"


def listed(numbers: Sequence[float]) -> str:
    """Format several numbers for a sentence."""
    return joined([f"{x:,.4g}" for x in numbers])
