"""The median of means of Robust UCB, exact, in O(1) amortised time per pull.

With ``k = floor(min(1 + 16 log t, n / 2))`` blocks of ``N = floor(n / k)`` rewards the estimate changes only when k or N does,
which is rare. In between the index is linear in ``(2 + 32 log t)^(eps/(1+eps))``, so the arg-max is lazy
(:mod:`robandit.kernel.lazy`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.policies._parts.blocks import KeepsSums, add_reward, block_median, empty_sums
from robandit.policies._parts.records import index_state, params_of
from robandit.policies.index import SLACK, IndexHooks, log_time, slightly_above

# Numbers of an arm: rewards; estimate; the width over (2 + 32 log t)^power; the value of this power, and the number of rewards, at
# which k or N may change; k; N; and the distance from the estimate within which to search the next one.
COUNT, MEAN, COEFFICIENT, EVENT, NEXT, BLOCKS, SIZE, REACH = 0, 1, 2, 3, 4, 5, 6, 7
MOST_BLOCKS = 600  # 1 + 16 log(2^53) = 588.8


class MedianOfMeans(KeepsSums, IndexHooks):
    """The hooks of `RobustUCB` for ``estimator="median_of_means"``."""

    @staticmethod
    def params(policy: Any) -> Any:
        order = 1.0 + policy.eps
        return params_of(power=policy.eps / order, width=(12.0 * policy.v) ** (1.0 / order))

    @staticmethod
    def init(policy: Any, arms: int, horizon: int | None) -> Any:
        pool, slots = empty_sums(arms, horizon)
        return index_state(arms, arms=np.zeros((arms, 8)), scratch=np.zeros(2 * MOST_BLOCKS), pool=pool, slots=slots)

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        s.arms[arm, COUNT] = add_reward(s.pool, s.slots, arm, reward)
        s.arms[arm, COEFFICIENT] = p.width * s.arms[arm, COUNT] ** -p.power

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    def level(p: Any, s: Any) -> float:
        return (2.0 + 32.0 * log_time(s)) ** p.power

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return the median of means + (12 v)^(1/(1+eps)) ((2 + 32 log t) / n)^power, with level = (2 + 32 log t)^power."""
        numbers = s.arms[arm]
        if numbers[COUNT] >= numbers[NEXT] or level >= numbers[EVENT]:
            refresh(p, s, arm)
        return numbers[MEAN] + numbers[COEFFICIENT] * level

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the line that the index follows until the number of blocks changes."""
        numbers = s.arms[arm]
        return slightly_above(numbers[MEAN], numbers[COEFFICIENT] * level), numbers[COEFFICIENT], numbers[EVENT]


@out_of_line
def refresh(p: Any, s: Any, arm: int) -> None:
    """Update k, N and the estimate, and compute when they next change."""
    own = s.arms[arm]
    n = int(own[COUNT])
    half = max(n // 2, 1)
    blocks = min(int(1.0 + 16.0 * log_time(s)), half)
    size = n // blocks
    if blocks != own[BLOCKS] or size != own[SIZE]:
        own[MEAN], own[REACH] = block_median(s.pool, s.slots, arm, blocks, size, s.scratch, own[MEAN], own[REACH])
        own[BLOCKS] = blocks
        own[SIZE] = size
    own[NEXT] = (size + 1) * blocks
    own[EVENT] = math.inf
    if blocks == half:  # k grows with n only
        own[NEXT] = min((size + 1) * blocks, 2 * blocks + 2)
    else:  # k changes at 1 + 16 log t = k + 1
        own[EVENT] = (1.0 - SLACK) * (2.0 + 2.0 * blocks) ** p.power
