"""The state and the index of AdaKL-Proved: a likelihood bound of the rewards after trimming.

With n rewards X and the threshold M from the rewards X', a reward of X beyond M counts as 0. The bound is ``min over l >= M of l -
exp(-C + mean log(l - X))`` with ``n C = L + log(e (n + 2))`` and L = 3 log tau. It exists once over c L rewards of X' are not 0. A
curve (:mod:`robandit.policies.adakl.curve`) updates it in O(1) time per reward. The first ``BIG_ABOVE`` stored rewards are trimmed.
When that number changes, the curve is rebuilt.

**The state** stores rewards in descending order of size. Rewards up to ``cut`` are in power sums. The cut is a quarter of the
lowest future threshold, computed from today's data at the largest level of the run. So these rewards are never trimmed and always
small compared with l. At most a few thousand rewards are above the cut, for any number of pulls. If the data drift or are sorted,
more are: those up to four cuts join clusters (:mod:`robandit.policies.adakl.clusters`). A live bandit has a limit. If dependent
data exceed it even so, the smallest rewards join the power sums, and ``fallbacks`` counts the curves made with an l below four
cuts.

**The arg-max is lazy** (:mod:`robandit.kernel.lazy`). For a fixed l the bound is concave in the level, and l stays feasible until
a known level. So the tangent is above the index until then.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.estimators.formulas.likelihood import proved_exponent
from robandit.estimators.formulas.threshold import C, threshold_root
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import lazy_state
from robandit.kernel.types import Floats, Ints
from robandit.policies.adakl.clusters import CLUSTER, CLUSTERS, FEWEST, TERMS, add_near, gather, joins, total_of
from robandit.policies.adakl.curve import (
    AT,
    CURVE,
    GAP,
    READY,
    STEP,
    Sample,
    add_value,
    add_zero,
    follow,
    remake,
    rescale,
    value_at,
)
from robandit.policies.adar.layout import (
    BIG,
    BIG_ABOVE,
    BIG_NEXT,
    BIG_VALUE,
    FALLBACKS,
    FULL,
    IN_TOP,
    ISSUED_TOP,
    ISSUED_X,
    LIMIT,
    N_NONZERO,
    N_X,
    ROUNDS,
    TOP,
    TOP_ABOVE,
    TOP_BELOW,
    TOP_NEXT,
    TOP_VALUE,
    clipped_at,
    insert_top,
    lowest_threshold,
    new_clock,
    rest_above,
    trimmed_at,
)

FACTOR = 3.0  # of the logarithm in L
SOONEST = 128  # rewards of X' from which rewards may join power sums
SLACK = 1e-11
TINY = 1e-150  # smaller rewards count as 0, so that squares do not underflow

# Columns of ``arms``, in addition to `layout.TOP_BELOW`. Version 0.2 used the missing ones.
TOP_CUT = 2  # sizes of X' up to this one are in TOP_BELOW
CUT = 3  # rewards up to this size are in the power sums
BOUND = 4  # the bound at the last evaluation
CHOSEN = 5  # whether there is one: TRIMMED or NONE
THRESHOLD = 6  # the threshold at the last evaluation
ARM_FLOATS = 13
assert TOP_BELOW == ARM_FLOATS - 1

# Columns of ``counts``, after those of `layout`.
N_TOP = 10  # rewards in X', zeros included
N_NEAR = 11  # rewards in the power sums
ARM_INTS = 12

ROWS = 3  # rows of an arm's buffer, as in `layout`

CAPACITY = 256  # values in a row of the buffer, before it grows
TRIMMED, NONE = 0, 2  # values of CHOSEN
CURVES = 2  # rows of an arm in ``curves``; only the first is used, but version 0.2 saved two


class Params(NamedTuple):
    """The parameter as a number."""

    double: int


class State(NamedTuple):
    """The arrays of a run; their columns are named above and in `layout`."""

    arms: Floats  # (arms, ARM_FLOATS)
    counts: Ints  # (arms, ARM_INTS)
    buffer: Floats  # (arms, ROWS, capacity + 1)
    near: Floats  # (arms, TERMS)
    far: Floats  # (arms, CLUSTERS, CLUSTER)
    curves: Floats  # (arms, CURVES, CURVE)
    limits: Floats  # [largest c L, largest L]
    lines: Floats
    lead: Ints
    clock: Ints


def new_state(arms: int, largest: float, limit: int) -> State:
    """Return the state of a new run with the largest level L and a limit on the stored values."""
    numbers = np.zeros((arms, ARM_FLOATS))
    numbers[:, CHOSEN] = NONE
    counts = np.zeros((arms, ARM_INTS), dtype=np.int64)
    counts[:, [TOP_NEXT, BIG_NEXT]] = CAPACITY
    lines, lead = lazy_state(arms)
    return State(
        arms=numbers,
        counts=counts,
        buffer=np.zeros((arms, ROWS, CAPACITY + 1)),
        near=np.zeros((arms, TERMS)),
        far=np.zeros((arms, CLUSTERS, CLUSTER)),
        curves=np.zeros((arms, CURVES, CURVE)),
        limits=np.array([C * largest, largest]),
        lines=lines,
        lead=lead,
        clock=new_clock(limit),
    )


@out_of_line
def learn(s: State, arm: int, reward: float, mark: float) -> None:
    """Add a reward to its stream."""
    z = reward
    if abs(z) < TINY:
        z = 0.0
    if mark == IN_TOP:
        learn_threshold(s, arm, abs(z))
    else:
        learn_value(s, arm, z)


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


def learn_value(s: State, arm: int, z: float) -> None:
    """Add a value to the curve, and store the value or its powers."""
    counts = s.counts[arm]
    numbers = s.arms[arm]
    counts[N_X] += 1
    trimmed = s.curves[arm, TRIMMED]
    if abs(z) <= numbers[CUT]:
        counts[N_NEAR] += 1
        if z != 0.0:
            add_near(s.near[arm], z / numbers[CUT])
        if trimmed[READY] != 0.0:
            add_value(trimmed, z)
    elif abs(z) <= 4.0 * numbers[CUT] and joins(s.far[arm], z):  # rewards up to four cuts are never trimmed
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


@out_of_line
def insert_big(big: Floats, counts: Ints, z: float) -> int:
    """Insert a value by size and return its place. A value inserted before the last trimmed one is trimmed too."""
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
    """Drop sizes below every later threshold, and move values that are small compared with every later l to the power sums."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    top = s.buffer[arm, TOP_VALUE]
    big = s.buffer[arm, BIG_VALUE]
    room = top.shape[0] - 1
    if counts[N_NONZERO] > s.limits[0] and counts[N_TOP] >= SOONEST:
        lowest = lowest_threshold(s, arm)
        numbers[TOP_CUT] = max(numbers[TOP_CUT], lowest)
        while counts[TOP] > 0 and top[counts[TOP] - 1] <= numbers[TOP_CUT]:
            counts[TOP] -= 1
        move_near(s, arm, (1.0 - 1e-9) * lowest / 4.0)
        if counts[BIG] >= 2 * FEWEST:
            first = 0
            while first < counts[BIG] and abs(big[first]) > 4.0 * numbers[CUT]:
                first += 1
            n = float(counts[N_X])
            counts[BIG] = gather(s.far[arm], big, first, counts[BIG], lowest, n, float(counts[N_NEAR]))
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
    if not cut > numbers[CUT]:  # also if it is NaN
        return
    rescale(near, numbers[CUT] / cut)
    numbers[CUT] = cut
    while counts[BIG] > 0 and abs(big[counts[BIG] - 1]) <= cut:
        counts[BIG] -= 1
        counts[N_NEAR] += 1
        add_near(near, big[counts[BIG]] / cut)


