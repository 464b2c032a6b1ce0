"""The index of AdaKL-UCB: the smaller of two likelihood bounds, of the trimmed and of the untrimmed rewards of an arm.

:mod:`robandit.policies.adar.curve` has the bounds, and how they follow each new reward in O(1) time. Only the practical schedule
has a curve for the untrimmed rewards.

**The arg-max is lazy** (:mod:`robandit.kernel.lazy`): for a fixed l the bound is concave in the level, and l stays feasible
until a known level, so its tangent is above the index until then.
"""

from __future__ import annotations

import math
from typing import Any

from robandit.estimators.formulas.likelihood import proved_exponent
from robandit.estimators.formulas.threshold import threshold_root
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies.adar.curve import AT, GAP, RADIUS, READY, STEP, follow, remake, value_at
from robandit.policies.adar.layout import (
    BIG,
    BIG_ABOVE,
    BIG_VALUE,
    FALLBACKS,
    ISSUED_TOP,
    ISSUED_X,
    N_NONZERO,
    N_X,
    ROUNDS,
    TOP,
    TOP_ABOVE,
    TOP_VALUE,
    clipped_at,
    rest_above,
    trimmed_at,
)
from robandit.policies.adar.likelihood_state import (
    BOUND,
    CENTRE,
    CHOSEN,
    CONSTANT,
    CUT,
    FREE,
    HIGHEST,
    N_NEAR,
    NONE,
    THRESHOLD,
    TRIMMED,
    Params,
    State,
)

UNSEEN = 4.0  # rewards per level after which an arm without a reward above the centre is no longer forced
WINDOW = 0.02  # of a level: how far a line looks ahead when l is at its floor
SLACK = 1e-11


def describe(p: Params, s: State, arm: int, out: Floats) -> None:
    """Fill in trimmed mean (plain, if nothing is trimmed), index, threshold and share of X above it, for the next round."""
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
        total = s.near[arm, 0] * numbers[CUT]
        for j in range(first, s.counts[arm, BIG]):
            total += s.buffer[arm, BIG_VALUE, j]
        out[0] = numbers[CENTRE] + total / n
    s.clock[FALLBACKS] = fallbacks  # only decisions are counted


def pulls_issued(p: Params, s: State, arm: int) -> int:
    """Return the pulls of an arm, rewarded or not: the fewest win a tie."""
    return s.counts[arm, ISSUED_X] + s.counts[arm, ISSUED_TOP]


def level_of(p: Params, s: State) -> float:
    """Return L of the next round."""
    begun = float(s.clock[ROUNDS])
    if p.practical != 0:
        begun /= s.counts.shape[0]
    return p.factor * math.log(1.0 + begun)


@out_of_line
def index(p: Params, s: State, arm: int, level: float) -> float:
    """Return the centre plus the smaller of the two bounds; infinity while neither exists."""
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
    """Return C of the trimmed bound; the proved schedule pays for all l at once."""
    if p.practical != 0:
        return level / n
    return proved_exponent(level, n)


@out_of_line
def free_bound(s: State, arm: int, n: float, level: float) -> float:
    """Return the bound of the untrimmed rewards; l is at least a multiple of the largest that tends to 1 with more rewards."""
    curve = s.curves[arm, FREE]
    exponent = level / n
    floor = s.arms[arm, HIGHEST] * math.exp(level / (n - 1.0))
    if curve[READY] == 0.0 or not follow(curve, n, exponent, floor):
        rebuild(s, arm, FREE, 0, n * exponent, floor)
    return value_at(curve, n, exponent, curve[STEP])


@out_of_line
def trimmed_bound(p: Params, s: Any, arm: int, n: float, level: float) -> float:
    """Return the bound of the rewards with those beyond the threshold set to the centre; l is at least the threshold."""
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
    if curve[READY] == 0.0 or not follow(curve, n, exponent, threshold):
        rebuild(s, arm, TRIMMED, trimmed, n * exponent, threshold)
    return value_at(curve, n, exponent, curve[STEP])


@out_of_line
def rebuild(s: State, arm: int, which: int, first: int, level: float, floor: float) -> None:
    """Rebuild a curve from the stored rewards."""
    counts = s.counts[arm]
    cut = s.arms[arm, CUT]
    remake(
        s.curves[arm, which],
        s.buffer[arm, BIG_VALUE],
        first,
        counts[BIG],
        s.near[arm],
        cut,
        float(counts[N_NEAR]),
        float(counts[N_X]),
        level,
        floor,
    )
    if s.curves[arm, which, AT] < 3.9999 * cut:
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
                bound = value_at(curve, n, level / n, step)
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
