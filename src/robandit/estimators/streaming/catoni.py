"""Catoni's mean of a stream: a histogram whose cells carry moments, with a computed bound of the error.

Catoni's equation ``sum_j psi(alpha (X_j - theta)) = 0`` needs all values again for each alpha and theta. Here values share cells
(:mod:`robandit.estimators.streaming.cells`), and the equation is solved with the cells' moments; the error of that is bounded and
added to both sides of the interval (:mod:`robandit.estimators.streaming.expansion`).

The center is the median of the first 63 values, which are kept as they are until then. Merging adds cells that are the same. A
cell that is finer than this center requires is first widened to the cell that contains it, which changes its moments exactly; a
coarser one stays.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from robandit.errors import InvalidInput
from robandit.estimators.catoni import least_values, lemma, tuned_alpha
from robandit.estimators.estimate import Estimate, interval, log_over
from robandit.estimators.streaming.accumulator import Accumulator, Saved
from robandit.estimators.streaming.cells import (
    BEFORE,
    CELLS,
    COUNT,
    FIRST,
    FIRST_LOST,
    LEVELS,
    NUMBERS,
    SCALE,
    SCALE_MORE,
    SECOND,
    THIRD,
    absorb_kernel,
    cell_starts,
    cell_widths,
    join_kernel,
    levels_of,
    moved_cells,
)
from robandit.estimators.streaming.expansion import Body, expanded_root
from robandit.kernel.types import Floats, Ints
from robandit.validation import choice, positive, probability

__all__ = ["Catoni"]

HEAD = 63  # values kept as they are until their median becomes the center


class Catoni(Accumulator):
    """Catoni's mean: every value enters through a slowly growing function; the streaming form of `catoni_mean`.

    Use it if a bound v on the variance is known: no estimator has a narrower guarantee, and far values hardly move it. Not
    for infinite variance (`MedianOfMeans`).

    `estimate` takes any v and delta, because the data are kept as cells with moments. The value equals the one-shot function's
    up to a numerical error that each estimate bounds (`error`) and adds to both sides. It is below 1e-6 of the width if v is at
    least about the variance of the data. (A v that is far too small, or data that wander away from the first 63 values, make
    it larger, never wrong.) Shards merged in any order give the one stream's value up to the same error.

    Memory: 63 doubles, then 2.7 KiB for each power of two that occurs among the distances from the center: 20 to 60 in
    practice, about 100 KiB; at most 2046, 5.6 MiB.

    Guarantee
    ---------
    For independent values with variance at most v: with probability at least 1 - delta the mean is
    within 2 sqrt(v log(2/delta) / n), plus the numerical error, of the value, if n >= 4 log(2/delta); fewer values are
    rejected. ``bonus="tight"``: within sqrt(2 v L / (n - 2 L)), L = log(2/delta), if n > 2 L. Must know: v.

    Examples
    --------
    >>> import numpy as np
    >>> from robandit.estimators.streaming import Catoni
    >>> mean = Catoni()
    >>> mean.update_many(np.sin(np.arange(1000.0)))
    >>> mean.update(30.0)
    >>> estimate = mean.estimate(0.05, v=0.5)
    >>> round(estimate.value, 4), round(estimate.upper - estimate.value, 4)
    (0.02, 0.0859)

    References
    ----------
    O. Catoni. Challenging the empirical mean and empirical variance: a deviation study. Annales de
    l'Institut Henri Poincaré 48(4), 2012. With these constants: S. Bubeck, N. Cesa-Bianchi, G. Lugosi. Bandits with heavy
    tail. IEEE Transactions on Information Theory 59(11), 2013, Lemma 3.
    """

    largest = 2.0**1022  # so that the distance of two values is finite

    def __init__(self) -> None:
        """Start without values."""
        self._one = np.zeros(1)
        self._head: list[float] = []
        self._center: float | None = None
        self._n = 0
        self._equal = 0  # values equal to the center
        self._page: Ints = np.full(LEVELS + 1, -1, dtype=np.int64)  # the index of a level's cells
        self._origin: Ints = np.zeros(LEVELS + 1, dtype=np.int64)  # the k of a level's first cell
        self._cells: Floats = np.zeros((0, CELLS, NUMBERS))
        self._used = 0
        self._missing: Ints = np.zeros(1, dtype=np.int64)

    @property
    def n(self) -> int:
        """The number of values taken."""
        return self._n

    def estimate(self, delta: float, *, v: float, bonus: Literal["paper", "tight"] = "paper") -> Estimate:
        """Return Catoni's mean and its bounds, which include the numerical error; no side effects.

        ``bonus="tight"`` is Catoni's own width sqrt(2 v L / (n - 2 L)), L = log(2/delta); the value is the same.
        """
        choice(bonus, "bonus", ("paper", "tight"))
        v, delta = positive(v, "v"), probability(delta, "delta")
        n, level = self._n, log_over(2.0, delta)
        least = least_values(level, bonus)
        if n < least:
            needs = f"this bound needs {least} at delta = {delta:g}"
            raise InvalidInput(f"there are {n} values, and {needs}: take more, or pass a larger delta")
        value, error = self._solve(delta, v)
        width, assumed = lemma(n, v, level, bonus)
        return interval(np.array([value]), width + error, (), delta=delta, assumed=assumed, n=n)

    def error(self, delta: float, *, v: float) -> float:
        """Return how far the value of `estimate` can be from the root of Catoni's equation for all the values taken."""
        return self._solve(probability(delta, "delta"), positive(v, "v"))[1]

    def _solve(self, delta: float, v: float) -> tuple[float, float]:
        n = self._n
        level = log_over(2.0, delta)
        if n <= 2.0 * level:
            raise InvalidInput(
                f"there are {n} values, and more than 2 log(2/delta) = {2.0 * level:.6g} are needed: take more"
            )
        alpha = tuned_alpha(n, v, level)
        center, body = self._body()
        off, error = expanded_root(body, alpha)
        value = center + off
        return value, error + 2.0 * math.ulp(value)

    def _body(self) -> tuple[float, Body]:
        """Return the center, and the occupied cells relative to it."""
        if self._center is None:
            values = np.sort(np.array(self._head))
            center = float(values[values.size // 2])
            zeros = np.zeros(values.size)
            return center, Body(np.ones(values.size), values - center, zeros, zeros, zeros, zeros)
        keys, cells = self._occupied()
        count, first = cells[:, COUNT], cells[:, FIRST] + cells[:, FIRST_LOST]
        w = cell_widths(keys[:, 0])
        mean = first / count
        # In units of w. E allows for their rounding; but the second must not be negative.
        second = np.maximum(cells[:, SECOND] - first * mean, 0.0)
        third = cells[:, THIRD] - mean * (3.0 * cells[:, SECOND] - 2.0 * first * mean)
        start = cell_starts(keys[:, 1], w, self._center)
        body = Body(count, start + w * mean, w, second, third, np.maximum(mean, 1.0 - mean))
        if self._equal:
            body = Body(
                *(np.append(a, b) for a, b in zip(body, (float(self._equal), 0.0, 0.0, 0.0, 0.0, 0.0), strict=True))
            )
        return self._center, body

    def _occupied(self) -> tuple[Ints, Floats]:
        """Return level and k of each occupied cell, sorted, and its numbers."""
        levels = np.flatnonzero(self._page >= 0)
        if levels.size == 0:
            return np.zeros((0, 2), dtype=np.int64), np.zeros((0, NUMBERS))
        pages = self._cells[self._page[levels]]
        where, place = np.nonzero(pages[:, :, COUNT] > 0.0)
        level = levels[where]
        return np.stack([level, self._origin[level] + place], axis=1), pages[where, place]

    def _take(self, values: Floats) -> None:
        self._n += values.size
        if self._center is None:
            more = HEAD - len(self._head)
            self._head.extend(values[:more].tolist())
            values = values[more:]
            if len(self._head) == HEAD:
                self._begin()
        if values.size:
            self._absorb(values)

    def _begin(self) -> None:
        """Choose the center, and put the first values into cells."""
        head = np.array(self._head)
        self._head = []
        self._center = float(np.sort(head)[head.size // 2])
        self._absorb(head)

    def _absorb(self, values: Floats) -> None:
        assert self._center is not None
        off = values - self._center
        self._equal += int(off.size - np.count_nonzero(off))
        bits = off.view(np.int64)
        run = absorb_kernel()
        start = 0
        while start < values.size:
            start += run(
                values[start:], bits[start:], SCALE, SCALE_MORE, self._page, self._origin, self._cells, self._missing
            )
            if start < values.size:
                self._open(int(self._missing[0]))

    def _open(self, level: int) -> None:
        """Make room for the cells of a level."""
        if self._used == len(self._cells):
            more = min(max(16, self._used // 2), LEVELS - self._used)
            self._cells = np.concatenate([self._cells, np.zeros((more, CELLS, NUMBERS))])
        assert self._center is not None
        self._origin[level] = math.floor(self._center * SCALE[level] * SCALE_MORE[level]) - BEFORE
        self._page[level] = self._used
        self._used += 1

    def _add(self, other: Catoni) -> None:
        if other._center is None:
            if other._head:
                self._take(np.array(other._head))
            return
        mine: list[float] = []
        if self._center is None:
            mine, self._head = self._head, []
            self._center = other._center
        keys, cells = other._occupied()
        self._place(keys, cells, other._center)
        self._n += other._n
        if other._center == self._center:
            self._equal += other._equal
        elif other._equal:
            self._repeat(other._center, other._equal)
        if mine:
            self._absorb(np.array(mine))

    def _repeat(self, value: float, times: int) -> None:
        """Take one value many times."""
        assert self._center is not None
        off = np.array([value - self._center])
        level = int(levels_of(off)[0])
        y = value * SCALE[level] * SCALE_MORE[level]
        k = math.floor(y)
        f = y - k
        row = [float(times), times * f, 0.0, times * f * f, times * f * f * f]
        self._place(np.array([[level, k]], dtype=np.int64), np.array([row]), self._center)

    def _place(self, keys: Ints, cells: Floats, center: float) -> None:
        """Add cells that were made about some center."""
        level, k = keys[:, 0], keys[:, 1]
        w = cell_widths(level)
        assert self._center is not None
        middle = cell_starts(k, w, self._center) + 0.5 * w
        # Up to the level of a value in the middle of the cell; a coarser cell stays as it is.
        up = np.maximum(levels_of(middle) - level, 0) if center != self._center else np.zeros_like(level)
        wide, moved = moved_cells(cells, k, up)
        level = level + up
        for one in np.unique(level):
            if self._page[one] < 0:
                self._open(int(one))
        join_kernel()(moved, self._page[level], wide - self._origin[level], self._cells)

    def _save(self) -> dict[str, Any]:
        keys, cells = self._occupied()
        return {
            "n": self._n,
            "head": list(self._head),
            "center": self._center,
            "equal": self._equal,
            "cells": [[*key, *row] for key, row in zip(keys.tolist(), cells.tolist(), strict=True)],
        }

    def _load(self, saved: Saved) -> None:
        n = saved.count("n")
        head = saved.numbers("head", most=HEAD - 1)
        center = saved.take("center")
        equal = saved.count("equal", most=n)
        rows = saved.take("cells")
        if not isinstance(rows, list):
            raise saved.damaged("cells", rows, "a list")
        if center is None:
            if equal or rows or head.size != n:
                raise saved.damaged("center", center, "a number, because there are values beside the head")
            self._head, self._n = head.tolist(), n
            return
        if isinstance(center, bool) or not isinstance(center, (int, float)) or not abs(center) <= self.largest:
            raise saved.damaged("center", center, f"a number up to {self.largest:g} in size")
        if head.size:
            raise saved.damaged("head", head.tolist(), "empty once there is a center")
        self._center = float(center)
        total = equal
        seen: set[tuple[int, int]] = set()
        for row in rows:
            level, k, numbers = self._row(saved, row)
            if (level, k) in seen:
                raise saved.damaged("cells", row, "a cell that occurs only once")
            seen.add((level, k))
            if self._page[level] < 0:
                self._open(level)
            place = k - int(self._origin[level])
            if not 0 <= place < CELLS:
                raise saved.damaged("cells", row, "a cell near the center for its level")
            self._cells[self._page[level], place] = numbers
            total += int(numbers[COUNT])
        if total != n:
            raise saved.damaged("n", n, f"the number of values in the cells, {total}")
        self._equal, self._n = equal, n

    def _row(self, saved: Saved, row: Any) -> tuple[int, int, list[float]]:
        rule = "a level, a position, and five numbers that fit together"
        if not isinstance(row, list) or len(row) != 2 + NUMBERS or any(isinstance(x, bool) for x in row):
            raise saved.damaged("cells", row, rule)
        level, k, *numbers = row
        if not all(isinstance(x, int) for x in (level, k)) or not all(isinstance(x, (int, float)) for x in numbers):
            raise saved.damaged("cells", row, rule)
        assert self._center is not None
        near = 1 <= level < LEVELS and abs(self._center) * SCALE[level] * SCALE_MORE[level] < 2.0**61
        count = numbers[COUNT]
        # Every power sum lies between 0 and the number of values, except for rounding, which grows with that number.
        within = all(math.isfinite(x) and abs(x) <= 1.001 * count for x in numbers[FIRST:])
        valid_count = 1 <= count <= 2**62 and count == int(count)
        if not near or not valid_count or not within or abs(k) >= 2**62 or min(numbers[FIRST], numbers[SECOND]) < 0:
            raise saved.damaged("cells", row, rule)
        return level, k, [float(x) for x in numbers]
