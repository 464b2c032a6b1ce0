"""The state of AdaKL-UCB: rewards minus the centre of their arm, those near the centre as power sums.

**For the threshold** it keeps the largest sizes with suffix sums of squares (:mod:`robandit.policies.adar.layout`).

**For the curves** (:mod:`robandit.policies.adar.curve`) it keeps the rewards, minus the centre, in descending order of size.
Those up to ``cut`` are in power sums. The cut is a quarter of the lowest threshold and of the lowest l to come, so these rewards
are never trimmed and always small against l. Both lowest values are those of today's data at the largest level of the run. At
most some thousands of rewards are above the cut, for any number of pulls.

**The trimmed rewards** are the first ``BIG_ABOVE`` in that order. While this number stays, a new reward changes each curve by
one term; when the threshold crosses a reward, the curve is rebuilt.

In a live bandit the number of stored rewards has a limit, as in AdaR-UCB. If dependent data exceed it, the smallest move to the
power sums, and the counter ``fallbacks`` counts the curves made with an l below four cuts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import lazy_state
from robandit.kernel.types import Floats, Ints
from robandit.policies.adar.centre import FIRST, due, median_in_place
from robandit.policies.adar.curve import AT, CURVE, READY, TERMS, add_near, add_value, add_zero, minimiser
from robandit.policies.adar.layout import (
    BIG,
    BIG_ABOVE,
    BIG_NEXT,
    BIG_VALUE,
    FULL,
    IN_TOP,
    IN_X,
    LIMIT,
    N_NONZERO,
    N_X,
    TOP,
    TOP_ABOVE,
    TOP_BELOW,
    TOP_NEXT,
    TOP_SQUARES,
    TOP_VALUE,
    insert_top,
    lowest_threshold,
    new_clock,
)

TINY = 1e-150  # rewards this near to the centre count as equal to it: squares must not underflow

# Numbers of an arm, besides `layout.TOP_BELOW`.
CENTRE = 0
HIGHEST = 1  # the largest X - centre, at least 0
TOP_CUT = 2  # sizes up to this are in TOP_BELOW
CUT = 3  # rewards of this size or less are in the power sums
BOUND = 4  # at the last evaluation: the smaller of the two bounds,
CHOSEN = 5  # its curve,
THRESHOLD = 6  # and the threshold
ARM_FLOATS = 13
assert TOP_BELOW == ARM_FLOATS - 1

# Counts of an arm, after those of `layout`.
N_TOP = 10  # rewards in X', zeros included
N_NEAR = 11  # rewards in the power sums
ARM_INTS = 12

ROWS = 3  # of an arm's buffer: those of `layout`

TRIMMED, FREE, NONE, CONSTANT = 0, 1, 2, 3  # CHOSEN: a curve; no finite bound; all rewards equal


class Params(NamedTuple):
    """The parameters as numbers."""

    c: float
    guard: float
    factor: float  # of the logarithm in L
    practical: int
    centred: int
    double: int


class State(NamedTuple):
    """See the names above and in `layout`."""

    arms: Floats  # (arms, ARM_FLOATS)
    counts: Ints  # (arms, ARM_INTS)
    buffer: Floats  # (arms, ROWS, capacity + 1)
    near: Floats  # (arms, TERMS)
    curves: Floats  # (arms, 2, CURVE)
    firsts: Floats  # (arms, 2, FIRST)
    limits: Floats  # [largest c L, largest L]
    lines: Floats
    lead: Ints
    clock: Ints


def new_state(arms: int, c: float, largest: float, limit: int) -> State:
    """Return the state of a new run, with its largest level L and its limit of stored values."""
    capacity = 2 * FIRST
    numbers = np.zeros((arms, ARM_FLOATS))
    numbers[:, CHOSEN] = NONE
    counts = np.zeros((arms, ARM_INTS), dtype=np.int64)
    counts[:, [TOP_NEXT, BIG_NEXT]] = capacity
    return State(
        numbers,
        counts,
        np.zeros((arms, ROWS, capacity + 1)),
        np.zeros((arms, TERMS)),
        np.zeros((arms, 2, CURVE)),
        np.zeros((arms, 2, FIRST)),
        np.array([c * largest, largest]),
        *lazy_state(arms),
        new_clock(limit),
    )


@out_of_line
def collect(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
    """Learn one of the first rewards, keep it as it came, and recompute the centre when that is due."""
    counts = s.counts[arm]
    firsts = s.firsts[arm]
    if p.practical != 0:
        firsts[1, counts[N_TOP]] = reward
    elif mark == IN_TOP or counts[N_X] == FIRST:
        mark = IN_TOP
        firsts[1, counts[N_TOP]] = reward
    else:
        firsts[0, counts[N_X]] = reward
    learn(p, s, arm, reward, mark)
    if (p.practical != 0 or mark == IN_TOP) and due(counts[N_TOP]):
        n_x = counts[N_X]
        n_top = counts[N_TOP]
        s.arms[arm] = 0.0
        counts[N_X] = counts[N_NONZERO] = counts[TOP] = counts[TOP_ABOVE] = counts[BIG] = counts[BIG_ABOVE] = 0
        counts[N_TOP] = counts[N_NEAR] = 0
        s.buffer[arm, TOP_SQUARES, 0] = 0.0
        s.curves[arm] = 0.0
        s.arms[arm, CENTRE] = median_in_place(firsts[1], n_top)
        for j in range(n_top):
            learn(p, s, arm, firsts[1, j], IN_TOP)
        if p.practical == 0:
            for j in range(n_x):
                learn(p, s, arm, firsts[0, j], IN_X)


@out_of_line
def learn(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
    """Add a reward, minus the centre, to its stream or streams."""
    z = reward - s.arms[arm, CENTRE]
    if abs(z) < TINY:
        z = 0.0
    if p.practical != 0 or mark == IN_TOP:
        learn_threshold(s, arm, abs(z))
    if p.practical != 0 or mark != IN_TOP:
        learn_value(p, s, arm, z)


def learn_threshold(s: State, arm: int, size: float) -> None:
    """Insert a size among the largest, or add it to the running sum of squares."""
    counts = s.counts[arm]
    counts[N_TOP] += 1
    if size == 0.0:
        return
    counts[N_NONZERO] += 1
    if size <= s.arms[arm, TOP_CUT]:
        s.arms[arm, TOP_BELOW] += size * size
    else:
        insert_top(s.buffer[arm], counts, size)
        if counts[TOP] >= counts[TOP_NEXT]:
            merge(s, arm)


def learn_value(p: Params, s: State, arm: int, z: float) -> None:
    """Add a value to the curves, and store it or its powers."""
    counts = s.counts[arm]
    numbers = s.arms[arm]
    counts[N_X] += 1
    numbers[HIGHEST] = max(numbers[HIGHEST], z)
    trimmed = s.curves[arm, TRIMMED]
    if abs(z) <= numbers[CUT]:
        counts[N_NEAR] += 1
        if z != 0.0:
            add_near(s.near[arm], z / numbers[CUT])
        if trimmed[READY] != 0.0:
            add_value(trimmed, z)
    else:
        place = insert_big(s.buffer[arm, BIG_VALUE], counts, z)
        if trimmed[READY] != 0.0:
            if place < counts[BIG_ABOVE]:
                add_zero(trimmed)
            else:
                add_value(trimmed, z)
        if counts[BIG] >= counts[BIG_NEXT]:
            merge(s, arm)
    if p.practical != 0 and s.curves[arm, FREE, READY] != 0.0:
        add_value(s.curves[arm, FREE], z)


@out_of_line
def insert_big(big: Floats, counts: Ints, z: float) -> int:
    """Insert a value by size and return its place. One before the last trimmed value is trimmed too."""
    place = counts[BIG]
    size = abs(z)
    while place > 0 and abs(big[place - 1]) < size:
        big[place] = big[place - 1]
        place -= 1
    big[place] = z
    counts[BIG] += 1
    if place < counts[BIG_ABOVE]:
        counts[BIG_ABOVE] += 1
    return place


@out_of_line
def merge(s: Any, arm: int) -> None:
    """Drop sizes below every later threshold, and move values that are small against every later l to the power sums."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    top = s.buffer[arm, TOP_VALUE]
    big = s.buffer[arm, BIG_VALUE]
    room = top.shape[0] - 1
    if counts[N_NONZERO] > s.limits[0] and counts[N_TOP] >= FIRST:
        lowest = lowest_threshold(s, arm)
        numbers[TOP_CUT] = max(numbers[TOP_CUT], lowest)
        while counts[TOP] > 0 and top[counts[TOP] - 1] <= numbers[TOP_CUT]:
            counts[TOP] -= 1
        free = s.curves[arm, FREE]
        if free[AT] > 0.0:  # in use
            n = float(counts[N_X])
            least = minimiser(big, 0, counts[BIG], s.near[arm], numbers[CUT], n, s.limits[1], 0.0, free[AT])
            lowest = min(lowest, least)
        move_near(s, arm, (1.0 - 1e-9) * lowest / 4.0)
    if counts[BIG] == room or counts[TOP] == room:
        if room < s.clock[LIMIT]:
            s.clock[FULL] = 1
        else:
            if counts[BIG] == room:
                move_near(s, arm, abs(big[room - 1 - room // 8]))
                s.curves[arm, TRIMMED, READY] = 0.0  # trimmed values may have moved
            if counts[TOP] == room:
                counts[TOP] -= room // 8
                numbers[TOP_CUT] = max(numbers[TOP_CUT], top[counts[TOP]])
    counts[TOP_ABOVE] = min(counts[TOP_ABOVE], counts[TOP])
    counts[BIG_ABOVE] = min(counts[BIG_ABOVE], counts[BIG])
    counts[TOP_NEXT] = min(room, counts[TOP] + counts[TOP] // 4 + 64)
    counts[BIG_NEXT] = min(room, counts[BIG] + counts[BIG] // 4 + 64)


def move_near(s: State, arm: int, cut: float) -> None:
    """Move values up to ``cut`` from the buffer to the power sums."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    near = s.near[arm]
    big = s.buffer[arm, BIG_VALUE]
    if cut <= numbers[CUT]:
        return
    factor = 1.0
    for k in range(TERMS):
        factor *= numbers[CUT] / cut
        near[k] *= factor
    numbers[CUT] = cut
    while counts[BIG] > 0 and abs(big[counts[BIG] - 1]) <= cut:
        counts[BIG] -= 1
        counts[N_NEAR] += 1
        add_near(near, big[counts[BIG]] / cut)
