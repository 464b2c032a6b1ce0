"""The likelihood bound of a growing sample, in O(1) time for each new value.

For values z_1, ..., z_n the bound is ``U(C) = min over l >= floor of l - exp(-C + mean_j log(l - z_j))``
(:mod:`robandit.estimators.formulas.likelihood`). The minimum is at the floor, or where ``D(l) = sum_j log(l - z_j) + n log(mean_j
1/(l - z_j))`` equals n C. D is n times log(AM/GM) of v = 1/(l - z), that is ``min over a of sum_j (v_j/a - 1 - log(v_j/a))``. So
more values can only raise D, and D falls as l grows (the bound is convex in l). Hence the minimiser for today's values and the
largest future n C is below every later minimiser.

**Values near zero are not stored.** With |z| <= cut <= l/4, ``sum log(1 - z/l) = -sum_k p_k (cut/l)^k / k`` with p_k the sum of
(z/cut)^k. Sixteen terms leave an error below 1e-9 of the bound's width. The same holds about any other point
(:mod:`robandit.policies.adakl.clusters`).

**Near the last minimiser l0 the sum is a polynomial.** With w = l0 - max z and a_j = w / (l0 - z_j) <= 1, ``sum log(l0 + e w -
z_j) = sum log(l0 - z_j) + sum_r (-1)^(r+1) A_r e^r / r`` with A_r = sum a_j^r. A new value adds its powers to six numbers, and a
Newton step updates the minimiser. Within |e| <= 0.01 the omitted terms are below 1e-15. A new largest value below l0 reduces w,
which only rescales the numbers. Outside this range (for independent data, after about two per cent more values), or when a value
exceeds l0, the numbers are recomputed from the stored values.

**Clipped values are not in the sums.** ``up`` values count as ``edge`` and ``down`` values as ``-edge``. They are further terms in
every formula, because the edge moves with each evaluation. AdaKL-Proved has none: its trimmed values count as 0.

The formulas use z/l and small differences, so they stay accurate when n is large.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from robandit.estimators.formulas.likelihood import bound_at
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies.adakl.clusters import COUNT, PIVOT, SPAN, TERMS, logs_and_tilts, top_of

POWERS = 6
RADIUS = 0.01
LEAST_RATIO = 3.99  # least l/cut; the choice of the cut makes it 4, except for rounding
CLOSE = 1e-4  # a Newton step this small leaves an error of about its square, and the bound is flat there

# Columns of a curve.
READY = 0  # whether the other columns are valid
AT = 1  # l0
GAP = 2  # w
LOGS = 3  # sum log(1 - z/l0)
SUMS = 4  # A_1 to A_6
STEP = 10  # the last minimiser is l0 + STEP w
CURVE = 11


@out_of_line
def add_value(curve: Floats, z: float) -> None:
    """Add a value. One above l0 invalidates the curve."""
    below = curve[AT] - z
    if below <= 0.0:
        curve[READY] = 0.0
        return
    if below < curve[GAP]:
        narrow(curve, below)
    curve[LOGS] += math.log1p(-z / curve[AT])
    add_powers(curve, curve[GAP] / below)


@out_of_line
def narrow(curve: Floats, gap: float) -> None:
    """Express the curve in units of a smaller w, because the largest value is closer to l0 now."""
    ratio = gap / curve[GAP]
    factor = 1.0
    for r in range(POWERS):
        factor *= ratio
        curve[SUMS + r] *= factor
    curve[STEP] /= ratio
    curve[GAP] = gap


def rescale(near: Floats, ratio: float) -> None:
    """Express the powers in units of a larger cut; ``ratio`` is the old cut divided by the new one."""
    factor = 1.0
    for k in range(TERMS):
        factor *= ratio
        near[k] *= factor


def add_zero(curve: Floats) -> None:
    """Add a value that counts as 0."""
    add_powers(curve, curve[GAP] / curve[AT])


def add_powers(curve: Floats, a: float) -> None:
    """Add a, a^2, ... to the sums."""
    power = a
    for r in range(POWERS):
        curve[SUMS + r] += power
        power *= a


def logs_at(curve: Floats, n: float, step: float, up: float, down: float, edge: float) -> float:
    """Return the mean of log(1 - z/l) at l = l0 + step w."""
    series = curve[SUMS + POWERS - 1] / POWERS
    for r in range(POWERS - 2, -1, -1):
        series = curve[SUMS + r] / (r + 1.0) - step * series
    mean = (curve[LOGS] + step * series) / n
    ratio = edge / (curve[AT] + step * curve[GAP])
    if up > 0.0:
        mean += up * math.log1p(-ratio) / n
    if down > 0.0:
        mean += down * math.log1p(ratio) / n
    return mean - (n - up - down) / n * math.log1p(step * curve[GAP] / curve[AT])


def value_at(curve: Floats, n: float, exponent: float, step: float, up: float, down: float, edge: float) -> float:
    """Return the bound for l = l0 + step w."""
    return bound_at(curve[AT] + step * curve[GAP], logs_at(curve, n, step, up, down, edge), exponent)


@out_of_line
def follow(curve: Floats, n: float, exponent: float, floor: float, up: float, down: float, edge: float) -> bool:
    """Move STEP to the minimiser over l >= floor. Return False if it is too far from l0 for the polynomial."""
    least = (floor - curve[AT]) / curve[GAP]
    step = max(curve[STEP], least)
    for _ in range(20):
        if not abs(step) <= RADIUS or (up > 0.0 and curve[AT] + step * curve[GAP] <= edge):
            return False
        first = curve[SUMS + POWERS - 1]
        slope = 0.0
        for r in range(POWERS - 2, -1, -1):
            slope = -first - step * slope
            first = curve[SUMS + r] - step * first
        if up > 0.0:
            part = curve[GAP] / (curve[AT] + step * curve[GAP] - edge)
            first += up * part
            slope -= up * part * part
        if down > 0.0:
            part = curve[GAP] / (curve[AT] + step * curve[GAP] + edge)
            first += down * part
            slope -= down * part * part
        # `first` is sum w/(l - z), and `slope` is its derivative.
        ratio = (curve[AT] / curve[GAP] + step) * first / n
        tilt = -exponent + logs_at(curve, n, step, up, down, edge) + math.log(ratio)
        move = -tilt / (first / n + slope / first)
        if step + move <= least:
            if step == least:
                move = 0.0
            else:
                move = least - step
        step += move
        if abs(move) <= CLOSE:
            break
    curve[STEP] = step
    return abs(step) <= RADIUS


class Sample(NamedTuple):
    """The values of a bound: the kept ones, those in power sums and in clusters, clipped ones, and zeros."""

    kept: Floats
    first: int  # kept[first:last] count
    last: int
    near: Floats  # sums of powers of the values up to the cut
    cut: float
    n_near: float
    far: Floats  # clusters
    zeros: int  # values that count as 0, besides those in `near`
    n: float
    """The number of all values."""
    up: float  # values that count as the edge
    down: float  # values that count as -edge
    edge: float


@out_of_line
def distance(z: Sample, at: float) -> tuple[float, float, float]:
    """Return D(at), its derivative by log l, and the sum of log(1 - z/l) over all but the clipped values."""
    logs = 0.0
    tilts = 0.0  # sum z/(l - z)
    squares = 0.0  # sum (l/(l - z))^2 - 1
    x = z.cut / at
    power = 1.0
    for k in range(TERMS):
        power *= x
        term = z.near[k] * power
        logs -= term / (k + 1.0)
        tilts += term
        squares += (k + 2.0) * term
    for j in range(z.far.shape[0]):
        if z.far[j, COUNT] > 0.0:
            more = logs_and_tilts(z.far[j], at)
            logs += more[0]
            tilts += more[1]
            squares += more[2]
    for j in range(z.first, z.last):
        ratio = z.kept[j] / at
        tilt = ratio / (1.0 - ratio)
        logs += math.log1p(-ratio)
        tilts += tilt
        squares += tilt * (2.0 + tilt)
    clipped = 0.0
    if z.up > 0.0:
        tilt = z.edge / (at - z.edge)
        clipped += z.up * math.log1p(-z.edge / at)
        tilts += z.up * tilt
        squares += z.up * tilt * (2.0 + tilt)
    if z.down > 0.0:
        tilt = -z.edge / (at + z.edge)
        clipped += z.down * math.log1p(z.edge / at)
        tilts += z.down * tilt
        squares += z.down * tilt * (2.0 + tilt)
    mean = tilts / z.n
    slope = z.n * (mean - (squares / z.n - mean) / (1.0 + mean))
    return logs + clipped + z.n * math.log1p(mean), slope, logs


def highest_of(z: Sample) -> float:
    """Return the largest of the kept values, or 0 if all are negative."""
    highest = 0.0
    for j in range(z.first, z.last):
        highest = max(highest, z.kept[j])
    return highest


@out_of_line
def minimiser(z: Sample, level: float, floor: float, guess: float) -> float:
    """Return the l >= floor where D(l) = level, or the floor if D is smaller there. Newton on log D, in log(l - base)."""
    base = max(highest_of(z), LEAST_RATIO * z.cut)  # a lower bound of l
    for j in range(z.far.shape[0]):
        if z.far[j, COUNT] > 0.0:
            base = max(base, z.far[j, PIVOT] + LEAST_RATIO * z.far[j, SPAN])
    if z.up > 0.0:
        base = max(base, z.edge)
    scale = max(z.cut, floor)
    for j in range(z.first, z.last):
        scale = max(scale, abs(z.kept[j]))
    if floor > base:
        d, slope, _ = distance(z, floor)
        if d <= level:
            return floor
    low = math.log(scale) - 80.0
    if base > 0.0:
        low = max(low, math.log(base) - 36.0)
    if floor > base:
        low = max(low, math.log(floor - base))
    high = math.log(scale) + 80.0
    y = math.log(scale)
    if guess > base:
        y = math.log(guess - base)
    for _ in range(200):
        if not low < y < high:
            y = 0.5 * (low + high)
        at = base + math.exp(y)
        d, slope, _ = distance(z, at)
        if d > level:
            low = y
        else:
            high = y
        move = 0.5 * (low + high) - y
        if d > 0.0 and slope < 0.0:
            move = -math.log(d / level) * d / (slope * (at - base) / at)
        y += move
        if abs(move) <= 1e-9 or high - low <= 1e-9:
            break
    return max(base + math.exp(y), floor)


@out_of_line
def remake(curve: Floats, z: Sample, level: float, floor: float) -> None:
    """Move l0 to the minimiser and recompute the sums."""
    at = minimiser(z, level, floor, curve[AT] + curve[STEP] * curve[GAP])
    highest = max(highest_of(z), z.cut, top_of(z.far))
    _, _, logs = distance(z, at)
    curve[READY] = 1.0
    curve[AT] = at
    curve[GAP] = at - highest
    curve[LOGS] = logs
    curve[STEP] = 0.0
    for r in range(POWERS):
        curve[SUMS + r] = 0.0
    for j in range(z.first, z.last):
        add_powers(curve, curve[GAP] / (at - z.kept[j]))
    for _ in range(z.zeros):
        add_powers(curve, curve[GAP] / at)
    add_sums(curve, z.near, z.n_near, 0.0, z.cut)
    for j in range(z.far.shape[0]):
        if z.far[j, COUNT] > 0.0:
            add_sums(curve, z.far[j], z.far[j, COUNT], z.far[j, PIVOT], z.far[j, SPAN])


@out_of_line
def add_sums(curve: Floats, sums: Floats, count: float, pivot: float, radius: float) -> None:
    """Add ``count`` values about a pivot to A_1 to A_6, from the sums of ((z - pivot)/radius)^k."""
    # With y = l - pivot and d = z - pivot: (1 - d/y)^-r = sum_k C(r+k-1, k) (d/y)^k
    a = curve[GAP] / (curve[AT] - pivot)
    x = radius / (curve[AT] - pivot)
    front = 1.0
    for r in range(POWERS):
        front *= a
        total = count
        factor = 1.0
        for k in range(TERMS):
            factor *= x * (r + 1.0 + k) / (k + 1.0)
            total += factor * sums[k]
        curve[SUMS + r] += front * total
