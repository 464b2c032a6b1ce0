"""The truncated mean of Robust UCB, exact, in O(1) amortised time per pull and O((log T)^2) expected memory.

Sample j of an arm is kept at time t if ``|X_j|^(1+eps) / j <= u / (2 log t)``. The right side never rises. So a sample that is kept
at the largest level L of the run (that of its horizon, or of 2^53 pulls in a live bandit) is only added to the sum, and one that is
dropped on arrival is not stored either. The others are stored in order of their keys: if u bounds the moment, fewer than ``2 L (1 +
log n)`` are expected. Until the next one is dropped, the index is linear in ``(log t)^(eps/(1+eps))``, so the arg-max is lazy
(:mod:`robandit.kernel.lazy`). The sum is a pair of doubles, so subtracting a sample gives exactly the sum without it.

With a common threshold, a sample is kept if ``|X_j|^(1+eps) <= u n / (2 log t)``. The right side rises with n and falls with t, so
dropped samples may come back and are stored, unless they are kept at the largest level with the current n. If u bounds the moment,
as many are stored. If u is far too small, nearly all are, and inserting them takes quadratic time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.blocks import two_sum
from robandit.policies._parts.records import index_state, params_of
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store
from robandit.policies.index import SLACK, IndexHooks, log_time, most_pulls, slightly_above

# Numbers of an arm: samples; the sum of the kept samples as a pair; their mean; the width over (log t)^power; the value of this
# power up to which the same samples are kept (-1: unknown); and the number of dropped samples at the start of the stretch.
COUNT, SUM, LOW, MEAN, COEFFICIENT, EVENT, DROPPED = 0, 1, 2, 3, 4, 5, 6
KEY, VALUE = 0, 1  # rows of the pool; a stretch is in descending order of key
HUGE = 1e150  # its square is finite


class Truncated(KeepsRewards, IndexHooks):
    """The hooks of `RobustUCB` for ``estimator="truncated"``."""

    @staticmethod
    def params(policy: Any) -> Any:
        order = 1.0 + policy.eps
        power = policy.eps / order
        width = 4.0 * policy.u ** (1.0 / order) * 2.0**power
        common = int(policy.common_threshold)
        return params_of(u=float(policy.u), order=order, power=power, width=width, common=common)

    @staticmethod
    def init(policy: Any, arms: int, horizon: int | None) -> Any:
        limit = math.log(most_pulls(horizon) + 2.0)
        numbers = np.zeros((arms, 7))
        numbers[:, EVENT] = math.inf
        pool, slots = empty_store(arms, 2)
        return index_state(arms, arms=numbers, limit=np.array([limit]), pool=pool, slots=slots)

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        numbers = s.arms[arm]
        numbers[COUNT] += 1.0
        n = numbers[COUNT]
        numbers[COEFFICIENT] = p.width * n**-p.power
        key = min(abs(reward), HUGE) ** p.order
        if 2.0 * key * s.limit[0] <= p.u * n:
            add_to_sum(numbers, reward)
        else:
            store(p, s, arm, key, reward)
        if p.common != 0:
            numbers[EVENT] = -1.0
        numbers[MEAN] = (numbers[SUM] + numbers[LOW]) / n

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    def level(p: Any, s: Any) -> float:
        return log_time(s) ** p.power

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return the truncated mean + 4 u^(1/(1+eps)) (2 log t / n)^power, with level = (log t)^power."""
        numbers = s.arms[arm]
        if level > numbers[EVENT]:
            refresh(p, s, arm)
        return numbers[MEAN] + numbers[COEFFICIENT] * level

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the line that the index follows until the next sample is dropped."""
        numbers = s.arms[arm]
        return slightly_above(numbers[MEAN], numbers[COEFFICIENT] * level), numbers[COEFFICIENT], numbers[EVENT]


def add_to_sum(numbers: Floats, value: float) -> None:
    """Add a sample to the sum of the kept samples. Pass the negated sample to remove it."""
    total, lost = two_sum(numbers[SUM], value)
    numbers[SUM] = total
    numbers[LOW] += lost


def bound(p: Any, numbers: Floats) -> float:
    """Return the largest value of 2 key log t for which a sample is kept."""
    return p.u * numbers[COUNT] if p.common != 0 else p.u


@out_of_line
def store(p: Any, s: Any, arm: int, key: float, reward: float) -> None:
    """Store a sample that may be dropped later, or that is dropped on arrival but may come back."""
    numbers = s.arms[arm]
    if p.common == 0:
        key /= numbers[COUNT]
        if 2.0 * key * log_time(s) > p.u:
            return
    column = append(s.slots, arm)
    first = s.slots[arm, START]
    while column > first and s.pool[KEY, column - 1] < key:
        s.pool[KEY, column] = s.pool[KEY, column - 1]
        s.pool[VALUE, column] = s.pool[VALUE, column - 1]
        column -= 1
    s.pool[KEY, column] = key
    s.pool[VALUE, column] = reward
    if column - first < numbers[DROPPED]:
        numbers[DROPPED] += 1.0
    else:
        add_to_sum(numbers, reward)
        numbers[EVENT] = min(numbers[EVENT], last(p, numbers, key))


def last(p: Any, numbers: Floats, key: float) -> float:
    """Return the largest (log t)^power at which a sample with this key is kept."""
    return (1.0 - SLACK) * (bound(p, numbers) / (2.0 * key)) ** p.power


@out_of_line
def refresh(p: Any, s: Any, arm: int) -> None:
    """Drop and restore stored samples for the current threshold, and compute when the next one is dropped."""
    numbers = s.arms[arm]
    first = s.slots[arm, START]
    end = first + s.slots[arm, USED]
    column = first + int(numbers[DROPPED])
    twice = 2.0 * log_time(s)
    most = bound(p, numbers)
    while column < end and s.pool[KEY, column] * twice > most:
        add_to_sum(numbers, -s.pool[VALUE, column])
        column += 1
    while column > first and s.pool[KEY, column - 1] * twice <= most:
        column -= 1
        add_to_sum(numbers, s.pool[VALUE, column])
    numbers[DROPPED] = column - first
    numbers[MEAN] = (numbers[SUM] + numbers[LOW]) / numbers[COUNT]
    numbers[EVENT] = math.inf
    if column < end:
        numbers[EVENT] = last(p, numbers, s.pool[KEY, column])
