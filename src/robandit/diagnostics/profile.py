"""Test results and estimates of one arm's rewards, for `robandit diagnose`, `Bandit.diagnose` and the advice."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from robandit.diagnostics.assumption import Nonpositivity, judge
from robandit.diagnostics.part import Part
from robandit.diagnostics.tails import TailIndex, tail_index
from robandit.kernel.types import Floats

ALPHA = 0.01  # the level of the tests


class Profile:
    """The rewards (or costs, in their own sign) of an arm, with statistics that are computed when they are first read."""

    def __init__(self, rewards: Floats | Part, minimize: bool = False) -> None:
        """Keep the rewards (perhaps none). ``minimize`` says that they are costs."""
        self.rewards = rewards
        self.minimize = minimize
        self.values = rewards.sample if isinstance(rewards, Part) else rewards
        """The rewards, or the sample of them."""
        self._tails: dict[tuple[str, str], TailIndex] = {}

    @cached_property
    def median(self) -> float:
        """The median; NaN without rewards."""
        return float(np.median(self.values)) if len(self.values) else math.nan

    @property
    def least(self) -> float:
        """The smallest reward, if there are any."""
        return float(self.rewards.smallest[0] if isinstance(self.rewards, Part) else self.rewards.min())

    def tail(self, side: Any, method: Any = "gpd") -> TailIndex:
        """Return the tail index on a side of the median."""
        if (side, method) not in self._tails:
            self._tails[side, method] = tail_index(self.rewards, side, method, about="median")
        return self._tails[side, method]

    @cached_property
    def about_zero(self) -> Nonpositivity:
        """The test of truncated non-positivity about 0."""
        return judge(self.values, 0.0, ALPHA, self.minimize)

    @cached_property
    def about_median(self) -> Nonpositivity:
        """The test about the median. Right-skewed rewards or left-skewed costs contradict it."""
        return judge(self.values, "median", ALPHA, self.minimize)

    @cached_property
    def negated_about_median(self) -> Nonpositivity:
        """The test of the negated values about the median. Left-skewed rewards or right-skewed costs contradict it."""
        return judge(self.values, "median", ALPHA, not self.minimize)

    @cached_property
    def symmetry(self) -> Nonpositivity:
        """The test of symmetry about the median."""
        return judge(self.values, "symmetric", ALPHA)
