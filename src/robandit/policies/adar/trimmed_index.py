"""The index of AdaR-UCB: a trimmed mean with an empirical Bernstein bound, exact, in O(1) amortised time and bounded memory.

**Few values are stored.** M grows when data arrive and falls when L grows. So with today's data and the largest level of the run,
the root ``M_low`` of ``sum_j min((X'_j / M)^2, 1) = c L_max`` is below every later threshold, and values up to ``M_low`` go into
running sums. Only larger values are stored: fewer than ``c L_max`` of X', and with high probability about as many of X, so the
buffer can grow. If dependent data exceed the limit of a live bandit, the row is thinned: of all stored X in one *cell*, such as 1
to 1 + 1/1024 times a power of two, only the largest stays, and its suffix sums stand for all. That changes nothing unless M lies
inside of the cell of a stored X; ``fallbacks`` counts the evaluations for which it does.

**Between events the index has a closed form.** While M crosses no stored value, mean and variance are constant and M is ``sqrt(S /
(c L - d))``. The level of the next event is known in advance. Until then the index stays below a line (`outlook`).

**The sums are accurate.** With t of n rewards trimmed to zero, (n - 1) V is at least t/n times the sum of squares, so plain sums do
not cancel. Only if nothing is trimmed, sums over all X are used, shifted by the first X.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.estimators.formulas.threshold import doubled, threshold_root
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm
from robandit.kernel.types import Floats, Ints
from robandit.policies.adar.layout import (
    BIG,
    BIG_ABOVE,
    BIG_NEXT,
    BIG_VALUE,
    COUNTS,
    CURRENT,
    FALLBACKS,
    FULL,
    ISSUED_X,
    LEAST,
    LIMIT,
    N_NONZERO,
    N_X,
    ROUNDS,
    TOP,
    TOP_ABOVE,
    TOP_BELOW,
    TOP_NEXT,
    TOP_VALUE,
    UNLIMITED,
    clipped_at,
    insert_top,
    lowest_threshold,
    number_not_below,
    rest_above,
    round_open,
    shift_right,
    trimmed_at,
)

# Columns of ``arms``, in addition to `layout.TOP_BELOW`.
MEAN = 0  # trimmed mean, cached between events
SPREAD = 1  # var_factor * V / N
REACH = 2  # bonus * sqrt(S) / N (exact) or bonus * M / N (doubling)
CLIPPED = 3  # d, as a float
EVENT = 4  # level at which the four values above become invalid; -1 after new data
THRESHOLD = 5  # M at the level of the last refresh
SHIFT = 6  # the first X, subtracted in the next two sums
ALL_SUM = 7  # sum of X - SHIFT over all X
ALL_SQUARES = 8
BELOW_SUM = 9  # sum of the X that arrived below MERGED and were never stored
BELOW_SQUARES = 10
MERGED = 11  # values up to this size are in the sums and not stored
SMALLEST = 13  # smallest non-zero |X'|, the start of the doubling
ARM_FLOATS = 14

# Rows of an arm's buffer after BIG_VALUE, which hold suffix sums.
BIG_SUM = 3
BIG_SQUARES = 4
ROWS = 5

FINEST = 1024.0  # cells per power of two when X is thinned for the first time
SLACK = 1e-12  # far above the rounding error of an index, and far too small to matter in a bound


def empty_arms(arms: int, capacity: int) -> tuple[Floats, Ints, Floats]:
    """Return the fields ``arms``, ``counts`` and ``buffer`` of a new run."""
    numbers = np.zeros((arms, ARM_FLOATS))
    numbers[:, EVENT] = -1.0
    numbers[:, SMALLEST] = math.inf
    counts = np.zeros((arms, COUNTS), dtype=np.int64)
    counts[:, [TOP_NEXT, BIG_NEXT]] = min(32, capacity)
    return numbers, counts, np.zeros((arms, ROWS, capacity + 1))


def select_round(index: Any, outlook: Any, p: Any, s: Any) -> int:
    """Return the arm of round tau (Algorithm 1, line 9): a forced arm if there is one, otherwise the largest index."""
    if round_open(s):
        return s.clock[CURRENT]
    level = level_of(p, s)
    if p.guard * level >= s.clock[LEAST]:
        arm = forced(p, s, p.guard * level)
        if arm >= 0:
            return arm
    return best_arm(index, outlook, rounds, p, s, level)


def describe(p: Any, s: Any, arm: int, out: Floats) -> None:
    """Fill in trimmed mean, index, threshold and share of X above it, as the next round uses them."""
    level = level_of(p, s)
    out[0] = math.nan
    out[1] = math.inf
    out[2] = math.nan
    out[3] = math.nan
    if usable(s.counts[arm]) > p.guard * level:
        fallbacks = s.clock[FALLBACKS]
        s.arms[arm, EVENT] = -1.0
        out[1] = index(p, s, arm, level)
        out[0] = s.arms[arm, MEAN]
        out[2] = s.arms[arm, THRESHOLD]
        if s.cells[arm] == 0.0 or s.counts[arm, BIG_ABOVE] == 0:  # otherwise unknown: a stored X stands for several
            out[3] = s.counts[arm, BIG_ABOVE] / s.counts[arm, N_X]
        s.clock[FALLBACKS] = fallbacks  # only decisions are counted


def level_of(p: Any, s: Any) -> float:
    """Return L of the next round."""
    return p.delta_exp * math.log(s.clock[ROUNDS] + 1.0)


def rounds(p: Any, s: Any, arm: int) -> int:
    """Return the rounds of an arm; in a tie the fewest win. Return 0 if ties go to the lowest arm."""
    return s.counts[arm, ISSUED_X] * p.by_rounds


def usable(counts: Ints) -> int:
    """Return the count that the guard checks: the non-zero rewards in X', or -1 if X is too short for a variance."""
    if counts[N_X] < 2:
        return -1
    return counts[N_NONZERO]


