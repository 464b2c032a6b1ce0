"""The root of ``sum_j psi(alpha (x_j - theta)) = 0`` over all rewards of an arm, for policies that keep them."""

from __future__ import annotations

import math
from collections.abc import Callable

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

__all__ = ["solve"]

LARGEST = 1e151  # no root is beyond it
PASSES = 5000  # more than halving needs, from 1e151 to 5e-324 at every second pass
Sums = Callable[[Floats, float, float, float, float], tuple[float, float]]


@out_of_line
def solve(
    sums: Sums, x: Floats, alpha: float, order: float, factor: float, theta: float, done: float
) -> tuple[float, float]:
    """The root, and the slope there, by Newton steps; by halving where these do not come nearer.

    ``sums(x, theta, alpha, order, factor)`` are those of psi, which is odd and grows, and of psi'. A step of at most ``done``, in
    units of 1/alpha, is the last.
    """
    low = -LARGEST
    high = LARGEST
    slope = 0.0
    for k in range(PASSES):
        value, slope = sums(x, theta, alpha, order, factor)
        if value == 0.0:
            return theta, slope
        if value > 0.0:
            low = theta
        else:
            high = theta
        step = math.copysign(math.inf, value)  # if all rewards are out of sight
        if slope > 0.0:
            step = value / slope
        new = theta + step / alpha
        if abs(step) <= done or new == theta:
            return new, slope
        if not low < new < high or (k > 20 and k % 2 == 0):
            new = 0.5 * low + 0.5 * high
            if not low < new < high:
                return theta, slope
        theta = new
    return theta, slope
