"""The root of Catoni's equation ``sum_j psi(alpha (x_j - theta)) = 0``, for rows of samples.

psi is odd, ``psi(z) = log(1 + z + C z^p)`` for z >= 0, with p = 2 and C = 1/2 in Catoni's own estimator. The sum falls strictly in
theta, so the root is unique. What makes it fast:

- a start from the root of at most 4096 samples spread over the data, with the slope there;
- then secants, kept inside a bracket: the sum is nearly straight at that range, and three or four passes reach the last digit;
- for p = 2 a pass takes one logarithm for 16 samples: factors are multiplied up while their product stays in range.

A product of 16 factors near 1 has an absolute error near 1e-16 for each. That is nothing beside z unless z is tiny everywhere
(an alpha far below Catoni's): then a slower pass with log1p keeps the digits.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

__all__ = ["row_roots"]

SAMPLED = 4096  # values that give the start; up to twice as many are taken whole
MIDDLE = 63  # values whose median gives the start of the start
FACTORS = 16  # in one product
LANES = 64  # products side by side
PASSES = 3000  # more than halving needs to get from 1e308 to 5e-324
LOG_2 = math.log(2.0)
HUGE = 1e150  # beyond it squares may overflow, and 1 is nothing beside z
CLOSE = 1e-13  # of the spread: what the last digits of the sum allow
ULP = 2.0**-52
TINY = 1e-300
SMALLEST = 5e-324
LARGEST = 1.7976931348623157e308
INSIDE = 1e300  # a product beyond it may have overflowed on the way


def row_roots(
    matrix: Floats, alphas: Floats, *, order: float = 2.0, factor: float = 0.5, starts: Floats | None = None
) -> Floats:
    """The root of each row with its own alpha; ``starts``, where given, are guesses within the range of the row."""
    found = np.full(len(matrix), math.nan) if starts is None else starts.copy()
    _kernel(order == 2.0 and factor == 0.5)(
        matrix, alphas, order, factor, np.empty(SAMPLED + MIDDLE + 2 * LANES), found
    )
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        raise InvalidInput(
            f"no root was found with alpha = {alphas[row]:g} and values up to {np.abs(matrix[row]).max():g}: "
            "divide the sample by a constant (and multiply alpha by it) so that both are moderate"
        )
    return found


@cache
def _kernel(quadratic: bool) -> Any:
    from robandit.kernel import compiled

    row = np.zeros(1)
    args = (np.zeros((1, 1)), row, 2.0, 0.5, row, row)
    if quadratic:
        return compiled(partial(root_rows, quick_total), label="Catoni's equation", args=args)
    return compiled(partial(root_rows, careful_total), label="Catoni's equation of lower order", args=args)


def root_rows(
    total: Any, x: Floats, alphas: Floats, order: float, factor: float, scratch: Floats, found: Floats
) -> None:
    """The root of each row; ``found`` holds the starts, NaN where there is none."""
    for row in range(x.shape[0]):
        found[row] = root_of(total, x[row], alphas[row], order, factor, scratch, found[row])


@out_of_line
def root_of(total: Any, x: Floats, alpha: float, order: float, factor: float, scratch: Floats, theta: float) -> float:
    """The root of one sample."""
    n = x.shape[0]
    lanes = scratch[SAMPLED + MIDDLE :]
    if n <= 2 * SAMPLED:
        if not abs(theta) < math.inf:
            theta = middle(x, n, scratch)
        slope, size = shape_at(x, n, theta, alpha, order, factor)
        return secants(total, x, n, alpha, order, factor, theta, slope, size, lanes)
    for j in range(SAMPLED):
        scratch[j] = x[j * n // SAMPLED]
    if not abs(theta) < math.inf:
        theta = middle(x, n, scratch[SAMPLED:])
    slope, size = shape_at(scratch, SAMPLED, theta, alpha, order, factor)
    theta = secants(total, scratch, SAMPLED, alpha, order, factor, theta, slope, size, lanes)
    slope, size = shape_at(scratch, SAMPLED, theta, alpha, order, factor)
    ratio = n / SAMPLED
    return secants(total, x, n, alpha, order, factor, theta, slope * ratio, size * ratio, lanes)


@out_of_line
def middle(x: Floats, n: int, scratch: Floats) -> float:
    """The median of a few values spread over the sample: a start that no outlier can move."""
    count = min(n, MIDDLE)
    for j in range(count):
        value = x[j * n // count]
        place = j
        while place > 0 and scratch[place - 1] > value:
            scratch[place] = scratch[place - 1]
            place -= 1
        scratch[place] = value
    out: float = scratch[count // 2]
    return out


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
    """The root from a start, the steepness there (slope > 0: the sum falls) and the size sum |psi|.

    Slope and spread are in units of 1/alpha, which no scale of the data takes out of range.

    Nothing is returned before the root lies between two points that are close: between far clusters of values the sum is steep at
    a cluster and flat beside it, so a short step proves nothing. A step that is shorter than the tolerance is lengthened to it, and
    so closes the bracket if it was right. A secant that leaves the bracket, or brackets that shrink too slowly, are answered by
    halving; a search that has seen only one side lengthens its steps.
    """
    careful = size < 1e-3 * math.sqrt(n)
    spread = 0.0
    if slope > 0.0:
        spread = size / slope
    else:
        slope = TINY
    low = -math.inf
    high = math.inf
    before = math.nan  # the last theta, and the sum there
    total_before = 0.0
    width = math.inf  # half of the bracket, three passes ago
    for k in range(PASSES):
        value: float = total(x, n, theta, alpha, order, factor, careful, lanes)
        if value == 0.0:
            return theta
        if value > 0.0:
            low = theta
        else:
            high = theta
        secant = (total_before - value) / (alpha * (theta - before))
        if secant > 0.0:  # not on the first pass, which has no secant, nor where rounding has taken over
            slope = secant
        step = value / slope / alpha
        least = max(CLOSE * spread / alpha, 2.0 * ULP * abs(theta), SMALLEST)
        bracketed = low > -math.inf and high < math.inf
        half = 0.5 * high - 0.5 * low  # the whole may be no double
        if bracketed and half <= least:
            return min(max(theta + step, low), high)
        if not abs(step) >= least:
            step = math.copysign(least, value)
        if not bracketed and k >= 4:
            step *= 2.0 ** min(k - 3, 1000)
        new = theta + step
        if bracketed:
            halve = not low < new < high
            if k % 3 == 0:
                halve = halve or half > 0.5 * width
                width = half
            if halve:
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
    """How steeply the sum falls in alpha theta, and the sum of |psi|."""
    slope = 0.0
    size = 0.0
    for j in range(n):
        z = distance(x[j], theta, alpha)
        if z < HUGE:
            power = factor * z ** (order - 1.0)
            slope += (1.0 + order * power) / (1.0 + z + power * z)
        else:
            slope += order / z
        size += abs(influence(x[j], theta, alpha, order, factor))
    return slope, size


def influence(x: float, theta: float, alpha: float, order: float, factor: float) -> float:
    """psi(alpha (x - theta)), to the last digits from the smallest to the largest argument."""
    z = distance(x, theta, alpha)
    if z < HUGE:
        if order == 2.0:
            power = z * z
        else:
            power = z**order
        out = math.log1p(z + factor * power)
    else:  # neither the difference nor its multiple need be finite
        logarithm = math.log(alpha) + math.log(abs(0.5 * x - 0.5 * theta)) + LOG_2
        excess = math.log(factor) + (order - 1.0) * logarithm  # z counts beside C z^p if p is near 1
        out = logarithm + max(excess, 0.0) + math.log1p(math.exp(-abs(excess)))
    if x < theta:
        return -out
    return out


def distance(x: float, theta: float, alpha: float) -> float:
    """alpha |x - theta|; the difference itself need not be a double."""
    out = alpha * abs(x - theta)
    if out == math.inf:
        out = 2.0 * (alpha * abs(0.5 * x - 0.5 * theta))
    return out


def careful_total(
    x: Floats, n: int, theta: float, alpha: float, order: float, factor: float, careful: bool, lanes: Floats
) -> float:
    """The sum of psi, one logarithm each."""
    return part_total(x, 0, n, theta, alpha, order, factor)


@out_of_line
def part_total(x: Floats, start: int, stop: int, theta: float, alpha: float, order: float, factor: float) -> float:
    """The sum of psi over part of the sample."""
    out = 0.0
    for j in range(start, stop):
        out += influence(x[j], theta, alpha, order, factor)
    return out


@out_of_line
def quick_total(
    x: Floats, n: int, theta: float, alpha: float, order: float, factor: float, careful: bool, lanes: Floats
) -> float:
    """The sum of psi for p = 2 and C = 1/2: logarithms of quotients of products.

    Without branches, and in 64 lanes: compilers turn this inner loop into vector instructions (0.9 ns a sample; with a branch on
    the sign, which no processor can predict here, 8 ns).
    """
    if careful:
        return part_total(x, 0, n, theta, alpha, order, factor)
    up = lanes[:LANES]  # products over x > theta
    down = lanes[LANES:]  # and over the others
    out = 0.0
    i = 0
    while i + FACTORS * LANES <= n:
        for k in range(LANES):
            up[k] = 1.0
            down[k] = 1.0
        for start in range(i, i + FACTORS * LANES, LANES):
            for k in range(LANES):
                y = alpha * (x[start + k] - theta)
                above = max(y, 0.0)
                below = max(-y, 0.0)
                up[k] *= 1.0 + above * (1.0 + 0.5 * above)
                down[k] *= 1.0 + below * (1.0 + 0.5 * below)
        for k in range(LANES):
            if up[k] < INSIDE and down[k] < INSIDE:
                out += math.log(up[k] / down[k])
            else:
                for j in range(FACTORS):
                    out += influence(x[i + j * LANES + k], theta, alpha, order, factor)
        i += FACTORS * LANES
    return out + part_total(x, i, n, theta, alpha, order, factor)
