"""The cells of the streaming Catoni mean: a histogram whose cells carry moments, fine near the center.

A value at distance 2^e <= |x - center| < 2^(e+1) goes to level e, into the cell ``[k w, (k + 1) w)`` with w = 2^(e-4): cells are
at most 1/16 as wide as their distance from the center, for data and alphas of any scale. Cells of all levels lie on one grid of
multiples of powers of two, not on a grid about the center, so shards with other centers have compatible cells. Cells of different
levels may overlap: each counts its own values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from robandit.kernel.types import Floats, Ints

FINE = 4  # a cell is 2^-4 as wide as the distance at which its level begins
LEVELS = 2047  # a level is the exponent field of |x - center|; 0 (subnormal distances) shares level 1
BEFORE = (2 << FINE) + 2  # cells of a level before the center's; 32 are needed, one for rounding down, one for merging
CELLS = 2 * BEFORE + 2

# Numbers of a cell: values in units of w from the cell's beginning, to the powers 0, 1, 2, 3.
COUNT = 0
FIRST = 1
FIRST_LOST = 2  # rounding error of FIRST
SECOND = 3
THIRD = 4
NUMBERS = 5

# A level's cells are w = 2^(level - 1023 - FINE) wide. 1/w overflows at the lowest levels: hence two factors.
SCALE: Floats = np.ldexp(1.0, np.minimum(1023 + FINE - np.arange(LEVELS + 1), 1023))
SCALE_MORE: Floats = np.ldexp(1.0, np.maximum(FINE - np.arange(LEVELS + 1), 0))


def levels_of(off: Floats) -> Ints:
    """Return the level of each distance x - center."""
    levels: Ints = np.maximum((off.view(np.int64) >> 52) & 2047, 1)
    return levels


def cell_widths(level: Ints) -> Floats:
    """Return the width w of the cells of each level."""
    return np.ldexp(1.0, level - (1023 + FINE))


def cell_starts(k: Ints, w: Floats, center: float) -> Floats:
    """Return k w - center, rounded once.

    A k of more than 53 bits is split: w is then below the spacing of doubles at the center, and both differences are exact.
    """
    high = np.where(np.abs(k) < 2**53, k, (k >> 20) << 20)
    out: Floats = (high.astype(np.float64) * w - center) + (k - high).astype(np.float64) * w
    return out


def moved_cells(cells: Floats, k: Ints, up: Ints) -> tuple[Ints, Floats]:
    """Widen each cell to the one ``up`` levels higher that contains it; return its k and its exact moments."""
    wide = k >> np.minimum(up, 62)
    # Where the cell begins in the wider one. As |k| < 2^62, a cell 2^62 times narrower is a point at one of its ends.
    part = (k - (wide << np.minimum(up, 62))).astype(np.float64)
    a = np.where(up <= 62, np.ldexp(part, -up), np.where(k < 0, 1.0, 0.0))
    b = np.ldexp(1.0, -up)
    n, first, second, third = cells[:, COUNT], cells[:, FIRST], cells[:, SECOND], cells[:, THIRD]
    moved = np.empty_like(cells)
    moved[:, COUNT] = n
    moved[:, FIRST] = n * a + b * first
    moved[:, FIRST_LOST] = b * cells[:, FIRST_LOST]
    moved[:, SECOND] = n * a * a + b * (2.0 * a * first + b * second)
    moved[:, THIRD] = n * a * a * a + b * (3.0 * a * a * first + b * (3.0 * a * second + b * third))
    return wide, moved


@cache
def absorb_kernel() -> Callable[..., int]:
    """Return `absorb`, compiled."""
    from robandit.kernel import compiled

    ints = np.zeros(1, dtype=np.int64)
    floats = np.zeros(1)
    args = (floats, ints, SCALE, SCALE_MORE, ints, ints, np.zeros((1, 1, 1)), ints)
    return compiled(absorb, label="Catoni's cells", args=args)


def absorb(
    values: Floats,
    bits: Ints,
    scale: Floats,
    scale_more: Floats,
    page: Ints,
    origin: Ints,
    cells: Floats,
    missing: Ints,
) -> int:
    """Take values until a level has no page; return how many were taken. ``bits`` are those of x - center."""
    for i in range(values.shape[0]):
        if bits[i] & (2**63 - 1) == 0:
            continue  # the center itself; counted by the caller
        level = max((bits[i] >> 52) & 2047, 1)
        if page[level] < 0:
            missing[0] = level
            return i
        y = values[i] * scale[level] * scale_more[level]
        start = math.floor(y)
        f = y - start
        cell = cells[page[level], int(start) - origin[level]]
        cell[COUNT] += 1.0
        first = cell[FIRST] + f
        cell[FIRST_LOST] += lost(cell[FIRST], f, first)
        cell[FIRST] = first
        cell[SECOND] += f * f
        cell[THIRD] += f * f * f
    return len(values)


def lost(a: float, b: float, total: float) -> float:
    """Return the rounding error of total = a + b, exactly; neither is negative."""
    if a >= b:
        return (a - total) + b
    return (b - total) + a


@cache
def join_kernel() -> Callable[..., None]:
    """Return `join`, compiled."""
    from robandit.kernel import compiled

    ints = np.zeros(1, dtype=np.int64)
    return compiled(
        join, label="the merging of Catoni's cells", args=(np.zeros((1, 1)), ints, ints, np.zeros((1, 1, 1)))
    )


def join(moved: Floats, page: Ints, place: Ints, cells: Floats) -> None:
    """Add cells to those at their places."""
    for i in range(moved.shape[0]):
        cell = cells[page[i], place[i]]
        first = cell[FIRST] + moved[i, FIRST]
        cell[FIRST_LOST] += moved[i, FIRST_LOST] + lost(cell[FIRST], moved[i, FIRST], first)
        cell[FIRST] = first
        cell[COUNT] += moved[i, COUNT]
        cell[SECOND] += moved[i, SECOND]
        cell[THIRD] += moved[i, THIRD]
