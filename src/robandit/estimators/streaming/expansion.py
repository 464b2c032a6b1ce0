"""The root of Catoni's equation for cells with moments, and a bound on its error.

A cell represents its values by their number, mean m and second and third central moment. psi is odd, and psi(y) = log q with q =
1 + y + y^2/2 for y >= 0. Its third derivative is continuous and the fourth is (-3 q^2 + 12 q - 6) / q^4, at most 3 / q^2 in size
(because (q - 1)^2 >= 0). So a Taylor expansion of order 3 about m has an error of at most ``(3 / q^2) / 24 * alpha^4 sum (x -
m)^4 <= alpha^4 W^2 M2 / (8 q^2)``. Here q is taken at the end of the cell nearest to theta, W is the larger distance from m to an
end, and M2 = sum (x - m)^2. The total over cells, plus rounding, is E(theta). The sum falls in theta. So if the expansion is
above E at theta - h and below -E at theta + h, the exact root is within h of theta.

In y = alpha (x - theta), cells have a width w <= |x - center| / 16. Assume that the center is within 1/alpha of theta and v is at
least the variance of the data. Then sum y^2 is about ell = 2 log(2/delta), a value adds at most (alpha w)^4 / 96, and E / (alpha
n) is below 1e-7 of the width sqrt(2 v ell / n). Tests check 1e-6.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.estimators.formulas.catoni import taylor
from robandit.kernel.types import Floats

ROUNDING = 2.0**-49
PATIENCE = 30  # number of steps after which every third step bisects
STEPS = PATIENCE + 3 * 66  # enough for 64 bisections, which end any search


class Body(NamedTuple):
    """Cells as columns: number of values, mean from the center, width, central moments and reach in units of the width."""

    number: Floats
    mean: Floats
    width: Floats
    second: Floats
    third: Floats
    reach: Floats


def expanded_root(body: Body, alpha: float) -> tuple[float, float]:
    """Return the root of the expanded sum, and a bound on its distance from the exact root."""
    theta = _solve(body, alpha)
    total, slope, bound = _expanded(body, alpha, theta)
    h = 1.5 * (abs(total) + bound) / slope if slope > 0.0 else 0.0
    h = max(h, math.ulp(theta))
    tries = 0
    while math.isfinite(h):
        above, _, above_bound = _expanded(body, alpha, theta - h)
        below, _, below_bound = _expanded(body, alpha, theta + h)
        if above > above_bound and below < -below_bound:
            return theta, h
        tries += 1
        h *= 4.0 if tries < 10 else 256.0  # the sum may be flat over most of the 1074 powers of two
    return theta, h


def _solve(body: Body, alpha: float) -> float:
    """Return the root of the expanded sum, by Newton steps within a bracket."""
    theta = 0.0
    low, high = float((body.mean - body.width).min()), float((body.mean + body.width).max())
    span = math.inf
    for step in range(STEPS):
        total, slope, _ = _expanded(body, alpha, theta)
        if total == 0.0:
            break
        if total > 0.0:
            low = max(low, theta)
        else:
            high = min(high, theta)
        new = theta + total / slope if slope > 0.0 else math.inf
        if step % 3 == 0:
            if high - low > 0.5 * span or step > PATIENCE:
                new = math.inf
            span = high - low
        if not low < new < high:
            new = _halfway(low, high)
        if new == theta or not low < new < high:
            break
        close = abs(new - theta) <= 2.0**-52 * max(abs(new), abs(theta))
        theta = new
        if close:
            break
    return theta


def _halfway(low: float, high: float) -> float:
    """Return the double with equally many doubles to either end, so that 64 bisections end any search at every scale."""
    ends = np.array([low, high]).view(np.int64)
    # The bit patterns of positive doubles are ordered like the doubles, those of negative doubles in reverse.
    a, b = (int(e) if e >= 0 else -(int(e) & (2**63 - 1)) for e in ends)
    middle = (a + b) // 2
    pattern = np.array([abs(middle)], dtype=np.int64).view(np.float64)
    return math.copysign(float(pattern[0]), middle)


def _expanded(body: Body, alpha: float, theta: float) -> tuple[float, float, float]:
    """Return the sum of psi computed from moments, the slope with which it falls, and the bound E of its error."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        off = body.mean - theta
        size = np.abs(off)
        u = alpha * body.width
        psi, slope, second, third = taylor(size, body.width, alpha)
        terms = np.sign(off) * (body.number * psi + 0.5 * second * body.second) + third * body.third / 6.0
        # q >= max(1, y^2/2) at the end of the cell nearest to theta.
        near = body.width / np.maximum(size - body.reach * body.width, 0.0)
        fourth = np.where(body.width > 0.0, np.minimum(u**4, 4.0 * near**4), 0.0)
        linear = np.where(body.width > 0.0, np.minimum(u, 2.0 * near), 0.0)
        # Second and third moments are plain sums of up to ``number`` numbers below 1.
        noise = (ROUNDING + 2.0**-53 * body.number) * body.number
        bound = 0.125 * fourth * body.reach**2 * (body.second + noise)
        bound += noise * (np.abs(second) + np.abs(third))
        bound += ROUNDING * body.number * (psi + slope * alpha * abs(theta) + linear)
    return math.fsum(terms), alpha * float((body.number * slope).sum()), float(bound.sum())
