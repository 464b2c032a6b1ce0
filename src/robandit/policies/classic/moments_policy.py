"""Mean and variance of an arm's rewards from running sums, and the index policies that use them.

The arm's first reward is subtracted from all rewards, so no digits cancel if the mean is large compared with the spread.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from robandit.kernel.types import Floats
from robandit.policies.index import IndexPolicy, Rewards, describe_arm

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


def describe_moments(
    mean: Any, index: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any, arm: int, out: Floats
) -> None:
    """Fill in the mean, the index and the variance."""
    describe_arm(mean, index, level, rewards, first, p, s, arm, out)
    out[2] = variance_of(s.arms[arm]) if rewards(s, arm) > 0.0 else math.nan


class MomentsPolicy(IndexPolicy):
    """An index policy whose rows of ``arms`` are running moments. A subclass writes the index."""

    columns = ("mean", "index", "variance")
    row_length = MOMENTS
    estimate = staticmethod(partial(describe_moments))

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        add_reward(s.arms[arm], reward)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return mean_of(s.arms[arm])
