"""What index policies share: the count of pulls made, and the first pulls of every arm.

A state that uses it has a field ``pulls`` from `no_pulls`: pulls made of each arm, rewarded or not, then their total and the number
of arms that have their first rewards. Counting pulls when they are made, not when rewards arrive, keeps the clock going while
rewards are late. A policy takes over `take_pull` and `expire_pull` as its hooks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Ints

__all__ = ["TAKEN", "TRIED", "expire_pull", "log_time", "no_pulls", "pulls_made", "take_pull", "untried"]

TAKEN = 0  # after the arms: pulls made in all
TRIED = 1  # arms that have their first rewards


def no_pulls(arms: int) -> Ints:
    """The ``pulls`` of a new run."""
    return np.zeros(arms + 2, dtype=np.int64)


def take_pull(p: Any, s: Any, arm: int) -> float:
    """Count the pull, so that late rewards do not stop the clock."""
    s.pulls[arm] += 1
    s.pulls[s.pulls.shape[0] - 2 + TAKEN] += 1
    return 1.0


def expire_pull(p: Any, s: Any, arm: int, mark: float) -> None:
    """A pull without reward is no longer held against its arm in a tie."""
    s.pulls[arm] -= 1


def pulls_made(p: Any, s: Any, arm: int) -> int:
    """What a tie looks at first."""
    return s.pulls[arm]


def log_time(s: Any) -> float:
    """log t, where t is the number of the pull that is about to be made."""
    return math.log(s.pulls[s.pulls.shape[0] - 2 + TAKEN] + 1.0)


@out_of_line
def untried(rewards: Callable[[Any, int], float], s: Any, least: float) -> int:
    """Among the arms with fewer than ``least`` rewards, the one pulled least (its reward may be on its way), then the lowest.

    ``rewards(s, arm)`` counts the rewards of an arm.
    """
    chosen = -1
    for arm in range(s.pulls.shape[0] - 2):
        if rewards(s, arm) < least and (chosen < 0 or s.pulls[arm] < s.pulls[chosen]):
            chosen = arm
    return chosen
