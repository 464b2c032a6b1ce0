"""Catoni's influence function: psi is odd, ``psi(z) = log q(z)`` for z >= 0, and ``q(z) = 1 + z + b z^p``.

Catoni's original function has p = 2 and b = 1/2 ("quadratic" below). For a lower order p = 1 + eps the constant is b =
`influence_constant`. A mean is the root theta of ``sum_j psi(alpha (x_j - theta)) = 0``; the sum falls in theta.

One logarithm of a product of `FACTORS` values of q replaces `FACTORS` logarithms. That is fast, and accurate unless every z is
tiny; `influence` is accurate from the smallest to the largest z. Beyond z = `FAR` such products could overflow, and for larger
values z^2, z or even x - theta overflow too. The functions for such values take logarithms first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats

FACTORS = 16  # number of factors in one product
FAR = 1e8  # q of larger z is not multiplied with others: 16 of them would overflow
SQUARABLE = 1e100  # z up to which `far_influence` uses the square
HUGE = 1e150  # for larger z squares may overflow, and 1 is negligible compared with z
LOG_2 = math.log(2.0)
LARGEST_ROOT = 1e151
PASSES = 5000  # more than bisection needs to get from 1e151 to 5e-324 if every second pass bisects
Sums = Callable[[Floats, float, float, float, float], tuple[float, float]]


def influence_constant(p: float) -> float:
    """Return b_p, the least b for which ``log(1 + z + b |z|^p)`` is above ``-log(1 - z + b |z|^p)``, for 1 < p <= 2."""
    eps, rest = p - 1.0, 2.0 - p  # both exact
    return float((rest / eps) ** (0.5 * rest) * (eps / p) ** (0.5 * p))


def quadratic(z: float) -> float:
    """Return q(z) = 1 + z + z^2/2."""
    return 1.0 + z * (1.0 + 0.5 * z)


def powers(z: float, order: float, factor: float) -> tuple[float, float]:
    """Return q(z) of any order, and psi'(z)."""
    power = factor * z ** (order - 1.0)
    q = 1.0 + z + power * z
    return q, (1.0 + order * power) / q


def distance(x: float, theta: float, alpha: float) -> float:
    """Return z = alpha |x - theta|, even if x - theta overflows."""
    out = alpha * abs(x - theta)
    if out == math.inf:
        out = 2.0 * (alpha * abs(0.5 * x - 0.5 * theta))
    return out


def influence(x: float, theta: float, alpha: float, order: float, factor: float) -> float:
    """Return psi(alpha (x - theta)), accurate from the smallest to the largest argument."""
    z = distance(x, theta, alpha)
    if z < HUGE:
        if order == 2.0:
            power = z * z
        else:
            power = z**order
        out = math.log1p(z + factor * power)
    else:  # x - theta and its multiple may overflow
        logarithm = math.log(alpha) + math.log(abs(0.5 * x - 0.5 * theta)) + LOG_2
        excess = math.log(factor) + (order - 1.0) * logarithm  # z matters next to b z^p if p is near 1
        out = logarithm + max(excess, 0.0) + math.log1p(math.exp(-abs(excess)))
    if x < theta:
        return -out
    return out


@out_of_line
def far_influence(d: float, alpha: float) -> float:
    """Return the quadratic psi(alpha d), odd in d, for large alpha |d| (which may overflow)."""
    z = alpha * abs(d)
    if z < SQUARABLE:
        return math.copysign(math.log(quadratic(z)), d)
    return math.copysign(2.0 * (math.log(abs(d)) + math.log(alpha)) - LOG_2, d)


@out_of_line
def quadratic_sums(x: Floats, theta: float, alpha: float, order: float, factor: float) -> tuple[float, float]:
    """Return the sums of the quadratic psi and psi' at alpha (x_j - theta). Order and factor are not used."""
    n = x.shape[0]
    out = 0.0
    slope = 0.0
    for first in range(0, n, FACTORS):
        up = 1.0
        down = 1.0
        for j in range(first, min(first + FACTORS, n)):
            y = alpha * (x[j] - theta)
            if abs(y) < FAR:
                plus = quadratic(max(y, 0.0))
                minus = quadratic(max(-y, 0.0))
                up *= plus
                down *= minus
                slope += (1.0 + abs(y)) / (plus * minus)
            else:
                out += far_influence(x[j] - theta, alpha)
                slope += 2.0 / abs(y)
        out += math.log(up / down)
    return out, slope


@out_of_line
def power_sums(x: Floats, theta: float, alpha: float, order: float, factor: float) -> tuple[float, float]:
    """Return the sums of psi and psi' of any order at alpha (x_j - theta)."""
    n = x.shape[0]
    out = 0.0
    slope = 0.0
    for first in range(0, n, FACTORS):
        up = 1.0
        down = 1.0
        for j in range(first, min(first + FACTORS, n)):
            d = x[j] - theta
            z = alpha * abs(d)
            if z < FAR:
                q, steepness = powers(z, order, factor)
                if d < 0.0:
                    down *= q
                else:
                    up *= q
                slope += steepness
            else:
                # z and its powers may overflow. Beyond exp(40), z and 1 do not change the last digit of z + b z^p.
                log_z = math.log(alpha) + math.log(abs(d))
                log_power = min(math.log(factor) + (order - 1.0) * log_z, 700.0)
                power = math.exp(log_power)
                if log_power > 40.0:
                    out += math.copysign(math.log(factor) + order * log_z, d)
                else:
                    out += math.copysign(log_z + math.log1p(power) + 1.0 / (z * (1.0 + power)), d)
                slope += (1.0 + order * power) / (1.0 + power) / z
        out += math.log(up / down)
    return out, slope


@out_of_line
def newton_root(
    sums: Sums, x: Floats, alpha: float, order: float, factor: float, theta: float, done: float
) -> tuple[float, float]:
    """Return the root and the slope there, by Newton steps from ``theta`` and by bisection where these do not converge.

    ``sums`` is `quadratic_sums` or `power_sums`. The search ends with a step of at most ``done``, in units of 1/alpha.
    """
    low = -LARGEST_ROOT
    high = LARGEST_ROOT
    slope = 0.0
    for k in range(PASSES):
        value, slope = sums(x, theta, alpha, order, factor)
        if value == 0.0:
            return theta, slope
        if value > 0.0:
            low = theta
        else:
            high = theta
        step = math.copysign(math.inf, value)  # used if all values are so far away that the slope is 0
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
