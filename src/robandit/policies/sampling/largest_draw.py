"""The probability that an arm has the largest of independent Student draws, for the propensities of Gaussian Thompson sampling.

Arm i draws c_i + b_i T_i, where T_i has nu_i degrees of freedom, density f_i and distribution function F_i. It wins with
probability

    integral over z of f_i(z) times the product over j != i of F_j((c_i + b_i z - c_j) / b_j).

The line is split at the points c_j + b_j e for all allowed arms j and all e in `EDGES`, and 12 Gauss-Legendre points integrate each
part. The two ends are mapped to (0, 1) by z = end / w. The sum runs from the right, where the product is near 1, and skips parts
that cannot change it by a share of `NEGLIGIBLE`, so small probabilities have small relative errors, too. An arm with b = 0 draws c;
ties of such arms go to the fewest pulls, then to the lowest arm.

The hooks: ``centre(s, arm)`` is c, ``spread(p, s, arm)`` is b and ``freedom(p, s, arm)`` is nu.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.policies._parts.counting import wins_tie
from robandit.policies.sampling.student import student_above, student_density

EDGES = np.array([-200.0, -40.0, -8.0, -2.0, 0.0, 2.0, 8.0, 40.0, 200.0])
NEGLIGIBLE = 1e-10

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
POINTS = 0.5 + 0.5 * _NODES  # in (0, 1)
WEIGHTS = 0.5 * _WEIGHTS


def chance_of_largest(centre: Any, spread: Any, freedom: Any, p: Any, s: Any, arm: int) -> float:
    """Return the probability that the arm has the largest draw of the allowed arms."""
    if spread(p, s, arm) == 0.0:
        return others_below(centre, spread, freedom, p, s, arm, centre(s, arm))
    high = next_edge(centre, spread, p, s, math.inf)
    total = tail(centre, spread, freedom, p, s, arm, high)
    while True:
        most = others_below(centre, spread, freedom, p, s, arm, high)
        if most <= NEGLIGIBLE * total:
            return min(total, 1.0)
        low = next_edge(centre, spread, p, s, high)
        if low == -math.inf:
            return min(total + tail(centre, spread, freedom, p, s, arm, high), 1.0)
        z = (low - centre(s, arm)) / spread(p, s, arm)
        if most * student_above(z, freedom(p, s, arm)) > NEGLIGIBLE * total:
            total += part(centre, spread, freedom, p, s, arm, low, high)
        high = low


@out_of_line
def next_edge(centre: Any, spread: Any, p: Any, s: Any, below: float) -> float:
    """Return the largest edge of an allowed arm below a point, or minus infinity."""
    nearest = -math.inf
    for arm in range(s.arms.shape[0]):
        if s.allowed[arm]:
            middle = centre(s, arm)
            width = spread(p, s, arm)
            for k in range(EDGES.shape[0]):
                edge = middle + width * EDGES[k]
                if nearest < edge < below:
                    nearest = edge
    return nearest


@out_of_line
def others_below(centre: Any, spread: Any, freedom: Any, p: Any, s: Any, arm: int, draw: float) -> float:
    """Return the probability that all other allowed arms draw less."""
    product = 1.0
    for other in range(s.arms.shape[0]):
        if other != arm and s.allowed[other]:
            gap = draw - centre(s, other)
            width = spread(p, s, other)
            if width > 0.0:
                product *= student_above(-gap / width, freedom(p, s, other))
            elif gap < 0.0 or (gap == 0.0 and not wins_tie(s, arm, other)):
                return 0.0
    return product


@out_of_line
def part(centre: Any, spread: Any, freedom: Any, p: Any, s: Any, arm: int, low: float, high: float) -> float:
    """Return the integral between two edges."""
    middle, width, nu = centre(s, arm), spread(p, s, arm), freedom(p, s, arm)
    length = (high - low) / width
    total = 0.0
    for k in range(POINTS.shape[0]):
        draw = low + (high - low) * POINTS[k]
        density = student_density((draw - middle) / width, nu)
        total += WEIGHTS[k] * density * others_below(centre, spread, freedom, p, s, arm, draw)
    return length * total


@out_of_line
def tail(centre: Any, spread: Any, freedom: Any, p: Any, s: Any, arm: int, end: float) -> float:
    """Return the integral from the first or last edge to infinity. An edge of the arm itself lies inside, so z is not 0."""
    middle, width, nu = centre(s, arm), spread(p, s, arm), freedom(p, s, arm)
    z = (end - middle) / width
    total = 0.0
    for k in range(POINTS.shape[0]):
        w = POINTS[k]
        below = others_below(centre, spread, freedom, p, s, arm, middle + width * z / w)
        total += WEIGHTS[k] * student_density(z / w, nu) / (w * w) * below
    return abs(z) * total
