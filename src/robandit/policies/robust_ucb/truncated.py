"""The truncated mean of Robust UCB, exact, in O(1) amortised time per pull and O((log T)^2) expected memory.

Sample j of an arm is kept at time t if ``|X_j|^(1+eps) / j <= u / (2 log t)``. The right side never rises, so each sample has a
last level log t at which it is kept. Three properties make it fast and exact:

- Few samples are stored. A sample that is kept at the largest level L of the run (that of its horizon, or of 2^53 pulls in a live
  bandit) is only added to the sum. A sample that is dropped on arrival is not stored either. The others are stored in order of
  their keys. If u bounds the moment, their expected number is below ``2 L (1 + log n)``.
- The index is linear in ``(log t)^(eps/(1+eps))`` until the next stored sample is dropped, so the arg-max is lazy
  (:mod:`robandit.kernel.lazy`).
- The sum of the kept samples is a pair of doubles, so subtracting a sample gives exactly the sum without that sample.

With a common threshold, a sample is kept if ``|X_j|^(1+eps) <= u n / (2 log t)``. The right side rises with n and falls with t, so
dropped samples may come back. Hence they are stored too. A sample is not stored if it is kept at the largest level with the current
n. If u bounds the moment, the number of stored samples is the same. If u is far too small, nearly all samples are stored, and
inserting them takes quadratic time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import lazy_state
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.blocks import two_sum
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store
from robandit.policies.index import SLACK, IndexHooks, log_time, most_pulls, no_pulls, slightly_above

# Numbers of an arm: samples; the sum of the kept samples as a pair; their mean; the width over (log t)^power; the value of this
# power up to which the same samples are kept (-1: unknown); and the number of dropped samples at the start of the stretch.
COUNT, SUM, LOW, MEAN, COEFFICIENT, EVENT, DROPPED = 0, 1, 2, 3, 4, 5, 6
KEY, VALUE = 0, 1  # rows of the pool; a stretch is in descending order of key
HUGE = 1e150  # its square is finite


class Params(NamedTuple):
    """u, 1 + eps, power = eps / (1 + eps), 4 u^(1/(1+eps)) 2^power, and 1 if the threshold is common."""

    u: float
    order: float
    power: float
    width: float
    common: int


class State(NamedTuple):
    """The numbers above, the largest level of the run, the stored samples, the pulls made, and the lazy arg-max."""

    arms: Floats  # (arms, 7)
    limit: Floats
    pool: Floats
    slots: Ints
    pulls: Ints
    lines: Floats
    lead: Ints


class Truncated(KeepsRewards, IndexHooks):
    """The hooks of `RobustUCB` for ``estimator="truncated"``."""

    @staticmethod
    def params(policy: Any) -> Params:
        """Return the numbers of the formulas."""
        order = 1.0 + policy.eps
        power = policy.eps / order
        width = 4.0 * policy.u ** (1.0 / order) * 2.0**power
        return Params(float(policy.u), order, power, width, int(policy.common_threshold))

    @staticmethod
    def init(policy: Any, arms: int, horizon: int | None) -> State:
        """Return a state without rewards."""
        limit = math.log(most_pulls(horizon) + 2.0)
        numbers = np.zeros((arms, 7))
        numbers[:, EVENT] = math.inf
        return State(numbers, np.array([limit]), *empty_store(arms, 2), no_pulls(arms), *lazy_state(arms))

    @staticmethod
    def add(p: Params, s: State, arm: int, reward: float) -> None:
        """Add the reward to the arm's sum, and store it if it may be dropped later."""
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
    def mean(p: Params, s: State, arm: int) -> float:
        """Return the truncated mean of the last computed index."""
        return s.arms[arm, MEAN]

    @staticmethod
    def level(p: Params, s: State) -> float:
        """Return (log t)^power."""
        return log_time(s) ** p.power

    @staticmethod
    def index(p: Params, s: State, arm: int, level: float) -> float:
        """Return the truncated mean + 4 u^(1/(1+eps)) (2 log t / n)^power, with level = (log t)^power."""
        numbers = s.arms[arm]
        if level > numbers[EVENT]:
            refresh(p, s, arm)
        return numbers[MEAN] + numbers[COEFFICIENT] * level

    @staticmethod
    def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
        """Return the line that the index follows until the next sample is dropped."""
        numbers = s.arms[arm]
        return slightly_above(numbers[MEAN], numbers[COEFFICIENT] * level), numbers[COEFFICIENT], numbers[EVENT]


def add_to_sum(numbers: Floats, value: float) -> None:
    """Add a sample to the sum of the kept samples. Pass the negated sample to remove it."""
    total, lost = two_sum(numbers[SUM], value)
    numbers[SUM] = total
    numbers[LOW] += lost


def bound(p: Params, numbers: Floats) -> float:
    """Return the largest value of 2 key log t for which a sample is kept."""
    return p.u * numbers[COUNT] if p.common != 0 else p.u


@out_of_line
def store(p: Params, s: State, arm: int, key: float, reward: float) -> None:
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


def last(p: Params, numbers: Floats, key: float) -> float:
    """Return the largest (log t)^power at which a sample with this key is kept."""
    return (1.0 - SLACK) * (bound(p, numbers) / (2.0 * key)) ** p.power


@out_of_line
def refresh(p: Params, s: State, arm: int) -> None:
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
