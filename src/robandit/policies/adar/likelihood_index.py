"""The index of AdaKL-UCB: the smaller of two likelihood bounds, one of the trimmed and one of the untrimmed rewards.

A curve (:mod:`robandit.policies.adar.curve`) updates each bound in O(1) time per reward. Only the practical schedule has a curve
for the untrimmed rewards. The first ``BIG_ABOVE`` rewards are trimmed. When that number changes, the trimmed curve is rebuilt.

**The state** stores rewards minus the centre of their arm, in descending order of size. Rewards up to ``cut`` are in power sums.
The cut is a quarter of the lowest future threshold and of the lowest future l, both computed from today's data at the largest
level of the run. So these rewards are never trimmed and always small compared with l. At most a few thousand rewards are above
the cut, for any number of pulls. If the data drift or are sorted, more are: those up to four cuts join clusters
(:mod:`robandit.policies.adar.clusters`). A live bandit has a limit. If dependent data exceed it even so, the smallest rewards join
the power sums, and ``fallbacks`` counts the curves made with an l below four cuts.

**The arg-max is lazy** (:mod:`robandit.kernel.lazy`). For a fixed l the bound is concave in the level, and l stays feasible until
a known level. So the tangent is above the index until then.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.estimators.formulas.likelihood import proved_exponent
from robandit.estimators.formulas.threshold import threshold_root
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import lazy_state
from robandit.kernel.types import Floats, Ints
from robandit.policies.adar.centre import FIRST, due, median_in_place
from robandit.policies.adar.clusters import CLUSTER, CLUSTERS, FEWEST, TERMS, add_near, gather, joins, total_of
from robandit.policies.adar.curve import (
    AT,
    CURVE,
    GAP,
    RADIUS,
    READY,
    STEP,
    add_value,
    add_zero,
    follow,
    minimiser,
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
    IN_X,
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
    TOP_SQUARES,
    TOP_VALUE,
    clipped_at,
    insert_top,
    lowest_threshold,
    new_clock,
    rest_above,
    trimmed_at,
)

UNSEEN = 4.0  # rewards per unit of L after which an arm without a reward above the centre is no longer forced
WINDOW = 0.02  # share of the level by which a line looks ahead when l is at its floor
SLACK = 1e-11
TINY = 1e-150  # rewards this near to the centre count as equal to it, so that squares do not underflow

# Columns of ``arms``, in addition to `layout.TOP_BELOW`.
CENTRE = 0
HIGHEST = 1  # the largest X - centre, or 0 if all are negative
TOP_CUT = 2  # sizes of X' up to this one are in TOP_BELOW
CUT = 3  # rewards up to this size are in the power sums
BOUND = 4  # the smaller of the two bounds at the last evaluation
CHOSEN = 5  # the curve of BOUND
THRESHOLD = 6  # the threshold at the last evaluation
ARM_FLOATS = 13
assert TOP_BELOW == ARM_FLOATS - 1

# Columns of ``counts``, after those of `layout`.
N_TOP = 10  # rewards in X', zeros included
N_NEAR = 11  # rewards in the power sums
ARM_INTS = 12

ROWS = 3  # rows of an arm's buffer, as in `layout`

TRIMMED, FREE, NONE, CONSTANT = 0, 1, 2, 3  # values of CHOSEN: two curves; no finite bound; all rewards are equal


class Params(NamedTuple):
    """The parameters as numbers."""

    c: float
    guard: float
    factor: float  # factor of the logarithm in L
    practical: int
    centred: int
    double: int


class State(NamedTuple):
    """The arrays of a run; their columns are named above and in `layout`."""

    arms: Floats  # (arms, ARM_FLOATS)
    counts: Ints  # (arms, ARM_INTS)
    buffer: Floats  # (arms, ROWS, capacity + 1)
    near: Floats  # (arms, TERMS)
    far: Floats  # (arms, CLUSTERS, CLUSTER)
    curves: Floats  # (arms, 2, CURVE)
    firsts: Floats  # (arms, 2, FIRST)
    limits: Floats  # [largest c L, largest L]
    lines: Floats
    lead: Ints
    clock: Ints


def new_state(arms: int, c: float, largest: float, limit: int) -> State:
    """Return the state of a new run with the largest level L and a limit on the stored values."""
    capacity = 2 * FIRST
    numbers = np.zeros((arms, ARM_FLOATS))
    numbers[:, CHOSEN] = NONE
    counts = np.zeros((arms, ARM_INTS), dtype=np.int64)
    counts[:, [TOP_NEXT, BIG_NEXT]] = capacity
    buffer, near = np.zeros((arms, ROWS, capacity + 1)), np.zeros((arms, TERMS))
    curves, firsts = np.zeros((arms, 2, CURVE)), np.zeros((arms, 2, FIRST))
    far = np.zeros((arms, CLUSTERS, CLUSTER))
    limits = np.array([c * largest, largest])
    return State(numbers, counts, buffer, near, far, curves, firsts, limits, *lazy_state(arms), new_clock(limit))


@out_of_line
def collect(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
    """Learn one of the first rewards, store it unchanged, and recompute the centre when that is due."""
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
    """Add a reward, minus the centre, to its stream. The practical schedule adds it to both streams."""
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
    """Add a value to the curves, and store the value or its powers."""
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
    if p.practical != 0 and s.curves[arm, FREE, READY] != 0.0:
        add_value(s.curves[arm, FREE], z)


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
    if counts[N_NONZERO] > s.limits[0] and counts[N_TOP] >= FIRST:
        lowest = lowest_threshold(s, arm)
        numbers[TOP_CUT] = max(numbers[TOP_CUT], lowest)
        while counts[TOP] > 0 and top[counts[TOP] - 1] <= numbers[TOP_CUT]:
            counts[TOP] -= 1
        free = s.curves[arm, FREE]
        if free[AT] > 0.0:  # the curve is in use
            n = float(counts[N_X])
            least = minimiser(
                big, 0, counts[BIG], s.near[arm], numbers[CUT], s.far[arm], n, s.limits[1], 0.0, free[AT], 0.0, 0.0, 0.0
            )
            lowest = min(lowest, least)
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
    """Fill in trimmed mean (plain if nothing is trimmed), index, threshold and share of X above it, for the next round."""
    level = level_of(p, s)
    fallbacks = s.clock[FALLBACKS]
    numbers = s.arms[arm]
    out[0] = math.nan
    out[1] = index(p, s, arm, level)
    out[2] = math.nan
    out[3] = math.nan
    n = s.counts[arm, N_X]
    if out[1] < math.inf:
        first = 0
        if numbers[THRESHOLD] > 0.0:
            first = s.counts[arm, BIG_ABOVE]
            out[2] = numbers[THRESHOLD]
            out[3] = first / n
        total = s.near[arm, 0] * numbers[CUT] + total_of(s.far[arm])
        for j in range(first, s.counts[arm, BIG]):
            total += s.buffer[arm, BIG_VALUE, j]
        out[0] = numbers[CENTRE] + total / n
    s.clock[FALLBACKS] = fallbacks  # only decisions are counted


def pulls_issued(p: Params, s: State, arm: int) -> int:
    """Return the pulls of an arm, rewarded or not. In a tie the arm with the fewest wins."""
    return s.counts[arm, ISSUED_X] + s.counts[arm, ISSUED_TOP]


def level_of(p: Params, s: State) -> float:
    """Return L of the next round."""
    begun = float(s.clock[ROUNDS])
    if p.practical != 0:
        begun /= s.counts.shape[0]
    return p.factor * math.log(1.0 + begun)


@out_of_line
def index(p: Params, s: State, arm: int, level: float) -> float:
    """Return the centre plus the smaller of the two bounds, or infinity while neither exists."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    n = float(counts[N_X])
    numbers[CHOSEN] = NONE
    numbers[THRESHOLD] = 0.0
    bound = math.inf
    if p.practical != 0:
        if counts[N_X] < 2 or (numbers[HIGHEST] == 0.0 and n <= UNSEEN * level):
            return math.inf
        if counts[N_NONZERO] == 0:
            numbers[CHOSEN] = CONSTANT
            return numbers[CENTRE]
        bound = free_bound(s, arm, n, level)
        numbers[CHOSEN] = FREE
    if counts[N_NONZERO] > p.guard * level and counts[N_X] > 0:
        trimmed = trimmed_bound(p, s, arm, n, level)
        if trimmed < bound:
            bound = trimmed
            numbers[CHOSEN] = TRIMMED
    numbers[BOUND] = bound
    return numbers[CENTRE] + bound


