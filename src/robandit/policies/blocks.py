"""Medians of block means, for the policies that use them: exact and cheap.

A state that uses it keeps, for every reward, the sum of the arm's rewards up to it in two rows of its store
(:mod:`robandit.policies.store`), HIGH and LOW: a sum and what rounding took from it. So the sum of any block of consecutive rewards
is a difference of two columns, and an outlier in one block leaves no trace in the others: what it would cancel in HIGH is
in LOW. A field ``scratch`` has room for the means of the blocks.
"""

from __future__ import annotations

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints
from robandit.policies.store import START, USED, append

__all__ = ["HIGH", "LOW", "add_reward", "block_means", "first_room", "median", "two_sum"]

HIGH, LOW = 0, 1  # rows of the pool


def first_room(arms: int, horizon: int | None) -> int:
    """Room for each arm's rewards at the start: enough for arms that are pulled alike, so that nothing is moved. It is not
    touched before it is used, so it takes no memory until then.
    """
    return 32 if horizon is None else max(32, min(2 * horizon // arms, horizon, 2**16))


def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as a rounded sum and the exact error of its rounding (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def add_reward(pool: Floats, slots: Ints, arm: int, reward: float) -> int:
    """Store the arm's sum with this reward; returns the number of its rewards."""
    column = append(slots, arm)
    if slots[arm, USED] == 1:
        pool[HIGH, column] = reward
        pool[LOW, column] = 0.0
    else:
        total, lost = two_sum(pool[HIGH, column - 1], reward)
        pool[HIGH, column] = total
        pool[LOW, column] = pool[LOW, column - 1] + lost
    return slots[arm, USED]


def block_means(pool: Floats, slots: Ints, arm: int, blocks: int, size: int, scratch: Floats) -> None:
    """Fill ``scratch`` with the means of the arm's first ``blocks`` blocks of ``size`` consecutive rewards."""
    column = slots[arm, START] - 1
    high = 0.0
    low = 0.0
    for block in range(blocks):
        column += size
        scratch[block] = ((pool[HIGH, column] - high) + (pool[LOW, column] - low)) / size
        high = pool[HIGH, column]
        low = pool[LOW, column]


@out_of_line
def median(values: Floats, count: int) -> float:
    """Median of the first ``count`` values, which are reordered; the mean of the two middle ones for an even count."""
    middle = count // 2
    left = 0
    right = count - 1
    while left < right:
        pivot = median_of_three(values[left], values[(left + right) // 2], values[right])
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
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            break
    upper = values[middle]
    if count % 2 == 1:
        return upper
    lower = values[0]
    for k in range(1, middle):
        lower = max(lower, values[k])
    return 0.5 * lower + 0.5 * upper


def median_of_three(a: float, b: float, c: float) -> float:
    """The middle one."""
    return max(min(a, b), min(max(a, b), c))
