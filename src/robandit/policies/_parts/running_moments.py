"""Mean and variance of an arm's rewards from running sums.

The arm's first reward is subtracted from all rewards, so no digits cancel if the mean is large compared with the spread: as
``(first - mean)^2 <= n V``, rounding is relative to at most n times the variance.
"""

from __future__ import annotations

import math

from robandit.kernel.types import Floats

# Columns of an arm's row.
COUNT, SHIFT, SUM, SQUARES = 0, 1, 2, 3
MOMENTS = 4


def add_reward(row: Floats, reward: float) -> None:
    """Add a reward to the sums."""
    if row[COUNT] == 0.0:
        row[SHIFT] = reward
    shifted = reward - row[SHIFT]
    row[COUNT] += 1.0
    row[SUM] += shifted
    row[SQUARES] += shifted * shifted


def mean_of(row: Floats) -> float:
    """Return the sample mean."""
    return row[SHIFT] + row[SUM] / row[COUNT]


def variance_of(row: Floats) -> float:
    """Return the mean squared distance from the mean (divisor n), or infinity if squares overflow."""
    n = row[COUNT]
    if row[SQUARES] == math.inf:
        return math.inf
    shifted = row[SUM] / n
    return max(row[SQUARES] / n - shifted * shifted, 0.0)
