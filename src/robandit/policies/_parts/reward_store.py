"""Numbers kept for every reward of an arm, for the algorithms that need all of them.

A state that uses it has the fields ``pool`` and ``slots`` from `empty_store`. The pool is one array for all arms, so that memory is
proportional to the rewards received and not to arms times the rewards of the busiest. Each arm has a stretch of columns, in
order of arrival; when one is used up, it and those that nearly are get twice the room by `enlarged`, outside compiled code: a
policy takes `store_full` as its ``full`` hook and calls `enlarged` in ``grow``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robandit.kernel.types import Floats, Ints

__all__ = ["START", "USED", "append", "empty_store", "enlarged", "store_full"]

# Columns of ``slots``, a row per arm; the last row holds in column FULL whether some arm has no room left.
START, USED, ROOM = 0, 1, 2
FULL = 0


def empty_store(arms: int, rows: int, room: int = 32) -> tuple[Floats, Ints]:
    """``pool`` and ``slots`` of a new run, with ``rows`` numbers for each reward."""
    slots = np.zeros((arms + 1, 3), dtype=np.int64)
    slots[:arms, START] = room * np.arange(arms)
    slots[:arms, ROOM] = room
    return np.zeros((rows, arms * room)), slots


def append(slots: Ints, arm: int) -> int:
    """The column for the arm's next reward, which the caller fills in."""
    column = slots[arm, START] + slots[arm, USED]
    slots[arm, USED] += 1
    if slots[arm, USED] == slots[arm, ROOM]:
        slots[slots.shape[0] - 1, FULL] = 1
    return column


def store_full(p: Any, s: Any) -> bool:
    """Some arm has no room for another reward."""
    return s.slots[s.slots.shape[0] - 1, FULL] != 0


def enlarged(pool: Floats, slots: Ints) -> tuple[Floats, Ints]:
    """The same numbers, with twice the room for every arm that has used over three quarters of its own."""
    slots = slots.copy()
    arms = len(slots) - 1
    old = slots[:arms, START].copy()
    # Arms that are nearly full too: where all are pulled alike, that is one move in place of one for every arm.
    nearly = slots[:arms, USED] > 0.75 * slots[:arms, ROOM]
    slots[:arms, ROOM] *= 1 + nearly
    slots[:arms, START] = np.cumsum(slots[:arms, ROOM]) - slots[:arms, ROOM]
    slots[arms, FULL] = 0
    roomier = np.zeros((len(pool), int(slots[:arms, ROOM].sum())), dtype=pool.dtype)
    for arm in range(arms):
        start, used = slots[arm, START], slots[arm, USED]
        roomier[:, start : start + used] = pool[:, old[arm] : old[arm] + used]
    return roomier, slots
