"""The median of means of Robust UCB, exact, in O(1) amortised time per pull.

With ``k = floor(min(1 + 16 log t, n / 2))`` blocks of ``N = floor(n / k)`` rewards the estimate changes only when k or N does. N
grows every k rewards, and k at most 16 log T times, so the O(k) work of a new estimate is rare. Between those events the index
is a straight line in ``(2 + 32 log t)^(eps/(1+eps))``, so the arg-max is lazy (:mod:`robandit.kernel.lazy`). The sums of blocks
lose no digits: :mod:`robandit.policies._parts.blocks`. Memory: two numbers for every reward.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.blocks import add_reward, block_median, empty_sums, enlarged_sums
from robandit.policies._parts.reward_store import store_full
from robandit.policies.index import TRIED, expire_pull, log_time, no_pulls, pulls_made, take_pull, untried

__all__ = ["MedianOfMeans"]

# Numbers of an arm.
COUNT = 0
MEAN = 1
COEFFICIENT = 2  # width = COEFFICIENT * (2 + 32 log t)^power
EVENT = 3  # the value of (2 + 32 log t)^power from which k may differ; -1: nothing is known
NEXT = 4  # the number of rewards from which k or N differs
BLOCKS = 5  # k
SIZE = 6  # N
REACH = 7  # how far from MEAN to look for the next
ARM_FLOATS = 8

MOST_BLOCKS = 600  # 1 + 16 log(2^53) = 588.8
SLACK = 1e-12  # far above the rounding of an index


class Params(NamedTuple):
    """eps / (1 + eps), and (12 v)^(1/(1+eps))."""

    power: float
    width: float


class State(NamedTuple):
    """See the names above."""

    arms: Floats  # (arms, ARM_FLOATS)
    scratch: Floats
    pool: Floats
    slots: Ints
    pulls: Ints
    lines: Floats
    lead: Ints


class MedianOfMeans:
    """The hooks."""

    @staticmethod
    def params(policy: Any) -> Params:
        """Numbers that the formulas use."""
        order = 1.0 + policy.eps
        return Params(policy.eps / order, (12.0 * policy.v) ** (1.0 / order))

    @staticmethod
    def init(policy: Any, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        store = empty_sums(arms, horizon)
        return State(np.zeros((arms, ARM_FLOATS)), np.zeros(2 * MOST_BLOCKS), *store, no_pulls(arms), *lazy_state(arms))

    @staticmethod
    def grow(state: State) -> State:
        """More room for sums."""
        pool, slots = enlarged_sums(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, level_now(p, s))

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Store the arm's new sum."""
        n = add_reward(s.pool, s.slots, arm, reward)
        if n == 1:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        s.arms[arm, COUNT] = n
        s.arms[arm, COEFFICIENT] = p.width * s.arms[arm, COUNT] ** -p.power
        touched(s.lines, s.lead, arm)

    full = staticmethod(store_full)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Median of means and index."""
        out[0] = math.nan
        out[1] = math.inf
        if s.arms[arm, COUNT] > 0.0:
            out[1] = index(p, s, arm, level_now(p, s))
            out[0] = s.arms[arm, MEAN]


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def level_now(p: Params, s: State) -> float:
    """What the width grows with."""
    return (2.0 + 32.0 * log_time(s)) ** p.power


@out_of_line
def refresh(p: Params, s: State, arm: int) -> None:
    """Bring k, N and the estimate up to date, and find when they next differ."""
    numbers = s.arms[arm]
    n = int(numbers[COUNT])
    half = max(n // 2, 1)
    blocks = min(int(1.0 + 16.0 * log_time(s)), half)
    size = n // blocks
    if blocks != numbers[BLOCKS] or size != numbers[SIZE]:
        numbers[MEAN], numbers[REACH] = block_median(
            s.pool, s.slots, arm, blocks, size, s.scratch, numbers[MEAN], numbers[REACH]
        )
        numbers[BLOCKS] = blocks
        numbers[SIZE] = size
    numbers[NEXT] = (size + 1) * blocks
    numbers[EVENT] = math.inf
    if blocks == half:  # more blocks only with more rewards
        numbers[NEXT] = min((size + 1) * blocks, 2 * blocks + 2)
    else:  # at 1 + 16 log t = k + 1
        numbers[EVENT] = (1.0 - SLACK) * (2.0 + 2.0 * blocks) ** p.power


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Median of means + (12 v)^(1/(1+eps)) ((2 + 32 log t) / n)^power, with level = (2 + 32 log t)^power."""
    numbers = s.arms[arm]
    if numbers[COUNT] >= numbers[NEXT] or level >= numbers[EVENT]:
        refresh(p, s, arm)
    return numbers[MEAN] + numbers[COEFFICIENT] * level


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """The index is this line until the number of blocks changes."""
    numbers = s.arms[arm]
    width = numbers[COEFFICIENT] * level
    slack = SLACK * (abs(numbers[MEAN]) + width)
    return numbers[MEAN] + width + slack, numbers[COEFFICIENT], numbers[EVENT]
