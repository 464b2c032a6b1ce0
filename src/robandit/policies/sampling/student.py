"""Student's t in compiled code: a draw, the density, and the probability of a larger value.

The draw is Bailey's polar method (1994): with U and V uniform, ``sqrt(nu (U^(-2/nu) - 1)) cos(2 pi V)`` has exactly this law. The
tail is half of the incomplete beta function I_x(nu/2, 1/2) at x = nu / (nu + z^2), by its continued fraction, and from `MANY`
degrees of freedom on Hill's expansion (1970) about the normal law. Below `MANY` the relative error is below 1e-10, also far out in
the tail; from there on it is below 1e-9 for probabilities above 1e-30, and up to 5e-4 for smaller ones.
"""

from __future__ import annotations

import math

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import uniform
from robandit.kernel.types import UInts

MANY = 200.0  # degrees of freedom
FAR = 1e100  # a larger value has a probability below 1e-199, if nu >= 2
TERMS = 300  # of the continued fraction; below MANY degrees of freedom it needs fewer than 60
CLOSE = 1e-15
ENOUGH = 20.0  # from here on, the series of Gamma(a + 1/2) / (sqrt(a) Gamma(a)) has a relative error below 1e-14. Its coefficients
SERIES = (  # of a^-8, ..., 1/a, 1:
    -334477 / 2**31, 39325 / 2**25, 869 / 2**22, -399 / 2**18, -21 / 2**15, 5 / 2**10, 1 / 2**7, -1 / 2**3, 1.0,
)  # fmt: skip
TINY = 1e-300
ROOT_PI = math.sqrt(math.pi)
ROOT_TWO = math.sqrt(2.0)


def student_draw(nu: float, rng: UInts) -> float:
    """Return a variable of Student's law with nu degrees of freedom, divided by sqrt(nu)."""
    radius = math.sqrt(math.expm1(-2.0 * math.log(uniform(rng)) / nu))
    return radius * math.cos(2.0 * math.pi * uniform(rng))


@out_of_line
def student_density(z: float, nu: float) -> float:
    """Return the density at z."""
    if abs(z) > FAR:
        return 0.0
    return gamma_ratio(nu) / (ROOT_PI * math.sqrt(nu)) * math.exp(-0.5 * (nu + 1.0) * math.log1p(z * z / nu))


@out_of_line
def student_above(z: float, nu: float) -> float:
    """Return the probability of a value above z."""
    if abs(z) > FAR:
        return 0.0 if z > 0.0 else 1.0
    tail = far_tail(abs(z), nu) if nu < MANY else hill_tail(abs(z), nu)
    return tail if z >= 0.0 else 1.0 - tail


def far_tail(z: float, nu: float) -> float:
    """Return the probability above z >= 0, by the continued fraction on the side on which it converges fast."""
    a = 0.5 * nu
    square = z * z
    front = gamma_ratio(nu) / ROOT_PI * math.exp(-a * math.log1p(square / nu)) * z / math.sqrt(nu + square)
    x = nu / (nu + square)
    if x * (a + 2.5) < a + 1.0:
        return 0.5 * front * beta_fraction(a, 0.5, x) / a
    return 0.5 - front * beta_fraction(0.5, a, square / (nu + square))


def hill_tail(z: float, nu: float) -> float:
    """Return the probability above z >= 0 by Hill's expansion (Algorithm 395 of the ACM), for many degrees of freedom."""
    a = nu - 0.5
    b = 48.0 * a * a
    y = a * math.log1p(z * z / nu)
    correction = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + b)
    return 0.5 * math.erfc(((correction + y + 3.0) / b + 1.0) * math.sqrt(y) / ROOT_TWO)


def gamma_ratio(nu: float) -> float:
    """Return Gamma((nu + 1) / 2) / Gamma(nu / 2) by its series. Differences of lgamma would lose digits."""
    a = 0.5 * nu
    if a < 0.0:  # only in a file that contradicts itself: the recurrence might never end
        return math.nan
    if nu < MANY:
        product = 1.0
        while a < ENOUGH:
            product *= a / (a + 0.5)
            a += 1.0
        series = 0.0
        for k in range(len(SERIES)):
            series = series / a + SERIES[k]
        return product * math.sqrt(a) * series
    return math.sqrt(a) * (1.0 - (1.0 - (1.0 + (5.0 - 0.65625 / a) / (8.0 * a)) / (16.0 * a)) / (8.0 * a))


def beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of I_x(a, b), by the method of Lentz: I = x^a (1-x)^b / (a B(a, b)) times the fraction."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > TINY else TINY)
    value = d
    for m in range(1, TERMS):
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        for part in (even, odd):
            d = 1.0 + part * d
            c = 1.0 + part / c
            d = 1.0 / (d if abs(d) > TINY else TINY)
            c = c if abs(c) > TINY else TINY
            value *= d * c
        if abs(d * c - 1.0) < CLOSE:
            break
    return value
