"""Rewards of an arm set aside until a level reaches their size: a heap in the arm's stretch of a `reward_store`.

The pool has one row, and the smallest in absolute value is at the front of each stretch.
"""

from __future__ import annotations

import math

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.reward_store import START, USED, append

__all__ = ["pop_smallest", "push", "smallest"]


def smallest(pool: Floats, slots: Ints, arm: int) -> float:
    """The smallest size of a reward set aside; infinite if there is none."""
    return abs(pool[0, slots[arm, START]]) if slots[arm, USED] > 0 else math.inf


@out_of_line
def push(pool: Floats, slots: Ints, arm: int, value: float) -> None:
    """Set a reward aside."""
    start = slots[arm, START]
    here = append(slots, arm) - start
    while here > 0:
        above = (here - 1) // 2
        if abs(pool[0, start + above]) <= abs(value):
            break
        pool[0, start + here] = pool[0, start + above]
        here = above
    pool[0, start + here] = value


@out_of_line
def pop_smallest(pool: Floats, slots: Ints, arm: int) -> float:
    """Take the smallest back; there must be one."""
    start = slots[arm, START]
    found = pool[0, start]
    slots[arm, USED] -= 1
    left = slots[arm, USED]
    value = pool[0, start + left]
    here = 0
    while 2 * here + 1 < left:
        below = 2 * here + 1
        if below + 1 < left and abs(pool[0, start + below + 1]) < abs(pool[0, start + below]):
            below += 1
        if abs(pool[0, start + below]) >= abs(value):
            break
        pool[0, start + here] = pool[0, start + below]
        here = below
    pool[0, start + here] = value
    return found