def exponent_of(p: Params, n: float, level: float) -> float:
    """Return C of the trimmed bound. The proved schedule adds the cost of a bound that holds for all l."""
    if p.practical != 0:
        return level / n
    return proved_exponent(level, n)


@out_of_line
def free_bound(s: State, arm: int, n: float, level: float) -> float:
    """Return the bound of the untrimmed rewards. The floor of l is the largest reward times a factor that tends to 1."""
    curve = s.curves[arm, FREE]
    exponent = level / n
    floor = s.arms[arm, HIGHEST] * math.exp(level / (n - 1.0))
    if curve[READY] == 0.0 or not follow(curve, n, exponent, floor, 0.0, 0.0, 0.0):
        rebuild(s, arm, FREE, 0, n * exponent, floor)
    return value_at(curve, n, exponent, curve[STEP], 0.0, 0.0, 0.0)


@out_of_line
def trimmed_bound(p: Params, s: Any, arm: int, n: float, level: float) -> float:
    """Return the bound of the rewards after trimming towards the centre. The floor of l is the threshold."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    curve = s.curves[arm, TRIMMED]
    a = p.c * level
    d = clipped_at(s, arm, a)
    counts[TOP_ABOVE] = d
    threshold = threshold_root(rest_above(s, arm, d), a, d)
    numbers[THRESHOLD] = threshold
    trimmed = trimmed_at(s, arm, threshold)
    exponent = exponent_of(p, n, level)
    if trimmed != counts[BIG_ABOVE]:
        counts[BIG_ABOVE] = trimmed
        curve[READY] = 0.0
    if curve[READY] == 0.0 or not follow(curve, n, exponent, threshold, 0.0, 0.0, 0.0):
        rebuild(s, arm, TRIMMED, trimmed, n * exponent, threshold)
    return value_at(curve, n, exponent, curve[STEP], 0.0, 0.0, 0.0)


@out_of_line
def rebuild(s: State, arm: int, which: int, first: int, level: float, floor: float) -> None:
    """Rebuild a curve from the stored rewards."""
    curve = s.curves[arm, which]
    counts = s.counts[arm]
    cut = s.arms[arm, CUT]
    n_near = float(counts[N_NEAR])
    n = float(counts[N_X])
    remake(
        curve,
        s.buffer[arm, BIG_VALUE],
        first,
        counts[BIG],
        s.near[arm],
        cut,
        s.far[arm],
        n_near,
        n,
        level,
        floor,
        first,
        0.0,
        0.0,
        0.0,
    )
    if curve[AT] < 3.9999 * cut:
        s.clock[FALLBACKS] += 1


@out_of_line
def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """Return the tangent of the bound at the last l, valid until l is infeasible or the trimmed rewards change."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    n = float(counts[N_X])
    which = int(numbers[CHOSEN])
    if which == NONE:
        return math.inf, 0.0, math.inf
    unseen = math.inf
    if p.practical != 0 and numbers[HIGHEST] == 0.0:
        unseen = (1.0 - SLACK) * n / UNSEEN
    if which == CONSTANT:
        return numbers[CENTRE], 0.0, unseen
    curve = s.curves[arm, which]
    step = curve[STEP]
    bound = numbers[BOUND]
    if which == TRIMMED:
        until = (1.0 - SLACK) * min(counts[N_NONZERO] / p.guard, next_event(p, s, arm))
    else:
        until = unseen
        if numbers[HIGHEST] > 0.0:
            at = curve[AT] + step * curve[GAP]
            ahead = numbers[HIGHEST] * math.exp((1.0 + WINDOW) * level / (n - 1.0))
            if at < ahead:
                step = min((ahead - curve[AT]) / curve[GAP], RADIUS)
                at = curve[AT] + step * curve[GAP]
                bound = value_at(curve, n, level / n, step, 0.0, 0.0, 0.0)
            until = (1.0 - SLACK) * (n - 1.0) * math.log(at / numbers[HIGHEST])
    at = curve[AT] + step * curve[GAP]
    height = numbers[CENTRE] + bound + SLACK * (abs(numbers[CENTRE]) + abs(bound))
    return height, (at - bound) / n * (1.0 + SLACK), until


def next_event(p: Params, s: State, arm: int) -> float:
    """Return the level at which the threshold falls to the largest reward that is not trimmed."""
    counts = s.counts[arm]
    if counts[BIG_ABOVE] == counts[BIG]:
        return math.inf
    size = abs(s.buffer[arm, BIG_VALUE, counts[BIG_ABOVE]])
    top = s.buffer[arm, TOP_VALUE]
    d = counts[TOP_ABOVE]
    while d < counts[TOP] and top[d] > size:
        d += 1
    return (d + rest_above(s, arm, d) / (size * size)) / p.c