@out_of_line
def forced(p: Any, s: Any, needed: float) -> int:
    """Return the allowed arm to explore because it has no threshold yet, or -1. Update LEAST.

    Half of the pulls without a reward count as rewards of X'.
    """
    chosen = -1
    least = UNLIMITED
    for arm in range(s.counts.shape[0]):
        if not s.allowed[arm]:
            continue
        available = usable(s.counts[arm])
        least = min(least, available)
        if available + s.unrewarded[arm] // 2 <= needed and (chosen < 0 or rounds(p, s, arm) < rounds(p, s, chosen)):
            chosen = arm
    s.clock[LEAST] = least
    return chosen


def index(p: Any, s: Any, arm: int, level: float) -> float:
    """Return B = mean + sqrt(var_factor V L / N) + bonus M L / N. Half of the pulls without a reward count in N.

    An arm without a threshold that is not forced, because its pulls did not answer yet, waits.
    """
    numbers = s.arms[arm]
    waiting = s.unrewarded[arm]
    if waiting > 0 and usable(s.counts[arm]) <= p.guard * level:
        return -math.inf
    if level >= numbers[EVENT]:
        refresh(p, s, arm, level)
    reach = numbers[REACH] * level
    if p.doubling == 0:
        reach /= math.sqrt(p.c * level - numbers[CLIPPED])
    width = math.sqrt(numbers[SPREAD] * level)
    if waiting > 0:
        n = s.counts[arm, N_X]
        share = n / (n + 0.5 * waiting)
        width *= math.sqrt(share)
        reach *= share
    return numbers[MEAN] + width + reach


