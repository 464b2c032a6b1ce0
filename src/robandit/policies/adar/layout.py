"""The state that AdaR-UCB and AdaKL-Proved share: two streams of rewards per arm.

The stream X gives an arm's mean. The stream X' gives the threshold M, the root of ``sum_j min((X'_j / M)^2, 1) = c L``
(:mod:`robandit.estimators.formulas.threshold`). The state keeps the largest |X'| with suffix sums of squares, one running sum of
squares for all smaller |X'|, and the largest of X. The columns below are a saved format: they must not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from robandit.estimators.formulas.threshold import above_root, threshold_root
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints

LIVE_ROUNDS = 2**53  # a live bandit that decides every microsecond reaches this after 285 years
UNLIMITED = np.iinfo(np.int64).max

# Column of ``arms``.
TOP_BELOW = 12  # sum of squares of X' that were never stored

# Columns of ``counts``.
N_X = 0  # rewards in X
N_NONZERO = 1  # non-zero rewards in X'
TOP = 2  # stored |X'|
TOP_ABOVE = 3  # stored |X'| above M: d
BIG = 4  # stored X
BIG_ABOVE = 5  # stored X above M, which are trimmed
ISSUED_X = 6  # pulls made for X, rewarded or not; equals the rounds begun
ISSUED_TOP = 7  # pulls made for X'
TOP_NEXT = 8  # number of stored values at which to merge
BIG_NEXT = 9
COUNTS = 10

# Rows of an arm in ``buffer``, in descending order of size. Suffix sums include the values merged from the row's end.
TOP_VALUE = 0
TOP_SQUARES = 1
BIG_VALUE = 2

# Entries of ``clock``.
ROUNDS = 0  # rounds begun
CURRENT = 1  # the arm whose second pull is next, or -1
FULL = 2
FALLBACKS = 3
LIMIT = 4  # largest number of values in a buffer row
LEAST = 5  # a lower bound of the smallest N_NONZERO of the allowed arms
CLOCK = 6

IN_X, IN_TOP = 0.0, 1.0  # marks of a pull: its stream


def new_clock(limit: int) -> Ints:
    """Return the ``clock`` of a new run."""
    clock = np.zeros(CLOCK, dtype=np.int64)
    clock[CURRENT] = -1
    clock[LIMIT] = limit
    return clock


class Buffered:
    """What policies share whose state has a ``buffer`` that grows, and a ``clock`` with FULL, FALLBACKS and LIMIT."""

    columns: ClassVar[tuple[str, ...]] = ("mean", "index", "threshold", "share_trimmed")
    respects_allowed: ClassVar[bool] = True
    grows: ClassVar[Mapping[str, int] | None] = {"buffer": -1}

    def grow(self, state: Any) -> Any:
        *others, width = state.buffer.shape
        capacity = min(2 * (width - 1), int(state.clock[LIMIT]))
        buffer = np.zeros((*others, capacity + 1))
        buffer[..., :width] = state.buffer
        state.clock[FULL] = 0
        return state._replace(buffer=buffer)

    def counters(self, state: Any) -> dict[str, int]:
        """Return the number of evaluations that are inexact because a live bandit reached its memory limit."""
        return {"fallbacks": int(state.clock[FALLBACKS])}

    @staticmethod
    def full(p: Any, s: Any) -> bool:
        return s.clock[FULL] != 0


class TwoStreams(Buffered):
    """Hooks of policies whose rewards form the streams X and X'."""

    counts_unrewarded: ClassVar[bool] = True

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        """Assign a pull to the stream with fewer pulls of the arm, X first. The reward is not known yet."""
        counts = s.counts[arm]
        if counts[ISSUED_X] <= counts[ISSUED_TOP]:
            counts[ISSUED_X] += 1
            s.clock[ROUNDS] += 1
            mark = IN_X
        else:
            counts[ISSUED_TOP] += 1
            mark = IN_TOP
        if counts[ISSUED_X] > counts[ISSUED_TOP]:
            s.clock[CURRENT] = arm
        elif s.clock[CURRENT] == arm:
            s.clock[CURRENT] = -1
        return mark

    @staticmethod
    def expire(p: Any, s: Any, arm: int, mark: float) -> None:
        """Undo the count of a pull, so that the arm's next pull goes to the same stream. Among the unrewarded pulls it stays."""
        counts = s.counts[arm]
        if mark == IN_TOP:
            counts[ISSUED_TOP] -= 1
        else:
            counts[ISSUED_X] -= 1
            if s.clock[CURRENT] == arm and counts[ISSUED_X] <= counts[ISSUED_TOP]:
                s.clock[CURRENT] = -1


