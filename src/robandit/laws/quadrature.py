"""Moments of laws by quadrature, to about 1e-12 relative, for the cases without a closed form.

Everything is integrated in the logarithm of the distance to the nearest special point (the end of the support, the
point about which the moment is taken, the bulk of the law), with the trapezoidal rule after a hyperbolic sine: the
double-exponential rule of Takahasi and Mori. Kinks, densities that are infinite at an end and tails that decay like
x^-1.0001 are then all the same easy case, because logarithms neither overflow nor underflow.
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

# A term below exp(-45) of the largest one is below 3e-20: nothing that a double could show.
NEGLIGIBLE = 45.0


class Density(NamedTuple):
    """What the quadrature has to know about a law with location 0 and scale 1.

    ``log_density(x, log_x)`` is log f(x), where ``log_x`` is log|x|, exact even where x underflows. For a heavy right
    tail, ``log_kernel(w)`` is log(f(1/w) w^-(tail+1)), which has a finite limit at w = 0. ``edge`` is the power with
    which P(X < x) vanishes at the lower end of the support (1 where the density is bounded), and ``centre`` a point
    in the bulk. ``reach`` is how far from 0 the logarithm of X matters, for laws that need more than usual. The
    support starts at ``lower`` >= 0: a symmetric law is integrated as two halves.
    """

    log_density: Callable[[Floats, Floats], Floats]
    lower: float
    centre: float
    tail: float = math.inf
    log_kernel: Callable[[Floats], Floats] | None = None
    edge: float = 1.0
    reach: float = 0.0


def double_exponential(integrand: Callable[[Floats], Floats], reach: float, what: str) -> float:
    """The integral over the real line of a function that decays exponentially on both sides within ``reach``."""
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
    raise InvalidInput(
        f"{what} is too close to the edge of its domain for the quadrature (error {change:g} of {value:g}); "
        "move the order, the point or the law's parameters away from the edge"
    )


def moment(density: Density, order: float, about: float, what: str) -> float:
    """E|X - about|^order over the right part of a law: from ``density.lower`` to infinity.

    The caller has made sure that it is finite: ``order < density.tail``.
    """
    points = {density.centre}
    if math.isfinite(density.lower):
        points.add(density.lower)
    if about > density.lower:
        points.add(about)
    breaks = sorted(points)
    total = 0.0
    for left, right in pairwise(breaks):
        half = 0.5 * (right - left)
        if half == 0.0:  # neighbours among the smallest doubles: nothing lies between them
            continue
        edge = density.edge if left == density.lower else 1.0
        total += _finite(density, order, about, left, 1.0, half, edge, what)
        total += _finite(density, order, about, right, -1.0, half, 1.0, what)
    edge = density.edge if breaks[-1] == density.lower else 1.0
    return total + _infinite(density, order, about, breaks[-1], edge, what)


def _log_distance(base: float, about: float, sign: float, offset: Floats, log_offset: Floats) -> Floats:
    if base == about:
        return log_offset
    return np.asarray(np.log(np.abs((base - about) + sign * offset)))


def _terms(log_terms: Floats) -> Floats:
    """exp, with 0 where a product of nothing and infinity left no number."""
    return np.asarray(np.exp(np.where(np.isnan(log_terms), -np.inf, log_terms)))


def _finite(
    density: Density, order: float, about: float, base: float, sign: float, length: float, edge: float, what: str
) -> float:
    """The part within ``length`` of ``base`` on one side of it."""

    def integrand(logit: Floats) -> Floats:
        log_share = -np.logaddexp(0.0, -logit)
        log_offset = math.log(length) + log_share
        offset = np.exp(log_offset)
        x = base + sign * offset
        log_x = log_offset if base == 0.0 else np.log(np.abs(x))
        log_terms = order * _log_distance(base, about, sign, offset, log_offset) + density.log_density(x, log_x)
        return _terms(log_terms + log_offset - np.logaddexp(0.0, logit))

    return double_exponential(integrand, max(NEGLIGIBLE / min(1.0, edge), density.reach), what)


def _infinite(density: Density, order: float, about: float, base: float, edge: float, what: str) -> float:
    """The part above ``base``, which is at least ``about``."""
    kernel = density.log_kernel
    if kernel is None:
        reach = max(NEGLIGIBLE / min(1.0, edge), density.reach)
    else:
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
        # f(x) = kernel(1/x) x^-(tail + 1): what decays is written as one power of x, the rest tends to constants, so
        # that nothing cancels even where log x is a million
        powers = (order - density.tail) * log_x + order * (log_distance - log_x) + (log_offset - log_x)
        return _terms(kernel(np.exp(-log_x)) + powers)

    return double_exponential(integrand, reach, what)