def describe(p: Params, s: State, arm: int, out: Floats) -> None:
    """Fill in trimmed mean, index, threshold and share of X above it, for the next round."""
    level = level_of(s)
    fallbacks = s.clock[FALLBACKS]
    numbers = s.arms[arm]
    out[0] = math.nan
    out[1] = index(p, s, arm, level)
    out[2] = math.nan
    out[3] = math.nan
    n = s.counts[arm, N_X]
    if out[1] < math.inf:
        first = s.counts[arm, BIG_ABOVE]
        out[2] = numbers[THRESHOLD]
        out[3] = first / n
        total = s.near[arm, 0] * numbers[CUT] + total_of(s.far[arm])
        for j in range(first, s.counts[arm, BIG]):
            total += s.buffer[arm, BIG_VALUE, j]
        out[0] = total / n
    s.clock[FALLBACKS] = fallbacks  # only decisions are counted


def pulls_issued(p: Params, s: State, arm: int) -> int:
    """Return the pulls of an arm, rewarded or not. In a tie the arm with the fewest wins."""
    return s.counts[arm, ISSUED_X] + s.counts[arm, ISSUED_TOP]


def level_of(s: State) -> float:
    """Return L of the next round."""
    return FACTOR * math.log(1.0 + float(s.clock[ROUNDS]))


