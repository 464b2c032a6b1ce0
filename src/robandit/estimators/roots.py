"""The roots of Catoni's equation ``sum_j psi(alpha (x_j - theta)) = 0`` for rows of samples.

:mod:`robandit.estimators.formulas.catoni` has psi. The sum falls strictly in theta, so the root is unique. The search is fast:

- It starts from the root of at most 4096 values spread over the sample, with the slope there.
- It continues with secants inside a bracket. Near the root the sum is almost linear: three or four passes are enough.
- For p = 2 a pass takes one logarithm for 16 values, whose factors are multiplied. This is accurate unless every z is tiny (an
  alpha far below Catoni's); then a slower pass with log1p is used.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np

from robandit.errors import InvalidInput
from robandit.estimators.formulas.catoni import FACTORS, HUGE, distance, influence, powers, quadratic
from robandit.kernel import compiled
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

SAMPLED = 4096  # values used for the start; samples of up to twice this size are used completely
MIDDLE = 63  # values whose median is the initial guess of the start, which no outlier can move
LANES = 64  # products computed side by side
PASSES = 3000  # more than bisection needs to get from 1e308 to 5e-324
CLOSE = 1e-13  # tolerance relative to the spread; rounding of the sum limits it
ULP = 2.0**-52
TINY = 1e-300
SMALLEST = 5e-324
LARGEST = 1.7976931348623157e308
INSIDE = 1e300  # a product above this may have overflowed in between


def row_roots(
    matrix: Floats, alphas: Floats, *, order: float = 2.0, factor: float = 0.5, starts: Floats | None = None
) -> Floats:
    """Return the root of each row with its own alpha. ``starts``, if given, are guesses within the range of the row."""
    n = matrix.shape[1]
    count = min(n, MIDDLE)
    spread = matrix[:, np.arange(count) * n // count]
    roots = np.sort(spread)[:, count // 2] if starts is None else starts.copy()
    scratch = np.empty(SAMPLED + 2 * LANES)
    _kernel(order == 2.0 and factor == 0.5)(matrix, alphas, order, factor, scratch, roots)
    if not np.isfinite(roots).all():
        row = int(np.flatnonzero(~np.isfinite(roots))[0])
        raise InvalidInput(
            f"no root was found with alpha = {alphas[row]:g} and values up to {np.abs(matrix[row]).max():g}: "
            "divide the sample by a constant (and multiply alpha by it) so that both are moderate"
        )
    return roots


@cache
def _kernel(quadratic: bool) -> Any:
    args = (np.zeros((1, 1)), np.zeros(1), 2.0, 0.5, np.zeros(1), np.zeros(1))
    total, lower = (quick_total, "") if quadratic else (careful_total, " of lower order")
    return compiled(partial(root_rows, total), label=f"Catoni's equation{lower}", args=args)


def root_rows(
    total: Any, x: Floats, alphas: Floats, order: float, factor: float, scratch: Floats, roots: Floats
) -> None:
    """Replace the starts in ``roots`` by the root of each row."""
    for row in range(x.shape[0]):
        roots[row] = root_of(total, x[row], alphas[row], order, factor, scratch, roots[row])


@out_of_line
def root_of(total: Any, x: Floats, alpha: float, order: float, factor: float, scratch: Floats, theta: float) -> float:
    """Return the root of one sample."""
    n = x.shape[0]
    lanes = scratch[SAMPLED:]
    if n <= 2 * SAMPLED:
        slope, size = shape_at(x, n, theta, alpha, order, factor)
        return secants(total, x, n, alpha, order, factor, theta, slope, size, lanes)
    for j in range(SAMPLED):
        scratch[j] = x[j * n // SAMPLED]
    slope, size = shape_at(scratch, SAMPLED, theta, alpha, order, factor)
    theta = secants(total, scratch, SAMPLED, alpha, order, factor, theta, slope, size, lanes)
    slope, size = shape_at(scratch, SAMPLED, theta, alpha, order, factor)
    ratio = n / SAMPLED
    return secants(total, x, n, alpha, order, factor, theta, slope * ratio, size * ratio, lanes)


@out_of_line
def secants(
    total: Any,
    x: Floats,
    n: int,
    alpha: float,
    order: float,
    factor: float,
    theta: float,
    slope: float,
    size: float,
    lanes: Floats,
) -> float:
    """Return the root from a start, the slope there (positive, as the sum falls) and size = sum |psi|.

    Slope and spread are in units of 1/alpha, which keeps them in range for data of any scale. The search ends only when two close
    points bracket the root. A short step proves nothing: with clusters of values that are far apart, the sum is steep at a cluster
    and flat next to it. A step shorter than the tolerance is lengthened to it, which closes the bracket if the step was right.
    Bisection replaces secants that leave the bracket or shrink it too slowly. While only one side is known, steps are lengthened.
    """
    careful = size < 1e-3 * math.sqrt(n)
    spread = 0.0
    if slope > 0.0:
        spread = size / slope
    else:
        slope = TINY
    low = -math.inf
    high = math.inf
    before = math.nan  # the previous theta
    total_before = 0.0
    width = math.inf  # half the width of the bracket, three passes ago
    for k in range(PASSES):
        value: float = total(x, n, theta, alpha, order, factor, careful, lanes)
        if value == 0.0:
            return theta
        if value > 0.0:
            low = theta
        else:
            high = theta
        secant = (total_before - value) / (alpha * (theta - before))
        if secant > 0.0:  # false on the first pass, which has no secant, and if rounding errors dominate
            slope = secant
        step = value / slope / alpha
        least = max(CLOSE * spread / alpha, 2.0 * ULP * abs(theta), SMALLEST)
        bracketed = low > -math.inf and high < math.inf
        half = 0.5 * high - 0.5 * low  # the full width of the bracket may overflow
        if bracketed and half <= least:
            return min(max(theta + step, low), high)
        if not abs(step) >= least:
            step = math.copysign(least, value)
        if not bracketed and k >= 4:
            step *= 2.0 ** min(k - 3, 1000)
        new = theta + step
        if bracketed:
            bisect = not low < new < high
            if k % 3 == 0:
                bisect = bisect or half > 0.5 * width
                width = half
            if bisect:
                new = 0.5 * low + 0.5 * high
                if not low < new < high:
                    return theta  # low and high are neighbours
        elif not abs(new) < math.inf:
            new = math.copysign(LARGEST, value)
        before = theta
        total_before = value
        theta = new
    return math.nan


@out_of_line
def shape_at(x: Floats, n: int, theta: float, alpha: float, order: float, factor: float) -> tuple[float, float]:
    """Return the slope with which the sum falls in alpha theta, and the sum of |psi|."""
    slope = 0.0
    size = 0.0
    for j in range(n):
        z = distance(x[j], theta, alpha)
        if z < HUGE:
            slope += powers(z, order, factor)[1]
        else:
            slope += order / z
        size += abs(influence(x[j], theta, alpha, order, factor))
    return slope, size


def careful_total(
    x: Floats, n: int, theta: float, alpha: float, order: float, factor: float, careful: bool, lanes: Floats
) -> float:
    """Return the sum of psi, with one logarithm per value."""
    return part_total(x, 0, n, theta, alpha, order, factor)


@out_of_line
def part_total(x: Floats, start: int, stop: int, theta: float, alpha: float, order: float, factor: float) -> float:
    """Return the sum of psi over part of the sample."""
    out = 0.0
    for j in range(start, stop):
        out += influence(x[j], theta, alpha, order, factor)
    return out


@out_of_line
def quick_total(
    x: Floats, n: int, theta: float, alpha: float, order: float, factor: float, careful: bool, lanes: Floats
) -> float:
    """Return the sum of psi for p = 2 and b = 1/2, by logarithms of quotients of products."""
    # 64 lanes without branches, which compilers turn into vector instructions: 0.9 ns per value (8 ns with a branch on the sign).
    if careful:
        return part_total(x, 0, n, theta, alpha, order, factor)
    up = lanes[:LANES]  # products over x > theta
    down = lanes[LANES:]  # products over x <= theta
    out = 0.0
    i = 0
    while i + FACTORS * LANES <= n:
        for k in range(LANES):
            up[k] = 1.0
            down[k] = 1.0
        for start in range(i, i + FACTORS * LANES, LANES):
            for k in range(LANES):
                y = alpha * (x[start + k] - theta)
                up[k] *= quadratic(max(y, 0.0))
                down[k] *= quadratic(max(-y, 0.0))
        for k in range(LANES):
            if up[k] < INSIDE and down[k] < INSIDE:
                out += math.log(up[k] / down[k])
            else:
                for j in range(FACTORS):
                    out += influence(x[i + j * LANES + k], theta, alpha, order, factor)
        i += FACTORS * LANES
    return out + part_total(x, i, n, theta, alpha, order, factor)
