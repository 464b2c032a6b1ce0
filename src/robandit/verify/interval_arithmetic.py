"""Confidence intervals of measured numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from robandit.errors import InvalidInput
from robandit.intervals import Interval, around
from robandit.kernel.types import Floats


def sure(value: float) -> Interval:
    """Return the interval of a number that is known exactly."""
    return Interval(value, value, value)


def largest(intervals: Iterable[Interval]) -> Interval:
    """Return an interval for the largest of several numbers: the largest of each end. It has their joint confidence.

    The interval with the highest upper end is not enough: it may cross a limit while another interval lies entirely above it.
    """
    return Interval(*(max(column) for column in zip(*intervals, strict=True)))


def smallest(intervals: Iterable[Interval]) -> Interval:
    """Return an interval for the smallest of several numbers: the smallest of each end."""
    return Interval(*(min(column) for column in zip(*intervals, strict=True)))


def divided(interval: Interval, unit: float) -> Interval:
    """Return the interval of a number in other units."""
    return Interval(*(end / unit for end in interval))


def shifted(interval: Interval, by: float) -> Interval:
    """Return the interval of a number minus a constant."""
    return Interval(*(end - by for end in interval))


def joint_confidence(intervals: int) -> float:
    """Return the confidence that each interval needs for a joint confidence of 99 % (Bonferroni)."""
    return 1.0 - 0.01 / intervals


def slope(x: Floats, y: Floats, confidence: float = 0.99) -> Interval:
    """Return the exponent b of mean(y) ~ x^b, by least squares in logarithms, with a jackknife interval.

    ``y`` has one row per replication and one column per x. The jackknife omits whole rows, so the columns of a row may be
    dependent. The interval uses Student's quantile; its confidence is nominal, as in `mean_interval`.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if y.ndim != 2 or y.shape[1] != len(x) or len(x) < 2:
        raise InvalidInput(f"y has the shape {y.shape}: pass a row per replication and a column for each of {len(x)} x")
    weights = slope_weights(x)

    def fitted(means: Floats) -> Floats:
        fit: Floats = np.log(np.maximum(means, 1e-300)) @ weights
        return fit

    n = len(y)
    without = fitted((y.sum(axis=0) - y) / max(n - 1, 1))
    return around(float(fitted(y.mean(axis=0))), (n - 1) * float(np.var(without)), n, confidence)


def slope_weights(x: Floats) -> Floats:
    """Return the weights for which ``weights @ y`` is the least-squares slope of y in log x."""
    centred = np.log(x) - np.log(x).mean()
    weights: Floats = centred / (centred @ centred)
    return weights
