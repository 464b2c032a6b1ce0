"""The median of means of Robust UCB, exact, in O(1) amortised time per pull.

With ``k = floor(min(1 + 16 log t, n / 2))`` blocks of ``N = floor(n / k)`` rewards the estimate changes only when k or N does. N
grows every k rewards, and k at most 16 log T times, so the O(k) work of a new estimate is rare. In between the index is linear in
``(2 + 32 log t)^(eps/(1+eps))``, so the arg-max is lazy (:mod:`robandit.kernel.lazy`). Two numbers are stored per reward.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import lazy_state
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.blocks import KeepsSums, add_reward, block_median, empty_sums
from robandit.policies.index import SLACK, IndexHooks, log_time, no_pulls, slightly_above

# Numbers of an arm: rewards; estimate; the width over (2 + 32 log t)^power; the value of this power, and the number of rewards, at
# which k or N may change; k; N; and the distance from the estimate within which to search the next one.
COUNT, MEAN, COEFFICIENT, EVENT, NEXT, BLOCKS, SIZE, REACH = 0, 1, 2, 3, 4, 5, 6, 7
MOST_BLOCKS = 600  # 1 + 16 log(2^53) = 588.8


class Params(NamedTuple):
    """eps / (1 + eps), and (12 v)^(1/(1+eps))."""

    power: float
    width: float


class State(NamedTuple):
    """The numbers above, the sums, the pulls made, and the lazy arg-max."""

    arms: Floats  # (arms, 8)
    scratch: Floats
    pool: Floats
    slots: Ints
    pulls: Ints
    lines: Floats
    lead: Ints


class MedianOfMeans(KeepsSums, IndexHooks):
    """The hooks of `RobustUCB` for ``estimator="median_of_means"``."""

    @staticmethod
    def params(policy: Any) -> Params:
        """Return the numbers of the formulas."""
        order = 1.0 + policy.eps
        return Params(policy.eps / order, (12.0 * policy.v) ** (1.0 / order))

    @staticmethod
    def init(policy: Any, arms: int, horizon: int | None) -> State:
        """Return a state without rewards."""
        store = empty_sums(arms, horizon)
        return State(np.zeros((arms, 8)), np.zeros(2 * MOST_BLOCKS), *store, no_pulls(arms), *lazy_state(arms))

    @staticmethod
    def add(p: Params, s: State, arm: int, reward: float) -> None:
        """Store the arm's new sum."""
        s.arms[arm, COUNT] = add_reward(s.pool, s.slots, arm, reward)
        s.arms[arm, COEFFICIENT] = p.width * s.arms[arm, COUNT] ** -p.power

    @staticmethod
    def mean(p: Params, s: State, arm: int) -> float:
        """Return the median of means of the last computed index."""
        return s.arms[arm, MEAN]

    @staticmethod
    def level(p: Params, s: State) -> float:
        """Return (2 + 32 log t)^power."""
        return (2.0 + 32.0 * log_time(s)) ** p.power

    @staticmethod
    def index(p: Params, s: State, arm: int, level: float) -> float:
        """Return the median of means + (12 v)^(1/(1+eps)) ((2 + 32 log t) / n)^power, with level = (2 + 32 log t)^power."""
        numbers = s.arms[arm]
        if numbers[COUNT] >= numbers[NEXT] or level >= numbers[EVENT]:
            refresh(p, s, arm)
        return numbers[MEAN] + numbers[COEFFICIENT] * level

    @staticmethod
    def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
        """Return the line that the index follows until the number of blocks changes."""
        numbers = s.arms[arm]
        return slightly_above(numbers[MEAN], numbers[COEFFICIENT] * level), numbers[COEFFICIENT], numbers[EVENT]


@out_of_line
def refresh(p: Params, s: State, arm: int) -> None:
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
