"""Means, medians and standard deviations of rows with values from 1e-300 to 1e300.

Squares overflow beyond 1e154, and so does a sum of doubles near the largest one. Each function first computes directly. It
repeats only rows with too large or too small values, multiplied by a power of two, which is exact.
"""

from __future__ import annotations

import numpy as np

from robandit.kernel.types import Floats

_SUMMABLE = 2.0**-64  # 2^64 doubles of up to this multiple of the largest double can be added


def exponents(matrix: Floats) -> Floats:
    """Return for each row k with 2^k just above the largest size, as a column; 0 if squares are safe or all values are zero."""
    largest = np.maximum(matrix.max(axis=1), -matrix.min(axis=1))
    power = np.frexp(largest)[1]
    return np.where((largest > 1e-130) & (largest < 1e130), 0, power)[:, None]


def row_means(matrix: Floats) -> Floats:
    """Return the mean of each row. It is NaN or infinite only if a value of the row is."""
    with np.errstate(over="ignore", invalid="ignore"):
        means: Floats = matrix.mean(axis=1)
    bad = ~np.isfinite(means)
    if bad.any():
        with np.errstate(invalid="ignore"):
            means[bad] = (matrix[bad] * _SUMMABLE).mean(axis=1) / _SUMMABLE
    return means


def row_medians(matrix: Floats) -> Floats:
    """Return the median of each row (for an even count, the mean of the two middle values)."""
    n = matrix.shape[1]
    low, high = (n - 1) // 2, n // 2
    part = np.partition(matrix, (low, high), axis=1)
    return row_means(np.ascontiguousarray(part[:, low : high + 1]))


def row_sds(matrix: Floats, means: Floats) -> Floats:
    """Return the standard deviation (n - 1) of each row about the given mean, corrected for the mean's rounding."""
    k = exponents(matrix)
    n = matrix.shape[1]
    off = np.ldexp(matrix, -k) - np.ldexp(means[:, None], -k) if k.any() else matrix - means[:, None]
    # Deviations need no separate scale: the largest is 0 or above 1e-17 of the largest value, so its square does not underflow.
    squares = np.square(off).sum(axis=1) - np.square(off.sum(axis=1)) / n
    sds: Floats = np.ldexp(np.sqrt(np.maximum(squares, 0.0) / (n - 1)), k[:, 0])
    return sds


def trimmed(matrix: Floats, thresholds: Floats) -> Floats:
    """Return the rows with values above their threshold set to zero."""
    return np.where(np.abs(matrix) <= thresholds[:, None], matrix, 0.0)
