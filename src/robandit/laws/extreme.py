"""Laws of powers of an exponential variable: Frechet (heavy right tail) and Weibull (every moment finite)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robandit.kernel.types import Floats
from robandit.laws.base import store_checked
from robandit.laws.location_scale import LocationScale, PowerTail, hazard, log_power
from robandit.laws.quadrature import Density
from robandit.laws.table import POWER
from robandit.validation import positive, within


@dataclass(frozen=True)
class Frechet(PowerTail):
    """P(X <= x) = exp(-(x / scale)^-tail) for x > 0: the limit law of maxima of heavy-tailed variables.

    Mean ``scale Gamma(1 - 1/tail)`` for tail > 1, raw moments ``scale^p Gamma(1 - p/tail)`` for p < tail.

    >>> Frechet(tail=2.0).mean
    1.7724538509
    """

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return POWER, -1.0 / self.tail, 0.0

    def standard_cdf(self, z: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.exp(-np.exp(-self.tail * np.log(np.maximum(z, 0.0)))))

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        return np.asarray(hazard(q, not upper) ** (-1.0 / self.tail))

    def standard_moment(self, order: float) -> float:
        return math.gamma(1.0 - order / self.tail)

    def standard_density(self, order: float) -> Density:
        a = self.tail

        def log_density(x: Floats, log_x: Floats) -> Floats:
            return np.asarray(math.log(a) - (a + 1.0) * log_x - np.exp(-a * log_x))

        return Density(log_density, 0.0, 1.0, a, lambda w: np.asarray(math.log(a) - w**a))

    def standard_above(self, t: float) -> tuple[float, float]:
        from scipy import special

        s = _power(t, -self.tail)
        if self.tail <= 1.0:
            return -math.expm1(-s), math.inf
        return -math.expm1(-s), self.standard_mean * float(special.gammainc(1.0 - 1.0 / self.tail, s))

    def standard_below(self, t: float) -> tuple[float, float]:
        s = _power(t, -self.tail)
        return math.exp(-s), _upper_gamma(1.0 - 1.0 / self.tail, s)


def _power(t: float, exponent: float) -> float:
    """Return t^exponent: infinite if it overflows, and the limit at 0 for t <= 0."""
    log = log_power(t, exponent)
    return math.exp(log) if log < 709.0 else math.inf


def _upper_gamma(s: float, x: float) -> float:
    """Return the integral of t^(s-1) e^-t from x to infinity. For laws without a mean, s is negative."""
    from scipy import special

    if x == math.inf:
        return 0.0
    if s > 0.0:
        return math.gamma(s) * float(special.gammaincc(s, x))
    if s == 0.0:
        return float(special.exp1(x))
    return (_upper_gamma(s + 1.0, x) - math.exp(s * math.log(x) - x)) / s


@dataclass(frozen=True)
class Weibull(LocationScale):
    """P(X > x) = exp(-(x / scale)^shape) for x >= 0: exponential for shape 1, long-tailed below.

    Mean ``scale Gamma(1 + 1/shape)``, raw moments ``scale^p Gamma(1 + p/shape)``.

    >>> Weibull(shape=0.5).mean
    2.0
    """

    shape: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        shape = within(self.shape, "shape", 0.01, math.inf, hint="values overflow for smaller shapes")
        object.__setattr__(self, "shape", shape)
        store_checked(self, positive, "scale")

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return POWER, 1.0 / self.shape, 0.0

    def standard_cdf(self, z: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(-(np.maximum(z, 0.0) ** self.shape)))

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        return np.asarray(hazard(q, upper) ** (1.0 / self.shape))

    def standard_moment(self, order: float) -> float:
        return math.gamma(1.0 + order / self.shape)

    def standard_density(self, order: float) -> Density:
        k = self.shape

        def log_density(x: Floats, log_x: Floats) -> Floats:
            return np.asarray(math.log(k) + (k - 1.0) * log_x - np.exp(k * log_x))

        return Density(log_density, 0.0, 1.0, edge=k)

    def standard_above(self, t: float) -> tuple[float, float]:
        s = _power(t, self.shape)
        return math.exp(-s), _upper_gamma(1.0 + 1.0 / self.shape, s)

    def standard_below(self, t: float) -> tuple[float, float]:
        from scipy import special

        s = _power(t, self.shape)
        return -math.expm1(-s), self.standard_mean * float(special.gammainc(1.0 + 1.0 / self.shape, s))