def round_open(s: Any) -> bool:
    """Return whether the next pull is the second of a round. A round of an arm that is not allowed is completed later."""
    return s.clock[CURRENT] >= 0 and s.allowed[s.clock[CURRENT]]


def rest_above(s: Any, arm: int, d: int) -> float:
    """Return S_d, the sum of squares of X' without its d largest."""
    return s.arms[arm, TOP_BELOW] + s.buffer[arm, TOP_SQUARES, d]


def clipped_at(s: Any, arm: int, a: float) -> int:
    """Return the number d of X' above the root. The search starts at the last d, which is rarely off by more than one."""
    top = s.buffer[arm, TOP_VALUE]
    squares = s.buffer[arm, TOP_SQUARES]
    below = s.arms[arm, TOP_BELOW]
    stored = s.counts[arm, TOP]
    d = s.counts[arm, TOP_ABOVE]
    while d < stored and above_root(top[d] * top[d], below + squares[d], a, d):
        d += 1
    while d > 0 and not above_root(top[d - 1] * top[d - 1], below + squares[d - 1], a, d - 1):
        d -= 1
    return d


def trimmed_at(s: Any, arm: int, threshold: float) -> int:
    """Return the number of X above the threshold. The search starts at the last answer."""
    big = s.buffer[arm, BIG_VALUE]
    stored = s.counts[arm, BIG]
    trimmed = s.counts[arm, BIG_ABOVE]
    while trimmed < stored and abs(big[trimmed]) > threshold:
        trimmed += 1
    while trimmed > 0 and abs(big[trimmed - 1]) <= threshold:
        trimmed -= 1
    return trimmed


def lowest_threshold(s: Any, arm: int) -> float:
    """Return a number below every later threshold: M at the run's largest L, because M grows with data and falls with L."""
    a = s.limits[0]
    d = clipped_at(s, arm, a)
    return threshold_root(rest_above(s, arm, d), a, d) * (1.0 - 1e-9)


@out_of_line
def insert_top(buffer: Floats, counts: Ints, size: float) -> None:
    """Insert |X'| and update the suffix sums of squares."""
    top = buffer[TOP_VALUE]
    squares = buffer[TOP_SQUARES]
    stored = counts[TOP]
    place = number_not_below(top, stored, size)
    shift_right(top, place, stored)
    shift_right(squares, place, stored + 1)
    top[place] = size
    for j in range(place + 1):
        squares[j] += size * size
    counts[TOP] += 1
    if place < counts[TOP_ABOVE]:
        counts[TOP_ABOVE] += 1


def number_not_below(row: Floats, stored: int, size: float) -> int:
    """Return how many stored values have at least this size. Counting compiles to vector instructions; a bisection does not."""
    count = 0
    for j in range(stored):
        count += abs(row[j]) >= size
    return count


def shift_right(row: Floats, start: int, end: int) -> None:
    """Move the values of ``row[start:end]`` one place to the right, in slices that start at 0 (with vector instructions)."""
    source, target = row[start:end], row[start + 1 : end + 1]
    for j in range(end - start - 1, -1, -1):
        target[j] = source[j]
