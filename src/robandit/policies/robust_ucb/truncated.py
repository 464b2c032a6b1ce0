"""The truncated mean of Robust UCB, exact, in O(1) amortised time per pull and O((log T)^2) expected memory.

Sample j of an arm is kept at time t if ``|X_j|^(1+eps) / j <= u / (2 log t)``. The right side only falls, so each sample has a last
level log t at which it is kept. What makes it fast:

**Few samples are at risk.** A sample that is kept at the largest level that the run can reach (that of its horizon, or of 2^53
pulls in a live bandit) goes into the sum and is forgotten. One that is not kept on arrival is forgotten at once. Only the others
are stored, in order of their keys: if u bounds the moment, their expected number is below ``2 L (1 + log n)``, L the largest level.

**The index is a straight line** in ``(log t)^(eps/(1+eps))`` until the next stored sample is dropped, so the arg-max is lazy
(:mod:`robandit.kernel.lazy`).

**No digits are lost.** The sum of the kept samples is a pair of doubles, so that taking a sample out of it leaves what would be
there without that sample.

With a common threshold, ``|X_j|^(1+eps) <= u n / (2 log t)``, which rises with n and falls with t, dropped samples come back. Then
those are stored too, and a sample is forgotten if it is kept at the largest level with the present n. The number stored is the same
if u bounds the moment; if u is far too small nearly all samples are stored, and sorting them in is quadratic in their number.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.blocks import two_sum
from robandit.policies._parts.reward_store import START, USED, append, empty_store, enlarged, store_full
from robandit.policies.index import TRIED, expire_pull, log_time, no_pulls, pulls_made, take_pull, untried

__all__ = ["Truncated"]

# Numbers of an arm.
COUNT = 0
SUM = 1  # of the kept samples; SUM + LOW is the pair
LOW = 2
MEAN = 3
COEFFICIENT = 4  # width = COEFFICIENT * (log t)^power
EVENT = 5  # the value of (log t)^power up to which the same samples are kept; -1: to be found
DROPPED = 6  # stored samples that are not kept: the first of the stretch
ARM_FLOATS = 7

# Rows of the pool; a stretch is in descending order of key.
KEY, VALUE = 0, 1
SLACK = 1e-12  # far above the rounding of an index
FOR_EVER = 2**53
HUGE = 1e150  # its square is finite


class Params(NamedTuple):
    """``u``; 1 + eps; eps / (1 + eps); 4 u^(1/(1+eps)) 2^power; whether the threshold is common."""

    u: float
    order: float
    power: float
    width: float
    common: int


class State(NamedTuple):
    """See the names above; ``limit`` is the largest level that the run can reach."""

    arms: Floats  # (arms, ARM_FLOATS)
    limit: Floats
    pool: Floats
    slots: Ints
    pulls: Ints
    lines: Floats
    lead: Ints


class Truncated:
    """The hooks."""

    @staticmethod
    def params(policy: Any) -> Params:
        """Numbers that the formulas use."""
        order = 1.0 + policy.eps
        power = policy.eps / order
        width = 4.0 * policy.u ** (1.0 / order) * 2.0**power
        return Params(float(policy.u), order, power, width, int(policy.common_threshold))

    @staticmethod
    def init(policy: Any, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        limit = math.log((FOR_EVER if horizon is None else horizon) + 2.0)
        numbers = np.zeros((arms, ARM_FLOATS))
        numbers[:, EVENT] = math.inf
        return State(numbers, np.array([limit]), *empty_store(arms, 2), no_pulls(arms), *lazy_state(arms))

    @staticmethod
    def grow(state: State) -> State:
        """More room for the samples at risk."""
        pool, slots = enlarged(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, log_time(s) ** p.power)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Add the reward to the arm's sum, and store it if it may have to be taken out again."""
        numbers = s.arms[arm]
        numbers[COUNT] += 1.0
        n = numbers[COUNT]
        if n == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        numbers[COEFFICIENT] = p.width * n**-p.power
        key = min(abs(reward), HUGE) ** p.order
        if 2.0 * key * s.limit[0] <= p.u * n:
            add(numbers, reward)
        else:
            store(p, s, arm, key, reward)
        if p.common != 0:
            numbers[EVENT] = -1.0
        numbers[MEAN] = (numbers[SUM] + numbers[LOW]) / n
        touched(s.lines, s.lead, arm)

    full = staticmethod(store_full)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Truncated mean and index."""
        out[0] = math.nan
        out[1] = math.inf
        if s.arms[arm, COUNT] > 0.0:
            out[1] = index(p, s, arm, log_time(s) ** p.power)
            out[0] = s.arms[arm, MEAN]


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def add(numbers: Floats, value: float) -> None:
    """Put a sample into the sum of the kept, or, with the other sign, take it out."""
    total, lost = two_sum(numbers[SUM], value)
    numbers[SUM] = total
    numbers[LOW] += lost


def bound(p: Params, numbers: Floats) -> float:
    """A stored sample is kept if 2 key log t is at most this."""
    return p.u * numbers[COUNT] if p.common != 0 else p.u


@out_of_line
def store(p: Params, s: State, arm: int, key: float, reward: float) -> None:
    """A sample that is at risk, or dropped on arrival: in the latter case it is forgotten if it cannot come back."""
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
        add(numbers, reward)
        numbers[EVENT] = min(numbers[EVENT], last(p, numbers, key))


def last(p: Params, numbers: Floats, key: float) -> float:
    """The largest (log t)^power at which a sample with this key is kept."""
    return (1.0 - SLACK) * (bound(p, numbers) / (2.0 * key)) ** p.power


@out_of_line
def refresh(p: Params, s: State, arm: int) -> None:
    """Drop the stored samples that are no longer kept, take back those that are again, and find when the next one goes."""
    numbers = s.arms[arm]
    first = s.slots[arm, START]
    end = first + s.slots[arm, USED]
    column = first + int(numbers[DROPPED])
    twice = 2.0 * log_time(s)
    most = bound(p, numbers)
    while column < end and s.pool[KEY, column] * twice > most:
        add(numbers, -s.pool[VALUE, column])
        column += 1
    while column > first and s.pool[KEY, column - 1] * twice <= most:
        column -= 1
        add(numbers, s.pool[VALUE, column])
    numbers[DROPPED] = column - first
    numbers[MEAN] = (numbers[SUM] + numbers[LOW]) / numbers[COUNT]
    numbers[EVENT] = math.inf
    if column < end:
        numbers[EVENT] = last(p, numbers, s.pool[KEY, column])


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Truncated mean + 4 u^(1/(1+eps)) (2 log t / n)^power, with level = (log t)^power."""
    numbers = s.arms[arm]
    if level > numbers[EVENT]:
        refresh(p, s, arm)
    return numbers[MEAN] + numbers[COEFFICIENT] * level


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """The index is this line until the next sample is dropped."""
    numbers = s.arms[arm]
    width = numbers[COEFFICIENT] * level
    slack = SLACK * (abs(numbers[MEAN]) + width)
    return numbers[MEAN] + width + slack, numbers[COEFFICIENT], numbers[EVENT]
