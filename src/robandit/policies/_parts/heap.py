"""A min-heap of rewards that wait until a rising level reaches their absolute value, in an arm's stretch of a `reward_store`."""

from __future__ import annotations

import math

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.reward_store import START, USED, append


def smallest(pool: Floats, slots: Ints, arm: int) -> float:
    """Return the smallest absolute value in the heap, or infinity if the heap is empty."""
    return abs(pool[0, slots[arm, START]]) if slots[arm, USED] > 0 else math.inf


@out_of_line
def push(pool: Floats, slots: Ints, arm: int, value: float) -> None:
    """Put a reward into the heap."""
    start = slots[arm, START]
    node = append(slots, arm) - start
    while node > 0:
        parent = (node - 1) // 2
        if abs(pool[0, start + parent]) <= abs(value):
            break
        pool[0, start + node] = pool[0, start + parent]
        node = parent
    pool[0, start + node] = value


@out_of_line
def pop_smallest(pool: Floats, slots: Ints, arm: int) -> float:
    """Remove and return the reward with the smallest absolute value. The heap must not be empty."""
    start = slots[arm, START]
    popped = pool[0, start]
    slots[arm, USED] -= 1
    count = slots[arm, USED]
    value = pool[0, start + count]
    node = 0
    while 2 * node + 1 < count:
        child = 2 * node + 1
        if child + 1 < count and abs(pool[0, start + child + 1]) < abs(pool[0, start + child]):
            child += 1
        if abs(pool[0, start + child]) >= abs(value):
            break
        pool[0, start + node] = pool[0, start + child]
        node = child
    pool[0, start + node] = value
    return popped
