"""Mean and variance of an arm's rewards from running sums.

Rewards are shifted by the arm's first. A mean that is large against the spread then cancels nothing: (first - mean)^2 <= n V, so
rounding is relative to at most n times the variance.
"""

from __future__ import annotations

import math

from robandit.kernel.types import Floats

__all__ = ["COUNT", "MOMENTS", "add_reward", "mean_of", "variance_of"]

# An arm's row.
COUNT, SHIFT, SUM, SQUARES = 0, 1, 2, 3
MOMENTS = 4


def add_reward(row: Floats, reward: float) -> None:
    """One more reward."""
    if row[COUNT] == 0.0:
        row[SHIFT] = reward
    off = reward - row[SHIFT]
    row[COUNT] += 1.0
    row[SUM] += off
    row[SQUARES] += off * off


def mean_of(row: Floats) -> float:
    """The sample mean."""
    return row[SHIFT] + row[SUM] / row[COUNT]


def variance_of(row: Floats) -> float:
    """The mean squared distance from the mean (divisor n); infinite if squares overflow."""
    n = row[COUNT]
    if row[SQUARES] == math.inf:
        return math.inf
    off = row[SUM] / n
    return max(row[SQUARES] / n - off * off, 0.0)
