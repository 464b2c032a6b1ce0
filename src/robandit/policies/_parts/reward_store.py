"""A store with a few numbers for every reward of every arm.

A state that uses it has the fields ``pool`` and ``slots`` from `empty_store`. The pool is one array for all arms, so memory is
proportional to the number of rewards. Each arm has a stretch of columns, in order of arrival. When a stretch is full, `enlarged`
doubles it and all nearly full stretches, outside compiled code. Policies inherit `KeepsRewards`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from robandit.kernel.types import Floats, Ints

# Columns of ``slots``, one row per arm. In the last row, column FULL is 1 if some arm has no room left.
START, USED, ROOM = 0, 1, 2
FULL = 0


def empty_store(arms: int, rows: int, room: int = 32) -> tuple[Floats, Ints]:
    """Return ``pool`` and ``slots`` of a new run, with ``rows`` numbers per reward."""
    slots = np.zeros((arms + 1, 3), dtype=np.int64)
    slots[:arms, START] = room * np.arange(arms)
    slots[:arms, ROOM] = room
    return np.zeros((rows, arms * room)), slots


def append(slots: Ints, arm: int) -> int:
    """Reserve the column for the arm's next reward and return it. The caller fills it in."""
    column = slots[arm, START] + slots[arm, USED]
    slots[arm, USED] += 1
    if slots[arm, USED] == slots[arm, ROOM]:
        slots[slots.shape[0] - 1, FULL] = 1
    return column


def stored_rewards(s: Any, arm: int) -> float:
    """Return the number of stored rewards of an arm."""
    return s.slots[arm, USED]


def store_full(p: Any, s: Any) -> bool:
    """Return whether some arm has no room for another reward."""
    return s.slots[s.slots.shape[0] - 1, FULL] != 0


def enlarged(pool: Floats, slots: Ints) -> tuple[Floats, Ints]:
    """Return pool and slots with the same numbers, and twice the room for every arm that has used over three quarters of it."""
    slots = slots.copy()
    arms = len(slots) - 1
    room = slots[:arms, ROOM]
    # Only a file that contradicts itself has other numbers. It could ask for any memory.
    if not ((room >= 0) & (room <= pool.shape[1])).all() or room.sum() != pool.shape[1]:
        raise ValueError("slots do not fit the pool")
    old = slots[:arms, START].copy()
    # Nearly full stretches are doubled too. So arms that are pulled equally often need one copy of the pool, not one per arm.
    nearly = slots[:arms, USED] > 0.75 * slots[:arms, ROOM]
    slots[:arms, ROOM] *= 1 + nearly
    slots[:arms, START] = np.cumsum(slots[:arms, ROOM]) - slots[:arms, ROOM]
    slots[arms, FULL] = 0
    roomier = np.zeros((len(pool), int(slots[:arms, ROOM].sum())), dtype=pool.dtype)
    for arm in range(arms):
        start, used = slots[arm, START], slots[arm, USED]
        roomier[:, start : start + used] = pool[:, old[arm] : old[arm] + used]
    return roomier, slots


def place_last(slots: Ints) -> None:
    """Give the last arm, which was just added, the stretch after all others."""
    last = len(slots) - 2
    slots[last, START] = slots[:last, ROOM].sum()


class KeepsRewards:
    """The hooks of a policy whose state has a store: ``full``, ``grow`` and ``grows``."""

    grows: ClassVar[Mapping[str, int] | None] = {"pool": 1}

    full: ClassVar[Any] = staticmethod(store_full)
    enlarged: ClassVar[Any] = staticmethod(enlarged)

    @classmethod
    def grow(cls, state: Any) -> Any:
        pool, slots = cls.enlarged(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    def extended(self, state: Any) -> Any:
        longer = super().extended(state)  # type: ignore[misc]
        place_last(longer.slots)
        return longer
