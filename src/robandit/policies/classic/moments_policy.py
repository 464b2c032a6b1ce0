"""The common part of index policies that use the sample mean and sample variance."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from robandit.kernel.types import Floats
from robandit.policies._parts.running_moments import MOMENTS, add_reward, mean_of, variance_of
from robandit.policies.index import IndexPolicy, Rewards, describe_arm


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
        """Add the reward to the arm's moments."""
        add_reward(s.arms[arm], reward)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        """Return the sample mean."""
        return mean_of(s.arms[arm])
