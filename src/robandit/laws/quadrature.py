"""Moments of laws without a closed form, by quadrature with a relative error of about 1e-12.

The variable of integration is the log of the distance to the nearest special point: the end of the support, the point about which
the moment is taken, or the bulk of the law. The rule is the double-exponential rule of Takahasi and Mori (trapezoidal after sinh).
Logs neither overflow nor underflow, so it handles kinks, infinite densities at an end and tails like x^-1.0001.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

__all__ = ["Density", "double_exponential", "moment"]

# Terms below exp(-45) < 3e-20 of the largest one do not change a sum of doubles.
NEGLIGIBLE = 45.0


class Density(NamedTuple):
    """The density f of a law with location 0 and scale 1, in the form that the quadrature needs.

    ``log_density(x, log_x)`` is log f(x), where ``log_x`` is log|x| and exact even if x underflows. The support starts at ``lower``
    >= 0; a symmetric law is integrated as two halves. ``centre`` is a point in the bulk. For a heavy right tail, ``log_kernel(w)``
    is log(f(1/w) w^-(tail+1)), which has a finite limit at w = 0. At ``lower``, P(X < x) vanishes like (x - lower)^``edge``
    (``edge`` is 1 for a bounded density). ``reach`` is the largest |log X| to integrate, if the default is not enough.
    """

    log_density: Callable[[Floats, Floats], Floats]
    lower: float
    centre: float
    tail: float = math.inf
    log_kernel: Callable[[Floats], Floats] | None = None
    edge: float = 1.0
    reach: float = 0.0


def double_exponential(integrand: Callable[[Floats], Floats], reach: float, what: str) -> float:
    """Return the integral over the real line of a function that decays exponentially on both sides within ``reach``."""
    width = math.asinh(reach)
    previous = math.nan
    for level in range(4, 13):
        step = 0.5**level
        count = math.ceil(width / step)
        t = np.arange(-count, count + 1) * step
        with np.errstate(all="ignore"):
            values = integrand(np.sinh(t)) * np.cosh(t)
        value = float(np.sum(values) * step)
        if abs(value - previous) <= 1e-12 * abs(value):
            return value
        previous, change = value, abs(value - previous)
    if change <= 1e-9 * abs(value):
        return value
    hint = "move the order, the point or the parameters away from the ends of their ranges"
    raise InvalidInput(f"the quadrature of {what} did not converge (error {change:g} of {value:g}); {hint}")


def moment(density: Density, order: float, about: float, what: str) -> float:
    """Return E|X - about|^order over the part of a law from ``density.lower`` to infinity.

    It must be finite: ``order < density.tail``.
    """
    breaks = sorted({density.centre, density.lower, max(about, density.lower)})
    total = 0.0
    for left, right in pairwise(breaks):
        half = 0.5 * (right - left)
        if half == 0.0:  # both are neighbours among the smallest doubles
            continue
        edge = density.edge if left == density.lower else 1.0
        total += _finite(density, order, about, left, 1.0, half, edge, what)
        total += _finite(density, order, about, right, -1.0, half, 1.0, what)
    edge = density.edge if breaks[-1] == density.lower else 1.0
    return total + _infinite(density, order, about, breaks[-1], edge, what)


def _terms(log_terms: Floats) -> Floats:
    """Return exp of the terms, with 0 for NaN, which results from the log of 0 plus infinity."""
    return np.asarray(np.exp(np.where(np.isnan(log_terms), -np.inf, log_terms)))


def _finite(
    density: Density, order: float, about: float, base: float, sign: float, length: float, edge: float, what: str
) -> float:
    """Integrate over the points within ``length`` of ``base``, on the side given by ``sign``."""

    def integrand(logit: Floats) -> Floats:
        log_offset = math.log(length) - np.logaddexp(0.0, -logit)
        offset = np.exp(log_offset)
        x = base + sign * offset
        log_x = log_offset if base == 0.0 else np.log(np.abs(x))
        log_distance = log_offset if base == about else np.log(np.abs((base - about) + sign * offset))
        log_terms = order * log_distance + density.log_density(x, log_x)
        return _terms(log_terms + log_offset - np.logaddexp(0.0, logit))

    return double_exponential(integrand, max(NEGLIGIBLE / min(1.0, edge), density.reach), what)


def _infinite(density: Density, order: float, about: float, base: float, edge: float, what: str) -> float:
    """Integrate over the points above ``base``, which is at least ``about``."""
    kernel = density.log_kernel
    reach = max(NEGLIGIBLE / min(1.0, edge), density.reach)
    if kernel is not None:
        reach = NEGLIGIBLE / min(1.0, edge, density.tail - order)

    def integrand(log_offset: Floats) -> Floats:
        offset = np.exp(log_offset)
        gap = base - about
        if gap > 0.0:
            log_distance = np.logaddexp(math.log(gap), log_offset)
        else:
            log_distance = log_offset if gap == 0.0 else np.log(gap + offset)
        log_x = np.logaddexp(math.log(base), log_offset) if base > 0.0 else log_offset
        if kernel is None:
            return _terms(order * log_distance + density.log_density(base + offset, log_x) + log_offset)
        # f(x) = kernel(1/x) x^-(tail + 1): one power of x contains all the decay, and the other factors tend to constants. So
        # nothing cancels, even if log x is a million.
        powers = (order - density.tail) * log_x + order * (log_distance - log_x) + (log_offset - log_x)
        return _terms(kernel(np.exp(-log_x)) + powers)

    return double_exponential(integrand, reach, what)
