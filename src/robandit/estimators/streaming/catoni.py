"""Catoni's mean of a stream: a histogram whose cells carry moments, fine where it matters, with an error that is computed.

Catoni's equation ``sum_j psi(alpha (X_j - theta)) = 0`` needs all values again for each alpha and theta. Here values share
cells, and a cell stands for its values by number, mean and second and third central moment.

**Cells.** A value at distance 2^e <= |x - center| < 2^(e+1) goes to level e, into the cell ``[k w, (k + 1) w)`` with w =
2^(e-4): cells are at most 1/16 of their distance from the center wide, whatever the scale of the data and of alpha. (The
center is the median of the first 63 values, which are kept as they are until then.) Cells of all levels lie on the one grid
of multiples of powers of two, not on a grid about the center: so shards with other centers have compatible cells. Merging
adds cells that are the same; one that is finer than the rule asks for, seen from this center, is first widened to the cell
that contains it, which moves its moments exactly; one that is coarser stays. Cells of different levels may overlap: each
knows its own values.

**Error.** psi(y) = log q for y >= 0, q = 1 + y + y^2/2, odd. Its third derivative is continuous and the fourth is (-3 q^2 +
12 q - 6) / q^4, at most 3 / q^2 in size (because (q - 1)^2 >= 0). So a Taylor expansion of order 3 about the cell's mean m
is off by at most ``(3 / q^2) / 24 * alpha^4 sum (x - m)^4 <= alpha^4 W^2 M2 / (8 q^2)``: q at the end of the cell nearest
to theta, W the larger distance from m to an end, M2 = sum (x - m)^2. The total over cells, plus rounding, is E(theta). The
sum falls in theta, so if the expansion is above E at theta - h and below -E at theta + h, the exact root is within h of
theta. `estimate` finds such an h and adds it to both sides of the interval.

**Size of the error.** y = alpha (x - theta) has w <= |x - center| / 16. With the center within 1/alpha of theta and v at
least the spread of the data, sum y^2 is about ell = 2 log(2/delta), each cell adds at most (alpha w)^4 / 96 a value, and E
/ (alpha n) is below 1e-7 of the width sqrt(2 v ell / n). The tests hold it to 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.estimators.catoni import least_values, lemma, tuned_alpha
from robandit.estimators.estimate import Estimate, check_choice, check_delta, check_positive, log_over
from robandit.estimators.streaming.accumulator import Accumulator, Saved
from robandit.kernel.types import Floats, Ints

__all__ = ["Catoni"]

HEAD = 63  # values that are kept until their median becomes the center
FINE = 4  # a cell is 2^-4 as wide as the distance at which its level begins
LEVELS = 2047  # a level is the exponent field of |x - center|; 0 (subnormal distances) shares level 1
BEFORE = (2 << FINE) + 2  # cells of a level before the center's; 32 are needed, one for rounding down, one for merging
CELLS = 2 * BEFORE + 2
COUNT = 0  # numbers of a cell: values in units of w from the cell's beginning, to the powers 1, 2, 3
FIRST = 1
FIRST_LOST = 2  # what rounding took from FIRST
SECOND = 3
THIRD = 4
NUMBERS = 5
ROUNDING = 2.0**-49
PATIENCE = 30  # steps; then every third one halves
STEPS = PATIENCE + 3 * 66  # and 64 halvings end any search


class Catoni(Accumulator):
    """Catoni's mean: every value enters through a slowly growing function; the streaming form of `catoni_mean`.

    Use it where a bound v on the variance is known: no estimator has a narrower guarantee, and far values hardly move it. Not
    for infinite variance (`MedianOfMeans`).

    v and delta are given with each question, so the data are kept in a form that serves them all: cells with moments. The
    value equals the one-shot function's up to a numerical error that is bounded anew in each estimate (`error`), added to
    both sides, and below 1e-6 of the width when v is at least about the variance of the data. (A v that is far too small,
    or data that wander away from the first 63 values, make it larger, never wrong.) Merging shards in whatever way gives
    the one stream's value up to the same error.

    Memory: 63 doubles, then 2.7 KiB for each power of two that occurs among the distances from the center: 20 to 60 of them in
    practice, about 100 KiB; never more than 2046 of them, 5.6 MiB, whatever the data.

    Guarantee
    ---------
    For independent values with variance at most v: with probability at least 1 - delta the mean is
    within 2 sqrt(v log(2/delta) / n), and the numerical error, of the value, if n >= 4 log(2/delta); fewer values are
    refused. ``bonus="tight"``: within sqrt(2 v L / (n - 2 L)), L = log(2/delta), if n > 2 L. Must know: v.

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

    largest = 2.0**1022  # so that the distance of two values is a number

    def __init__(self) -> None:
        """Nothing was taken yet."""
        self._one = np.zeros(1)
        self._head: list[float] = []
        self._center: float | None = None
        self._n = 0
        self._equal = 0  # values that are the center
        self._page: Ints = np.full(LEVELS + 1, -1, dtype=np.int64)  # where a level's cells are
        self._origin: Ints = np.zeros(LEVELS + 1, dtype=np.int64)  # the k of a level's first cell
        self._cells: Floats = np.zeros((0, CELLS, NUMBERS))
        self._used = 0
        self._missing: Ints = np.zeros(1, dtype=np.int64)

    @property
    def n(self) -> int:
        """How many values were taken."""
        return self._n

    def estimate(self, delta: float, *, v: float, bonus: Literal["paper", "tight"] = "paper") -> Estimate:
        """Catoni's mean and its bounds, which include the numerical error; asking changes nothing.

        ``bonus="tight"`` is Catoni's own width sqrt(2 v L / (n - 2 L)), L = log(2/delta); the value is the same.
        """
        check_choice("bonus", bonus, ("paper", "tight"))
        v, delta = check_positive("v", v), check_delta(delta)
        n, level = self._n, log_over(2.0, delta)
        least = least_values(level, bonus)
        if n < least:
            raise InvalidInput(
                f"there are {n} values, and this bound needs {least} at delta = {delta:g}: take more, or ask for a larger delta"
            )
        value, error = self._solve(delta, v)
        width, assumed = lemma(n, v, level, bonus)
        return Estimate(
            value=value,
            lower=value - (width + error),
            upper=value + (width + error),
            delta=delta,
            assumed=assumed,
            n=self._n,
        )

    def error(self, delta: float, *, v: float) -> float:
        """How far the value of `estimate` can be from the root of Catoni's equation for all the values taken."""
        return self._solve(check_delta(delta), check_positive("v", v))[1]

    def _solve(self, delta: float, v: float) -> tuple[float, float]:
        n = self._n
        level = log_over(2.0, delta)
        if n <= 2.0 * level:
            raise InvalidInput(
                f"there are {n} values, and more than 2 log(2/delta) = {2.0 * level:.6g} are needed: take more"
            )
        alpha = tuned_alpha(n, v, level)
        center, body = self._body()
        off, error = _root(body, alpha)
        value = center + off
        return value, error + 2.0 * math.ulp(value)

    def _body(self) -> tuple[float, _Body]:
        """The occupied cells, seen from the center."""
        if self._center is None:
            values = np.sort(np.array(self._head))
            center = float(values[values.size // 2])
            none = np.zeros(values.size)
            return center, _Body(np.ones(values.size), values - center, none, none, none, none)
        keys, cells = self._occupied()
        count, first = cells[:, COUNT], cells[:, FIRST] + cells[:, FIRST_LOST]
        w = _widths(keys[:, 0])
        mean = first / count
        # In units of w. Rounding may make them slightly wrong, which E allows for, and the second negative, which it must not be.
        second = np.maximum(cells[:, SECOND] - first * mean, 0.0)
        third = cells[:, THIRD] - mean * (3.0 * cells[:, SECOND] - 2.0 * first * mean)
        start = _starts(keys[:, 1], w, self._center)
        body = _Body(count, start + w * mean, w, second, third, np.maximum(mean, 1.0 - mean))
        if self._equal:
            body = _Body(
                *(np.append(a, b) for a, b in zip(body, (float(self._equal), 0.0, 0.0, 0.0, 0.0, 0.0), strict=True))
            )
        return self._center, body

    def _occupied(self) -> tuple[Ints, Floats]:
        """Level and k of each occupied cell, by level and k, and its numbers."""
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
        run = _absorb()
        start = 0
        while start < values.size:
            start += run(
                values[start:], bits[start:], SCALE, SCALE_MORE, self._page, self._origin, self._cells, self._missing
            )
            if start < values.size:
                self._open(int(self._missing[0]))

    def _open(self, level: int) -> None:
        """Room for the cells of a level."""
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
        level = int(np.maximum((off.view(np.int64) >> 52) & 2047, 1)[0])
        y = value * SCALE[level] * SCALE_MORE[level]
        k = math.floor(y)
        f = y - k
        row = [float(times), times * f, 0.0, times * f * f, times * f * f * f]
        self._place(np.array([[level, k]], dtype=np.int64), np.array([row]), self._center)

    def _place(self, keys: Ints, cells: Floats, center: float) -> None:
        """Add cells that were made about some center."""
        level, k = keys[:, 0], keys[:, 1]
        w = _widths(level)
        assert self._center is not None
        middle = _starts(k, w, self._center) + 0.5 * w
        # The level that a value in the middle of the cell would get here; a coarser cell stays what it is.
        wanted = np.maximum((middle.view(np.int64) >> 52) & 2047, 1)
        up = np.maximum(wanted - level, 0) if center != self._center else np.zeros_like(level)
        wide = k >> np.minimum(up, 62)
        # Where the cell begins in the wider one. As |k| < 2^62, one that is 2^62 times narrower is a point at an end of it.
        part = (k - (wide << np.minimum(up, 62))).astype(np.float64)
        a = np.where(up <= 62, np.ldexp(part, -up), np.where(k < 0, 1.0, 0.0))
        b = np.ldexp(1.0, -up)
        n, first, second, third = cells[:, COUNT], cells[:, FIRST], cells[:, SECOND], cells[:, THIRD]
        lost = cells[:, FIRST_LOST]
        moved = np.empty_like(cells)
        moved[:, COUNT] = n
        moved[:, FIRST] = n * a + b * first
        moved[:, FIRST_LOST] = b * lost
        moved[:, SECOND] = n * a * a + b * (2.0 * a * first + b * second)
        moved[:, THIRD] = n * a * a * a + b * (3.0 * a * a * first + b * (3.0 * a * second + b * third))
        level = level + up
        for one in np.unique(level):
            if self._page[one] < 0:
                self._open(int(one))
        _join()(moved, self._page[level], wide - self._origin[level], self._cells)

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
        n = saved.whole("n")
        head = saved.numbers("head", most=HEAD - 1)
        center = saved.take("center")
        equal = saved.whole("equal", most=n)
        rows = saved.take("cells")
        if not isinstance(rows, list):
            raise saved.refuse("cells", rows, "a list")
        if center is None:
            if equal or rows or head.size != n:
                raise saved.refuse("center", center, "a number, as there are values beside the head")
            self._head, self._n = head.tolist(), n
            return
        if isinstance(center, bool) or not isinstance(center, (int, float)) or not abs(center) <= self.largest:
            raise saved.refuse("center", center, f"a number up to {self.largest:g} in size")
        if head.size:
            raise saved.refuse("head", head.tolist(), "empty once there is a center")
        self._center = float(center)
        total = equal
        seen: set[tuple[int, int]] = set()
        for row in rows:
            level, k, numbers = self._row(saved, row)
            if (level, k) in seen:
                raise saved.refuse("cells", row, "a cell that is not there twice")
            seen.add((level, k))
            if self._page[level] < 0:
                self._open(level)
            place = k - int(self._origin[level])
            if not 0 <= place < CELLS:
                raise saved.refuse("cells", row, "a cell near the center for its level")
            self._cells[self._page[level], place] = numbers
            total += int(numbers[COUNT])
        if total != n:
            raise saved.refuse("n", n, f"the number of values in the cells, {total}")
        self._equal, self._n = equal, n

    def _row(self, saved: Saved, row: Any) -> tuple[int, int, list[float]]:
        rule = "a level, a position, and five numbers that fit together"
        if not isinstance(row, list) or len(row) != 2 + NUMBERS or any(isinstance(x, bool) for x in row):
            raise saved.refuse("cells", row, rule)
        level, k, *numbers = row
        if not all(isinstance(x, int) for x in (level, k)) or not all(isinstance(x, (int, float)) for x in numbers):
            raise saved.refuse("cells", row, rule)
        assert self._center is not None
        near = 1 <= level < LEVELS and abs(self._center) * SCALE[level] * SCALE_MORE[level] < 2.0**61
        count = numbers[COUNT]
        # Every power sum lies between 0 and the number of values, but for rounding, which grows with that number.
        within = all(math.isfinite(x) and abs(x) <= 1.001 * count for x in numbers[FIRST:])
        whole = 1 <= count <= 2**62 and count == int(count)
        if not near or not whole or not within or abs(k) >= 2**62 or min(numbers[FIRST], numbers[SECOND]) < 0:
            raise saved.refuse("cells", row, rule)
        return level, k, [float(x) for x in numbers]


class _Body(NamedTuple):
    """Cells as columns: number of values, mean from the center, width, central moments and reach in units of the width."""

    number: Floats
    mean: Floats
    width: Floats
    second: Floats
    third: Floats
    reach: Floats


def _root(body: _Body, alpha: float) -> tuple[float, float]:
    """The root of the expanded sum, and how far the exact sum's root can be from it."""
    theta = 0.0
    low, high = float((body.mean - body.width).min()), float((body.mean + body.width).max())
    span = math.inf
    total = slope = 0.0
    for step in range(STEPS):
        total, slope, _ = _expanded(body, alpha, theta)
        if total == 0.0:
            break
        if total > 0.0:
            low = max(low, theta)
        else:
            high = min(high, theta)
        new = theta + total / slope if slope > 0.0 else math.inf
        if step % 3 == 0:
            if high - low > 0.5 * span or step > PATIENCE:
                new = math.inf
            span = high - low
        if not low < new < high:
            new = _halfway(low, high)
        if new == theta or not low < new < high:
            break
        close = abs(new - theta) <= 2.0**-52 * max(abs(new), abs(theta))
        theta = new
        if close:
            break
    total, slope, bound = _expanded(body, alpha, theta)
    h = 1.5 * (abs(total) + bound) / slope if slope > 0.0 else 0.0
    h = max(h, math.ulp(theta))
    tries = 0
    while math.isfinite(h):
        above, _, above_bound = _expanded(body, alpha, theta - h)
        below, _, below_bound = _expanded(body, alpha, theta + h)
        if above > above_bound and below < -below_bound:
            return theta, h
        tries += 1
        h *= 4.0 if tries < 10 else 256.0  # 1074 powers of two are many if the sum is flat over them
    return theta, h


def _halfway(low: float, high: float) -> float:
    """The double with as many doubles between it and either end: 64 halvings end any search, at every scale."""
    ends = np.array([low, high]).view(np.int64)
    # The patterns of positive doubles are ordered like the doubles, those of negative ones the other way round.
    a, b = (int(e) if e >= 0 else -(int(e) & (2**63 - 1)) for e in ends)
    middle = (a + b) // 2
    pattern = np.array([abs(middle)], dtype=np.int64).view(np.float64)
    return math.copysign(float(pattern[0]), middle)


def _expanded(body: _Body, alpha: float, theta: float) -> tuple[float, float, float]:
    """The sum of psi by moments, how steeply it falls, and the bound E of its error.

    For |y| >= 1 everything is written with z = 1/y and the ratio of the cell's width to its distance, so that nothing
    overflows, whatever alpha is: q = y^2 g with g = 1/2 + z + z^2.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        off = body.mean - theta
        sign = np.sign(off)
        size = np.abs(off)
        y = alpha * size
        u = alpha * body.width
        small = y < 1.0
        ys = np.where(small, y, 0.0)
        q = 1.0 + ys + 0.5 * ys * ys
        z = np.where(small, 1.0, 1.0 / y)
        g = 0.5 + z + z * z
        ratio = np.where(small, 0.0, body.width / size)
        us = np.where(small, u, 0.0)
        # The logarithm of a product that is no double is a sum, whose digits would cancel for others.
        log_y = np.where(y < math.inf, np.log(y), math.log(alpha) + np.log(size))
        psi = np.where(small, np.log1p(ys + 0.5 * ys * ys), 2.0 * log_y + np.log(g))
        slope = np.where(small, (1.0 + ys) / q, z * (1.0 + z) / g)
        second = np.where(small, us * us * (1.0 - q) / (q * q), ratio**2 * (z * z / g - 1.0) / g)
        third = np.where(small, us**3 * (1.0 + ys) * (q - 2.0) / q**3, ratio**3 * (1.0 + z) * (g - 2.0 * z * z) / g**3)
        terms = sign * (body.number * psi + 0.5 * second * body.second) + third * body.third / 6.0
        # q >= max(1, y^2/2) at the end of the cell nearest to theta.
        near = body.width / np.maximum(size - body.reach * body.width, 0.0)
        fourth = np.where(body.width > 0.0, np.minimum(u**4, 4.0 * near**4), 0.0)
        linear = np.where(body.width > 0.0, np.minimum(u, 2.0 * near), 0.0)
        # Second and third moments are plain sums of up to ``number`` numbers below 1.
        noise = (ROUNDING + 2.0**-53 * body.number) * body.number
        bound = 0.125 * fourth * body.reach**2 * (body.second + noise)
        bound += noise * (np.abs(second) + np.abs(third))
        bound += ROUNDING * body.number * (psi + slope * alpha * abs(theta) + linear)
    return math.fsum(terms), alpha * float((body.number * slope).sum()), float(bound.sum())


# A level's cells are w = 2^(level - 1023 - FINE) wide. 1/w is not a double at the lowest levels: hence two factors.
SCALE: Floats = np.ldexp(1.0, np.minimum(1023 + FINE - np.arange(LEVELS + 1), 1023))
SCALE_MORE: Floats = np.ldexp(1.0, np.maximum(FINE - np.arange(LEVELS + 1), 0))


def _widths(level: Ints) -> Floats:
    return np.ldexp(1.0, level - (1023 + FINE))


def _starts(k: Ints, w: Floats, center: float) -> Floats:
    """k w - center, rounded once.

    A k of more than 53 bits is split: w is then below the spacing of doubles at the center, and both differences are exact.
    """
    high = np.where(np.abs(k) < 2**53, k, (k >> 20) << 20)
    out: Floats = (high.astype(np.float64) * w - center) + (k - high).astype(np.float64) * w
    return out


@cache
def _absorb() -> Callable[..., int]:
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
    """Take values until there are no more or a level has no room yet; returns how many. ``bits`` are those of x - center."""
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
    """What rounding took from a + b, exactly; neither is negative."""
    if a >= b:
        return (a - total) + b
    return (b - total) + a


@cache
def _join() -> Callable[..., None]:
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
