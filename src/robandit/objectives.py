"""What is minimised or maximised: the mean, a quantile, or the share of rewards beyond a limit."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robandit import validation
from robandit.wording import compact, share

RULE = '"mean", a quantile from "p1" to "p99.9", or a limit such as "within:2.0"'
_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
_WITHIN = re.compile(r"within:([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)")


class Objective(NamedTuple):
    """An objective. One of ``q`` and ``limit`` is None, or both are: the mean.

    Quantiles and limits are those of rewards as the user sends them, so the sign of costs is that of costs.
    """

    text: str = "mean"
    q: float | None = None
    """The level of the quantile, in (0, 1)."""
    limit: float | None = None
    """A cost above it, or a reward below it, is beyond the limit. The share of those is minimised."""

    @property
    def name(self) -> str:
        """What it is called in sentences: "p95", or "share beyond 2.0"."""
        return self.text if self.limit is None else f"share beyond {self.limit!r}"

    def is_beyond(self, value: float, *, minimize: bool) -> bool:
        """Return whether a reward is beyond the limit."""
        assert self.limit is not None
        return value > self.limit if minimize else value < self.limit


class ObjectiveValue(NamedTuple):
    """The value of an objective for an arm, with distribution-free limits (0.95). A limit that is missing is infinite."""

    arm: Any
    name: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return a sentence, such as "p95 of 'atlas': 2.4, 95 % limits 2.1 to 2.9"."""
        text = share if self.name.startswith("share") else compact
        limits = f"95 % limits {text(self.low)} to {text(self.high)}"
        if math.isinf(self.low) or math.isinf(self.high):
            missing = "upper" if self.low > -math.inf else "lower" if self.high < math.inf else ""
            known = self.low if missing == "upper" else self.high
            limits = f"95 % limits: {text(known)}, no {missing} one yet" if missing else "too few for limits"
        return f"{self.name} of {self.arm!r}: {text(self.value)}, {limits}"


MEAN = Objective()
RISK = 0.025  # of each limit


def quantile_text(q: float) -> str:
    """Return the objective of a level, such as "p95" of 0.95."""
    return f"p{round(100.0 * q, 3):g}"


def objective_from(text: Any, name: str = "objective") -> Objective:
    """Return the objective that a text names. The same objective has one spelling in ``text``."""
    if text == MEAN.text and isinstance(text, str):
        return MEAN
    given = validation.text(text, name, RULE)
    quantile, within = _QUANTILE.fullmatch(given), _WITHIN.fullmatch(given)
    percent = float(quantile[1]) if quantile else 0.0
    if 1.0 <= percent <= 99.9:
        return Objective(f"p{percent:g}", q=round(percent / 100.0, 5))
    limit = float(within[1]) if within else math.inf
    if abs(limit) <= 1e150:
        return Objective(f"within:{limit!r}", limit=limit)
    raise validation.invalid(name, text, RULE)


def ranks(n: int, q: float) -> tuple[int, int]:
    """Return the ranks, from 1, of the two order statistics of n values that are limits of their law's quantile.

    They cover it with probability 0.95 at least, whatever the law, if n is fixed. 0 and n + 1: there is no such limit.
    """
    from scipy.special import bdtr, bdtrik  # scipy.stats.binom has the same values, and takes 0.8 s to import

    def rank(p: float) -> int:
        """Return the least k with P(at most k of n values are below the quantile) >= p."""
        k = max(0, math.ceil(bdtrik(p, n, q)) - 2) if bdtr(0, n, q) < p else 0
        while bdtr(k, n, q) < p:
            k += 1
        return k

    return rank(RISK), rank(1.0 - RISK) + 1


def share_limits(count: int, n: int) -> tuple[float, float]:
    """Return the limits (0.95) of Clopper and Pearson of a probability, if ``count`` of n values are beyond a limit."""
    from scipy.special import betaincinv

    low = float(betaincinv(count, n - count + 1, RISK)) if count else 0.0
    return low, float(betaincinv(count + 1, n - count, 1.0 - RISK)) if count < n else 1.0


def value_of(arm: Any, values: NDArray[np.float64], objective: Objective, *, minimize: bool) -> ObjectiveValue:
    """Return the value of a quantile or a limit for an arm with these rewards, or costs."""
    n = len(values)
    if objective.limit is not None:
        count = int(np.count_nonzero(values > objective.limit if minimize else values < objective.limit))
        limits = share_limits(count, n) if n else (0.0, 1.0)
        return ObjectiveValue(arm, objective.name, count / n if n else math.nan, *limits)
    assert objective.q is not None
    low, high = ranks(n, objective.q)
    ordered = np.concatenate([[-math.inf], np.sort(values), [math.inf]])
    value = float(ordered[math.ceil(objective.q * n - 1e-9)]) if n else math.nan
    return ObjectiveValue(arm, objective.name, value, float(ordered[low]), float(ordered[high]))
