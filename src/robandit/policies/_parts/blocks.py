"""Exact medians of block means at low cost.

A state that uses them has the fields ``pool`` and ``slots`` from `empty_sums`: a store
(:mod:`robandit.policies._parts.reward_store`) in which every reward is a row of the pool. Its first two numbers, HIGH and LOW, are
the sum of the arm's rewards up to this one and the rounding error of this sum. So the sum of any block of consecutive rewards is a
difference of two rows, whatever the others contain. The field ``scratch`` has room for twice the largest number of blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store, enlarged

HIGH, LOW = 0, 1  # columns of the pool
SPLIT = 2.0**27 + 1.0  # splits a double into two halves


def empty_sums(arms: int, horizon: int | None, columns: int = 2) -> tuple[Floats, Ints]:
    """Return ``pool`` and ``slots`` of a new run, with ``columns`` numbers per reward. A horizon makes room for equal shares."""
    room = 32 if horizon is None else max(32, min(2 * horizon // arms, horizon, 2**16))
    _, slots = empty_store(arms, 0, room)
    return np.zeros((arms * room, columns)), slots


def enlarged_sums(pool: Floats, slots: Ints) -> tuple[Floats, Ints]:
    """Return pool and slots with the same numbers and more room for the arms that need it."""
    columns = pool.shape[1]
    rows, slots = enlarged(pool.view(f"V{8 * columns}").reshape(1, -1), slots)
    return rows.view(np.float64).reshape(-1, columns), slots


class KeepsSums(KeepsRewards):
    """The hooks of a policy whose state has a store of sums."""

    enlarged = staticmethod(enlarged_sums)
    grows: ClassVar[Mapping[str, int] | None] = {"pool": 0}


def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum a + b and its exact rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: float, b: float) -> tuple[float, float]:
    """Return the rounded product a b and its exact rounding error (Dekker)."""
    product = a * b
    part = SPLIT * a
    a_high = part - (part - a)
    a_low = a - a_high
    part = SPLIT * b
    b_high = part - (part - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def add_reward(pool: Floats, slots: Ints, arm: int, reward: float) -> int:
    """Store the arm's sum including this reward, and return the arm's number of rewards."""
    row = append(slots, arm)
    if slots[arm, USED] == 1:
        pool[row, HIGH] = reward
        pool[row, LOW] = 0.0
    else:
        total, lost = two_sum(pool[row - 1, HIGH], reward)
        pool[row, HIGH] = total
        pool[row, LOW] = pool[row - 1, LOW] + lost
    return slots[arm, USED]


@out_of_line
def block_median(
    pool: Floats, slots: Ints, arm: int, blocks: int, size: int, scratch: Floats, guess: float, reach: float
) -> tuple[float, float]:
    """Return the median of the means of the arm's first ``blocks`` blocks of ``size`` consecutive rewards, and the next reach.

    ``guess`` is the arm's last estimate. Means within ``reach`` of the guess are collected on the way. The median is nearly always
    among them, and then only these few are partitioned. ``scratch`` has room for twice the blocks.
    """
    row = slots[arm, START] - 1
    low_end = guess - reach
    high_end = guess + reach
    high = low = 0.0
    below = 0
    near = blocks
    for block in range(blocks):
        row += size
        mean = ((pool[row, HIGH] - high) + (pool[row, LOW] - low)) / size
        high = pool[row, HIGH]
        low = pool[row, LOW]
        scratch[block] = mean
        scratch[near] = mean  # overwritten by the next mean unless this one is near
        near += 1 if low_end <= mean <= high_end else 0
        below += 1 if mean < low_end else 0
    upper = blocks // 2
    lower = (blocks - 1) // 2
    if below <= lower and upper < below + near - blocks:
        result = middle(scratch, blocks, near, blocks + lower - below, blocks + upper - below)
        return result, 0.75 * reach if 5 * (near - blocks) > blocks else reach
    result = middle(scratch, 0, blocks, lower, upper)
    beyond = upper + blocks // 10
    place(scratch, upper, blocks - 1, beyond)
    return result, scratch[beyond] - result


@out_of_line
def median(values: Floats, count: int) -> float:
    """Return the median of the first ``count`` values (the mean of the middle two if the count is even). Reorders the values."""
    return middle(values, 0, count, (count - 1) // 2, count // 2)


@out_of_line
def middle(values: Floats, first: int, end: int, lower: int, upper: int) -> float:
    """Return the mean of the values that sorting values[first:end] would put at ``lower`` and ``upper`` (equal or one apart)."""
    place(values, first, end - 1, upper)
    above = values[upper]
    if lower == upper:
        return above
    below = values[first]
    for k in range(first + 1, upper):
        below = max(below, values[k])
    return 0.5 * below + 0.5 * above


@out_of_line
def place(values: Floats, left: int, right: int, rank: int) -> None:
    """Reorder values[left] to values[right] so that position ``rank`` has the same value as after sorting (Hoare)."""
    while left < right:
        a, b, c = values[left], values[(left + right) // 2], values[right]
        pivot = max(min(a, b), min(max(a, b), c))  # their median
        i = left
        j = right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            right = j
        elif rank >= i:
            left = i
        else:
            return
