"""Bins of equal relative width, for histograms of values above zero: bin i has the values in (gamma^(i - 1), gamma^i].

A value differs from the geometric middle of its bin by at most 1 %. Nine decades have 1,037 bins: 8 KB of counts.
"""

from __future__ import annotations

import math

LOG_GAMMA = math.log(1.01 / 0.99)


def edge(i: int) -> float:
    """Return the upper edge of a bin, which belongs to it."""
    return math.exp(i * LOG_GAMMA)


def bin_of(x: float) -> int:
    """Return the bin of a value above zero. It agrees with `edge`, whatever the rounding of the logarithm."""
    i = math.ceil(math.log(x) / LOG_GAMMA)
    if x > edge(i):
        i += 1
    elif x <= edge(i - 1):
        i -= 1
    return i
