"""The cells of the streaming Catoni mean: a histogram that is fine near the center and stores moments of each cell.

A value at distance 2^e <= |x - center| < 2^(e+1) goes to level e, into the cell ``[k w, (k + 1) w)`` with w = 2^(e-4). So cells
are at most 1/16 as wide as their distance from the center, for data and alphas of any scale. The cells of all levels and of all
centers lie on one grid of multiples of powers of two. So the cells of shards are compatible, and a merge adds equal cells. A cell
that is finer than this center requires is first widened to the cell that contains it, which changes its moments exactly. A
coarser cell stays. Cells of different levels may overlap: each counts only its own values.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np

from robandit.kernel import compiled
from robandit.kernel.types import Floats, Ints

FINE = 4  # a cell is 2^-4 as wide as the distance at which its level begins
LEVELS = 2047  # a level is the exponent field of |x - center|; 0 (subnormal distances) shares level 1
BEFORE = (2 << FINE) + 2  # cells before the center: 32, one for rounding down, one for merging
CELLS = 2 * BEFORE + 2

# Columns of a cell: sums of the powers 0, 1, 2, 3 of the values, in units of w from the start of the cell.
COUNT = 0
FIRST = 1
FIRST_LOST = 2  # rounding error of FIRST
SECOND = 3
THIRD = 4
NUMBERS = 5

# A level's cells are w = 2^(level - 1023 - FINE) wide. 1/w overflows at the lowest levels, so it is split into two factors.
SCALE: Floats = np.ldexp(1.0, np.minimum(1023 + FINE - np.arange(LEVELS + 1), 1023))
SCALE_MORE: Floats = np.ldexp(1.0, np.maximum(FINE - np.arange(LEVELS + 1), 0))


class Cells:
    """The cells about a center, and the number of values equal to it."""

    def __init__(self, center: float) -> None:
        """Start without values."""
        self.center = center
        self.equal = 0
        self._page: Ints = np.full(LEVELS + 1, -1, dtype=np.int64)  # the index of a level's cells
        self._origin: Ints = np.zeros(LEVELS + 1, dtype=np.int64)  # the k of a level's first cell
        self._cells: Floats = np.zeros((0, CELLS, NUMBERS))
        self._used = 0
        self._missing: Ints = np.zeros(1, dtype=np.int64)

    def occupied(self) -> tuple[Ints, Floats]:
        """Return level and k of each occupied cell, sorted, and the columns of these cells."""
        levels = np.flatnonzero(self._page >= 0)
        if levels.size == 0:
            return np.zeros((0, 2), dtype=np.int64), np.zeros((0, NUMBERS))
        pages = self._cells[self._page[levels]]
        where, place = np.nonzero(pages[:, :, COUNT] > 0.0)
        level = levels[where]
        return np.stack([level, self._origin[level] + place], axis=1), pages[where, place]

    def take(self, values: Floats) -> None:
        """Add values."""
        off = values - self.center
        self.equal += int(off.size - np.count_nonzero(off))
        bits = off.view(np.int64)
        state = self._page, self._origin
        start = 0
        while start < values.size:
            start += _absorb()(values[start:], bits[start:], SCALE, SCALE_MORE, *state, self._cells, self._missing)
            if start < values.size:
                self._open(int(self._missing[0]))

    def merge(self, other: Cells) -> None:
        """Add all values of another histogram."""
        self._place(*other.occupied(), other.center)
        if other.center == self.center:
            self.equal += other.equal
        elif other.equal:
            level = int(levels_of(np.array([other.center - self.center]))[0])
            y = other.center * SCALE[level] * SCALE_MORE[level]
            k = math.floor(y)
            f = y - k
            times = other.equal
            row = [float(times), times * f, 0.0, times * f * f, times * f * f * f]
            self._place(np.array([[level, k]], dtype=np.int64), np.array([row]), self.center)

    def put(self, row: Any) -> str:
        """Store a saved cell. Return the rule that it violates, or an empty string."""
        rule = "a level, a position, and five numbers that fit together"
        if not isinstance(row, list) or len(row) != 2 + NUMBERS or any(isinstance(x, bool) for x in row):
            return rule
        level, k, *numbers = row
        if not all(isinstance(x, int) for x in (level, k)) or not all(isinstance(x, (int, float)) for x in numbers):
            return rule
        near = 1 <= level < LEVELS and abs(self.center) * SCALE[level] * SCALE_MORE[level] < 2.0**61
        count = numbers[COUNT]
        # Every power sum lies between 0 and the number of values, up to rounding errors, which grow with that number.
        within = all(math.isfinite(x) and abs(x) <= 1.001 * count for x in numbers[FIRST:])
        valid_count = 1 <= count <= 2**62 and count == int(count)
        if not near or not valid_count or not within or abs(k) >= 2**62 or min(numbers[FIRST], numbers[SECOND]) < 0:
            return rule
        if self._page[level] < 0:
            self._open(level)
        place = k - int(self._origin[level])
        if not 0 <= place < CELLS:
            return "a cell near the center for its level"
        cell = self._cells[self._page[level], place]
        if cell[COUNT] > 0.0:
            return "a cell that occurs only once"
        cell[:] = numbers
        return ""

    def _open(self, level: int) -> None:
        """Allocate the cells of a level."""
        if self._used == len(self._cells):
            more = min(max(16, self._used // 2), LEVELS - self._used)
            self._cells = np.concatenate([self._cells, np.zeros((more, CELLS, NUMBERS))])
        self._origin[level] = math.floor(self.center * SCALE[level] * SCALE_MORE[level]) - BEFORE
        self._page[level] = self._used
        self._used += 1

    def _place(self, keys: Ints, cells: Floats, center: float) -> None:
        """Add cells that were built with another center."""
        level, k = keys[:, 0], keys[:, 1]
        w = cell_widths(level)
        middle = cell_starts(k, w, self.center) + 0.5 * w
        # Widen to the level of a value in the middle of the cell. A coarser cell stays as it is.
        up = np.maximum(levels_of(middle) - level, 0) if center != self.center else np.zeros_like(level)
        wide, moved = moved_cells(cells, k, up)
        level = level + up
        for one in np.unique(level):
            if self._page[one] < 0:
                self._open(int(one))
        _join()(moved, self._page[level], wide - self._origin[level], self._cells)


def levels_of(off: Floats) -> Ints:
    """Return the level of each distance x - center."""
    levels: Ints = np.maximum((off.view(np.int64) >> 52) & 2047, 1)
    return levels


def cell_widths(level: Ints) -> Floats:
    """Return the width w of the cells of each level."""
    return np.ldexp(1.0, level - (1023 + FINE))


def cell_starts(k: Ints, w: Floats, center: float) -> Floats:
    """Return k w - center, rounded once."""
    # A k of more than 53 bits is split. w is then below the spacing of doubles at the center, so both differences are exact.
    high = np.where(np.abs(k) < 2**53, k, (k >> 20) << 20)
    out: Floats = (high.astype(np.float64) * w - center) + (k - high).astype(np.float64) * w
    return out


def moved_cells(cells: Floats, k: Ints, up: Ints) -> tuple[Ints, Floats]:
    """Widen each cell to the one ``up`` levels higher that contains it. Return its k and its exact moments."""
    wide = k >> np.minimum(up, 62)
    # Start of the cell within the wider one. As |k| < 2^62, a cell 2^62 times narrower is a point at one of its ends.
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
    """Take values until a level has no page, and return the number taken. ``bits`` is the bit pattern of x - center."""
    for i in range(values.shape[0]):
        if bits[i] & (2**63 - 1) == 0:
            continue  # x is the center; the caller counts it
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
    """Return the exact rounding error of total = a + b for a, b >= 0."""
    if a >= b:
        return (a - total) + b
    return (b - total) + a


def join(moved: Floats, page: Ints, place: Ints, cells: Floats) -> None:
    """Add cells to the stored cells at the given places."""
    for i in range(moved.shape[0]):
        cell = cells[page[i], place[i]]
        first = cell[FIRST] + moved[i, FIRST]
        cell[FIRST_LOST] += moved[i, FIRST_LOST] + lost(cell[FIRST], moved[i, FIRST], first)
        cell[FIRST] = first
        cell[COUNT] += moved[i, COUNT]
        cell[SECOND] += moved[i, SECOND]
        cell[THIRD] += moved[i, THIRD]


_INTS, _CELLS = np.zeros(1, dtype=np.int64), np.zeros((1, 1, 1))
_ABSORBED = (np.zeros(1), _INTS, SCALE, SCALE_MORE, _INTS, _INTS, _CELLS, _INTS)
_JOINED = (np.zeros((1, 1)), _INTS, _INTS, _CELLS)
_absorb = cache(partial(compiled, absorb, label="Catoni's cells", args=_ABSORBED))
_join = cache(partial(compiled, join, label="the merging of Catoni's cells", args=_JOINED))
