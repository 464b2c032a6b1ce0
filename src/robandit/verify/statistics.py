"""Confidence intervals of measured numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

__all__ = [
    *("Interval", "divided", "joint_confidence", "largest", "mean_interval", "share", "shifted", "slope"),
    *("slope_weights", "smallest", "sure"),
]


class Interval(NamedTuple):
    """A number and the ends of its confidence interval."""

    measured: float
    low: float
    high: float


def sure(value: float) -> Interval:
    """Return the interval of a number that is known exactly."""
    return Interval(value, value, value)


def largest(intervals: Iterable[Interval]) -> Interval:
    """Return the interval of the largest of several numbers, end by end; it has their joint confidence.

    The single interval that reaches highest is not enough: another one may lie entirely above a limit.

    >>> largest([Interval(1.0, 0.5, 3.0), Interval(1.5, 1.2, 2.0)])
    Interval(measured=1.5, low=1.2, high=3.0)
    """
    return Interval(*(max(column) for column in zip(*intervals, strict=True)))


def smallest(intervals: Iterable[Interval]) -> Interval:
    """Return the interval of the smallest of several numbers, end by end, as `largest` does."""
    return Interval(*(min(column) for column in zip(*intervals, strict=True)))


def divided(interval: Interval, unit: float) -> Interval:
    """Return the interval of a number in other units."""
    return Interval(*(end / unit for end in interval))


def shifted(interval: Interval, by: float) -> Interval:
    """Return the interval of a number minus a constant."""
    return Interval(*(end - by for end in interval))


def joint_confidence(intervals: int) -> float:
    """Return the confidence of each interval with which all hold together at 99 % (Bonferroni)."""
    return 1.0 - 0.01 / intervals


def share(successes: int, trials: int, confidence: float = 0.99) -> Interval:
    """A probability from independent trials, with the exact interval of Clopper and Pearson.

    >>> share(0, 1000)
    Interval(measured=0.0, low=0.0, high=0.0053)
    """
    from scipy.special import betaincinv

    if not 0 <= successes <= trials or trials < 1:
        raise InvalidInput(f"{successes} successes in {trials} trials: give 0 <= successes <= trials, trials >= 1")
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1.0 - tail))
    return Interval(successes / trials, low, high)


def mean_interval(values: Floats, confidence: float = 0.99) -> Interval:
    """A mean over replications, with Student's interval: mean +- t s / sqrt(n).

    The confidence is nominal: exact for normal values, and too high for few skewed ones. For 10 exponential ones an interval at
    0.999 covers in 0.984 of all cases. Values that are all equal have no width, though a rare event may have been missed.

    >>> mean_interval(np.array([1.0, 2.0, 3.0]), confidence=0.9).high  # 2 + 2.92 / sqrt(3)
    3.7
    """
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # infinite ones are refused below
        squared_error = float(np.var(values)) / max(len(values) - 1, 1)
    return _around(float(values.mean()), squared_error, len(values), confidence)


def slope(x: Floats, y: Floats, confidence: float = 0.99) -> Interval:
    """Return the exponent b of mean(y) ~ x^b: least squares in logarithms, with a jackknife interval and Student's quantile.

    ``y`` has a row per replication and a column per x. The jackknife leaves out whole rows, so the columns of a row may depend
    on each other. The confidence is nominal, as in `mean_interval`.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if y.ndim != 2 or y.shape[1] != len(x) or len(x) < 2:
        raise InvalidInput(f"y has the shape {y.shape}: give a row per replication and a column for each of {len(x)} x")
    weights = slope_weights(x)

    def fitted(means: Floats) -> Floats:
        fit: Floats = np.log(np.maximum(means, 1e-300)) @ weights
        return fit

    n = len(y)
    without = fitted((y.sum(axis=0) - y) / max(n - 1, 1))
    return _around(float(fitted(y.mean(axis=0))), (n - 1) * float(np.var(without)), n, confidence)


def slope_weights(x: Floats) -> Floats:
    """Return the weights for which ``weights @ y`` is the least-squares slope of y in log x."""
    centred = np.log(x) - np.log(x).mean()
    weights: Floats = centred / (centred @ centred)
    return weights


def _around(measured: float, squared_error: float, count: int, confidence: float) -> Interval:
    """As many estimated standard errors to each side as Student's law asks for; of one value nothing is known."""
    from scipy.special import stdtrit

    if not math.isfinite(measured):
        raise InvalidInput(f"the measured number is {measured}: there is nothing to say about it")
    if count < 2:
        return Interval(measured, -math.inf, math.inf)
    reach = float(stdtrit(count - 1, 1.0 - (1.0 - confidence) / 2.0)) * math.sqrt(squared_error)
    return Interval(measured, measured - reach, measured + reach)
