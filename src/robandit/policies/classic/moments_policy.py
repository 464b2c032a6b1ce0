"""The common part of index policies that use the sample mean and sample variance."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from robandit.kernel.ranges import Range
from robandit.kernel.types import Floats
from robandit.policies._parts.running_moments import COUNT, MOMENTS, add_reward, mean_of, moments_range, variance_of
from robandit.policies.index import IndexPolicy, Rewards, describe_arm, index_ranges


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

    def ranges(self, state: Any) -> dict[str, Range]:
        """Return the valid range of each field."""
        tried = state.arms[:, COUNT] >= self.first(self.params())
        return index_ranges(state, tried) | {"arms": moments_range(state.arms)}

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        """Add the reward to the arm's moments."""
        add_reward(s.arms[arm], reward)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        """Return the sample mean."""
        return mean_of(s.arms[arm])