def refresh(p: Any, s: Any, arm: int, level: float) -> None:
    """Update the cached numbers of an arm for this level, and the level at which they next change."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    a = p.c * level
    d = clipped_at(s, arm, a)
    counts[TOP_ABOVE] = d
    squares = rest_above(s, arm, d)
    threshold = threshold_root(squares, a, d)
    event = 0.0  # the next smaller M at which a cached number changes
    if d < counts[TOP]:
        event = s.buffer[arm, TOP_VALUE, d]
    if p.doubling != 0:
        threshold = doubled(numbers[SMALLEST], threshold)
        event = max(event, 0.5 * threshold)
    trimmed = trimmed_at(s, arm, threshold)
    counts[BIG_ABOVE] = trimmed
    if trimmed < counts[BIG] and p.doubling == 0:
        event = max(event, abs(s.buffer[arm, BIG_VALUE, trimmed]))
    if threshold < numbers[MERGED] or (s.cells[arm] > 0.0 and in_cell(s, arm, trimmed, threshold)):
        s.clock[FALLBACKS] += 1
    n = float(counts[N_X])
    mean, variance = moments(s, arm, trimmed)
    numbers[MEAN] = mean
    numbers[SPREAD] = p.var_factor * variance / n
    bonus = p.bonus / n
    if p.bonus == 0.0:
        bonus = 14.0 / (3.0 * (n - 1.0))
    numbers[REACH] = bonus * (threshold if p.doubling != 0 else math.sqrt(squares))
    numbers[CLIPPED] = d
    numbers[THRESHOLD] = threshold
    # M = event at a = d + squares / event^2; slightly earlier is safe. If event = 0, nothing changes before the guard applies.
    numbers[EVENT] = math.inf
    if event > 0.0:
        numbers[EVENT] = (1.0 - SLACK) * (d + squares / (event * event)) / p.c


def moments(s: Any, arm: int, trimmed: int) -> tuple[float, float]:
    """Return mean and variance of X after setting its ``trimmed`` largest values to zero."""
    numbers = s.arms[arm]
    n = float(s.counts[arm, N_X])
    shift = 0.0
    total = numbers[BELOW_SUM] + s.buffer[arm, BIG_SUM, trimmed]
    squares = numbers[BELOW_SQUARES] + s.buffer[arm, BIG_SQUARES, trimmed]
    if trimmed == 0:
        shift = numbers[SHIFT]
        total = numbers[ALL_SUM]
        squares = numbers[ALL_SQUARES]
    off = total / n
    return shift + off, max((squares - off * total) / (n - 1.0), 0.0)


def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
    """Return a line above the index that is valid until the next event. Its slope is the largest slope of the index."""
    numbers = s.arms[arm]
    if s.unrewarded[arm] > 0 and usable(s.counts[arm]) <= p.guard * level:
        return math.inf, 0.0, math.inf
    spread = math.sqrt(numbers[SPREAD] * level)
    slope = 0.0
    if level > 0.0:
        slope = 0.5 * spread / level  # a square root is below its tangent
    reach = numbers[REACH] * level
    if p.doubling != 0:
        slope += numbers[REACH]
    else:
        # d/dL of L / sqrt(c L - d) rises until c L = 4 d and then falls: its maximum is at the nearest point of the range.
        d = numbers[CLIPPED]
        steepest = min(max(4.0 * d / p.c, level), numbers[EVENT])
        excess = p.c * steepest - d
        slope += numbers[REACH] * (0.5 * p.c * steepest - d) / (excess * math.sqrt(excess))
        reach /= math.sqrt(p.c * level - d)
    value = numbers[MEAN] + spread + reach
    return value + SLACK * (abs(numbers[MEAN]) + spread + reach), slope, numbers[EVENT]


def learn_threshold(p: Any, s: Any, arm: int, size: float) -> None:
    """Insert |X'| among the largest, or add it to the running sum of squares."""
    numbers = s.arms[arm]
    if size == 0.0:
        return
    s.counts[arm, N_NONZERO] += 1
    numbers[SMALLEST] = min(numbers[SMALLEST], size)
    if size <= numbers[MERGED]:
        numbers[TOP_BELOW] += size * size
    else:
        insert_top(s.buffer[arm], s.counts[arm], size)
        if s.counts[arm, TOP] >= s.counts[arm, TOP_NEXT]:
            merge(s, arm)


def learn_mean(p: Any, s: Any, arm: int, reward: float) -> None:
    """Insert a reward among the largest of X, or add it to the running sums."""
    numbers = s.arms[arm]
    s.counts[arm, N_X] += 1
    if s.counts[arm, N_X] == 1:
        numbers[SHIFT] = reward
    off = reward - numbers[SHIFT]
    numbers[ALL_SUM] += off
    numbers[ALL_SQUARES] += off * off
    if abs(reward) <= numbers[MERGED]:
        numbers[BELOW_SUM] += reward
        numbers[BELOW_SQUARES] += reward * reward
    else:
        insert_big(s.buffer[arm], s.counts[arm], reward)
        if s.counts[arm, BIG] >= s.counts[arm, BIG_NEXT]:
            merge(s, arm)


