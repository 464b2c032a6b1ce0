"""Catoni's mean of a stream, from a histogram whose cells store moments, with a computed bound on the error.

Catoni's equation ``sum_j psi(alpha (X_j - theta)) = 0`` needs all values again for each alpha and theta. So values are grouped in
cells (:mod:`robandit.estimators.streaming.cells`), and the equation is solved with the cells' moments. The error of this is
bounded and added to both sides of the interval (:mod:`robandit.estimators.streaming.expansion`).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from robandit.errors import InvalidInput
from robandit.estimators.catoni import least_values, lemma, tuned_alpha
from robandit.estimators.estimate import Estimate, interval, log_over
from robandit.estimators.streaming.accumulator import Accumulator, Saved
from robandit.estimators.streaming.cells import COUNT, FIRST, FIRST_LOST, SECOND, THIRD, Cells, cell_starts, cell_widths
from robandit.estimators.streaming.expansion import Body, expanded_root
from robandit.hints import guided
from robandit.kernel.types import Floats
from robandit.validation import choice, positive, probability, within

HEAD = 63  # values stored unchanged until their median becomes the center


@guided
class Catoni(Accumulator):
    """Catoni's mean, in which every value enters through a slowly growing function: the streaming form of `catoni_mean`.

    Use it if a bound v on the variance is known: no estimator has a narrower guarantee, and outliers hardly move it. For an
    infinite variance use `MedianOfMeans`.

    `estimate` takes any v and delta, because the data are stored as cells with moments. The value equals the one-shot function's
    up to a numerical error. Each estimate bounds this error (`error`) and adds it to both sides. It is below 1e-6 of the width if
    v is not much below the variance of the data. A v that is far too small, or data far from the first 63 values, make the error
    larger, but the bound stays valid. Shards merged in any order give the value of one stream up to the same error.

    Memory: 63 doubles, then 2.7 KiB for each power of two that occurs among the distances from their median. In practice these
    are 20 to 60 powers, about 100 KiB; at most 2046, 5.6 MiB.

    Guarantee
    ---------
    The same as for `catoni_mean`, for both kinds of ``bonus``, with the numerical error added to the width. Requires v.

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
    """

    largest = 2.0**1022  # the difference of two values up to this size is finite

    def __init__(self) -> None:
        """Start without values."""
        self._one = np.zeros(1)
        self._head: list[float] = []
        self._cells: Cells | None = None
        self._n = 0

    @property
    def n(self) -> int:
        """The number of values taken."""
        return self._n

    def estimate(self, delta: float = 0.05, *, v: float, bonus: Literal["paper", "tight"] = "paper") -> Estimate:
        """Return Catoni's mean and its bounds, which include the numerical error. It has no side effects."""
        choice(bonus, "bonus", ("paper", "tight"))
        v, delta = positive(v, "v"), probability(delta, "delta")
        n, level = self._n, log_over(2.0, delta)
        least = least_values(level, bonus)
        if n < least:
            needs = f"this bound needs {least} at delta = {delta:g}"
            raise InvalidInput(f"there are {n} values, and {needs}: take more, or pass a larger delta")
        value, error = self._solve(delta, v)
        width, assumed = lemma(n, v, level, bonus)
        return interval(value, width + error, delta=delta, assumed=assumed, n=n)

    def error(self, delta: float = 0.05, *, v: float) -> float:
        """Return a bound on the distance of `estimate`'s value from the root of Catoni's equation for all values taken."""
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
        """Return the center and the occupied cells relative to it."""
        if self._cells is None:
            values = np.sort(np.array(self._head))
            center = float(values[values.size // 2])
            zeros = np.zeros(values.size)
            return center, Body(np.ones(values.size), values - center, zeros, zeros, zeros, zeros)
        center, equal = self._cells.center, self._cells.equal
        keys, cells = self._cells.occupied()
        count, first = cells[:, COUNT], cells[:, FIRST] + cells[:, FIRST_LOST]
        w = cell_widths(keys[:, 0])
        mean = first / count
        # Moments in units of w. E covers their rounding, but the second one must not be negative.
        second = np.maximum(cells[:, SECOND] - first * mean, 0.0)
        third = cells[:, THIRD] - mean * (3.0 * cells[:, SECOND] - 2.0 * first * mean)
        start = cell_starts(keys[:, 1], w, center)
        body = Body(count, start + w * mean, w, second, third, np.maximum(mean, 1.0 - mean))
        if equal:
            body = Body(*(np.append(a, b) for a, b in zip(body, (float(equal), 0.0, 0.0, 0.0, 0.0, 0.0), strict=True)))
        return center, body

    def _take(self, values: Floats) -> None:
        self._n += values.size
        if self._cells is None:
            more = HEAD - len(self._head)
            self._head.extend(values[:more].tolist())
            values = values[more:]
            if len(self._head) < HEAD:
                return
            head, self._head = np.array(self._head), []
            self._cells = Cells(float(np.sort(head)[HEAD // 2]))
            self._cells.take(head)
        self._cells.take(values)

    def _add(self, other: Catoni) -> None:
        if other._cells is None:
            if other._head:
                self._take(np.array(other._head))
            return
        head, self._head = self._head, []
        if self._cells is None:
            self._cells = Cells(other._cells.center)
        self._cells.merge(other._cells)
        self._n += other._n
        self._cells.take(np.array(head))

    def _save(self) -> dict[str, Any]:
        center, equal, rows = None, 0, []
        if self._cells is not None:
            center, equal = self._cells.center, self._cells.equal
            keys, cells = self._cells.occupied()
            rows = [[*key, *row] for key, row in zip(keys.tolist(), cells.tolist(), strict=True)]
        return {"n": self._n, "head": list(self._head), "center": center, "equal": equal, "cells": rows}

    def _load(self, saved: Saved) -> None:
        n = saved.count("n")
        head = saved.numbers("head", most=HEAD - 1)
        center = saved.take("center")
        equal = saved.count("equal", most=n)
        rows = saved.take("cells")
        if type(rows) is not list:
            raise saved.damaged("cells", rows, "a list")
        if center is None:
            if equal or rows or head.size != n:
                raise saved.damaged("center", center, "a number, because there are values outside the head")
            self._head, self._n = head.tolist(), n
            return
        if head.size:
            raise saved.damaged("head", head.tolist(), "empty once there is a center")
        self._cells = Cells(within(center, "center", -self.largest, self.largest, owner=saved.owner))
        self._cells.equal = total = equal
        for row in rows:
            if rule := self._cells.put(row):
                raise saved.damaged("cells", row, rule)
            total += int(row[2 + COUNT])
        if total != n:
            raise saved.damaged("n", n, f"the number of values in the cells, {total}")
        self._n = n
