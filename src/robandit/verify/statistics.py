"""How sure a measured number is."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from robandit.errors import InvalidInput
from robandit.intervals import Interval, around, mean_interval, share
from robandit.kernel.types import Floats

__all__ = ["Interval", "largest", "mean_interval", "share", "slope", "slope_weights", "smallest", "sure"]


def sure(value: float) -> Interval:
    """Of a number that is known."""
    return Interval(value, value, value)


def largest(intervals: Iterable[Interval]) -> Interval:
    """Of the largest of several numbers, end by end: it has the joint confidence of all.

    The one interval that reaches highest would not do: another may lie above a limit for certain.

    >>> largest([Interval(1.0, 0.5, 3.0), Interval(1.5, 1.2, 2.0)])
    Interval(measured=1.5, low=1.2, high=3.0)
    """
    return Interval(*(max(column) for column in zip(*intervals, strict=True)))


def smallest(intervals: Iterable[Interval]) -> Interval:
    """Of the smallest of several numbers, end by end, as `largest`."""
    return Interval(*(min(column) for column in zip(*intervals, strict=True)))


def slope(x: Floats, y: Floats, confidence: float = 0.99) -> Interval:
    """The exponent b of mean(y) ~ x^b: least squares in logarithms, with a jackknife over replications and Student's quantile.

    ``y`` has a row per replication and a column per x. Rows are left out as a whole, so the columns of a row may depend on each
    other. The confidence is nominal, as that of `mean_interval`.
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
    return around(float(fitted(y.mean(axis=0))), (n - 1) * float(np.var(without)), n, confidence)


def slope_weights(x: Floats) -> Floats:
    """With these, ``weights @ y`` is the slope of y in log x, by least squares."""
    centred = np.log(x) - np.log(x).mean()
    weights: Floats = centred / (centred @ centred)
    return weights