@out_of_line
def index(p: Params, s: State, arm: int, level: float) -> float:
    """Return the bound, or infinity while there is none."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    numbers[CHOSEN] = NONE
    numbers[THRESHOLD] = 0.0
    numbers[BOUND] = math.inf
    if counts[N_NONZERO] > C * level and counts[N_X] > 0:
        numbers[BOUND] = trimmed_bound(s, arm, float(counts[N_X]), level)
        numbers[CHOSEN] = TRIMMED
    return numbers[BOUND]


@out_of_line
def trimmed_bound(s: Any, arm: int, n: float, level: float) -> float:
    """Return the bound of the rewards after trimming. The floor of l is the threshold."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    curve = s.curves[arm, TRIMMED]
    a = C * level
    d = clipped_at(s, arm, a)
    counts[TOP_ABOVE] = d
    threshold = threshold_root(rest_above(s, arm, d), a, d)
    numbers[THRESHOLD] = threshold
    trimmed = trimmed_at(s, arm, threshold)
    exponent = proved_exponent(level, n)
    if trimmed != counts[BIG_ABOVE]:
        counts[BIG_ABOVE] = trimmed
        curve[READY] = 0.0
    if curve[READY] == 0.0 or not follow(curve, n, exponent, threshold, 0.0, 0.0, 0.0):
        rebuild(s, arm, trimmed, n * exponent, threshold)
    return value_at(curve, n, exponent, curve[STEP], 0.0, 0.0, 0.0)


@out_of_line
def rebuild(s: State, arm: int, first: int, level: float, floor: float) -> None:
    """Rebuild the curve from the stored rewards, of which the ``first`` ones are trimmed."""
    curve = s.curves[arm, TRIMMED]
    counts = s.counts[arm]
    sample = Sample(
        kept=s.buffer[arm, BIG_VALUE],
        first=first,
        last=counts[BIG],
        near=s.near[arm],
        cut=s.arms[arm, CUT],
        n_near=float(counts[N_NEAR]),
        far=s.far[arm],
        zeros=first,
        n=float(counts[N_X]),
        up=0.0,
        down=0.0,
        edge=0.0,
    )
    remake(curve, sample, level, floor)
    if curve[AT] < 3.9999 * sample.cut:
        s.clock[FALLBACKS] += 1


@out_of_line
def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """Return the tangent of the bound at the last l, valid until l is infeasible or the trimmed rewards change."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    if int(numbers[CHOSEN]) == NONE:
        return math.inf, 0.0, math.inf
    curve = s.curves[arm, TRIMMED]
    bound = numbers[BOUND]
    until = (1.0 - SLACK) * min(counts[N_NONZERO] / C, next_event(s, arm))
    at = curve[AT] + curve[STEP] * curve[GAP]
    return bound + SLACK * abs(bound), (at - bound) / float(counts[N_X]) * (1.0 + SLACK), until


def next_event(s: State, arm: int) -> float:
    """Return the level at which the threshold falls to the largest reward that is not trimmed."""
    counts = s.counts[arm]
    if counts[BIG_ABOVE] == counts[BIG]:
        return math.inf
    size = abs(s.buffer[arm, BIG_VALUE, counts[BIG_ABOVE]])
    top = s.buffer[arm, TOP_VALUE]
    d = counts[TOP_ABOVE]
    while d < counts[TOP] and top[d] > size:
        d += 1
    return (d + rest_above(s, arm, d) / (size * size)) / C