@out_of_line
def insert_big(buffer: Floats, counts: Ints, reward: float) -> None:
    """Insert a reward of X and update the suffix sums."""
    big = buffer[BIG_VALUE]
    sums = buffer[BIG_SUM]
    squares = buffer[BIG_SQUARES]
    stored = counts[BIG]
    place = number_not_below(big, stored, abs(reward))
    shift_right(big, place, stored)
    shift_right(sums, place, stored + 1)
    shift_right(squares, place, stored + 1)
    big[place] = reward
    for j in range(place + 1):
        sums[j] += reward
        squares[j] += reward * reward
    counts[BIG] += 1
    if place < counts[BIG_ABOVE]:
        counts[BIG_ABOVE] += 1


@out_of_line
def merge(s: Any, arm: int) -> None:
    """Drop the stored values below every later threshold. A shortened row keeps its suffix sum at the new end."""
    numbers = s.arms[arm]
    counts = s.counts[arm]
    top = s.buffer[arm, TOP_VALUE]
    big = s.buffer[arm, BIG_VALUE]
    if counts[N_NONZERO] > s.limits[0]:
        lowest = max(numbers[MERGED], lowest_threshold(s, arm))
        numbers[MERGED] = lowest
        while counts[TOP] > 0 and top[counts[TOP] - 1] <= lowest:
            counts[TOP] -= 1
        while counts[BIG] > 0 and abs(big[counts[BIG] - 1]) <= lowest:
            counts[BIG] -= 1
    room = top.shape[0] - 1
    if counts[BIG] == room or counts[TOP] == room:
        if room < s.clock[LIMIT]:
            s.clock[FULL] = 1
        else:
            counts[TOP] = min(counts[TOP], room - 1)  # less only if a file contradicts the threshold equation
            if counts[BIG] == room:
                make_room(s, arm, room - room // 8)
    counts[TOP_ABOVE] = min(counts[TOP_ABOVE], counts[TOP])
    counts[BIG_ABOVE] = min(counts[BIG_ABOVE], counts[BIG])
    counts[TOP_NEXT] = min(room, counts[TOP] + counts[TOP] // 4 + 16)
    counts[BIG_NEXT] = min(room, counts[BIG] + counts[BIG] // 4 + 16)


@out_of_line
def make_room(s: Any, arm: int, most: int) -> None:
    """Thin X to at most this number of values, with cells as narrow as possible. If cells do not suffice, merge the smallest X."""
    counts = s.counts[arm]
    if s.cells[arm] == 0.0:
        s.cells[arm] = FINEST
    thin(s.buffer[arm], counts, s.cells[arm])
    while counts[BIG] > most and 1.0 < s.cells[arm] <= FINEST:  # an infinite number of a file would be halved for ever
        s.cells[arm] *= 0.5
        thin(s.buffer[arm], counts, s.cells[arm])
    if counts[BIG] > most:
        counts[BIG] = most
        s.arms[arm, MERGED] = abs(s.buffer[arm, BIG_VALUE, most])


def thin(buffer: Floats, counts: Ints, cells: float) -> None:
    """Keep the largest stored X of each cell. Its suffix sums already include the others."""
    kept = 1
    for j in range(1, counts[BIG]):
        if abs(buffer[BIG_VALUE, j]) < bottom_of_cell(abs(buffer[BIG_VALUE, kept - 1]), cells):
            for row in (BIG_VALUE, BIG_SUM, BIG_SQUARES):
                buffer[row, kept] = buffer[row, j]
            kept += 1
    for row in (BIG_SUM, BIG_SQUARES):
        buffer[row, kept] = buffer[row, counts[BIG]]
    counts[BIG] = kept


def bottom_of_cell(size: float, cells: float) -> float:
    """Return the lower end of a size's cell; ``cells`` is the number of cells per power of two, itself a power of two.

    >>> bottom_of_cell(1.3, 4.0), bottom_of_cell(2.6, 4.0), bottom_of_cell(1.0, 4.0)
    (1.25, 2.5, 1.0)
    """
    mantissa, exponent = math.frexp(size)
    return math.ldexp(math.floor(2.0 * cells * mantissa) / (2.0 * cells), exponent)


@out_of_line
def in_cell(s: Any, arm: int, trimmed: int, threshold: float) -> bool:
    """Return whether the threshold is in the cell of the smallest stored X above it, which may stand for X below it, too."""
    return trimmed > 0 and threshold >= bottom_of_cell(abs(s.buffer[arm, BIG_VALUE, trimmed - 1]), s.cells[arm])
