"""Laws whose right tail falls like a power: Pareto, Lomax and Burr. Burr has another parameter for its bulk."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robandit.kernel.types import Floats
from robandit.laws.base import store_checked
from robandit.laws.location_scale import LocationScale, PowerTail, hazard, log_power
from robandit.laws.quadrature import Density
from robandit.laws.table import BURR, PARETO, Component
from robandit.validation import positive


@dataclass(frozen=True)
class Pareto(PowerTail):
    """P(X > x) = (scale / x)^tail for x >= scale: the reference heavy tail. E X^p is finite if and only if p < tail.

    Mean ``scale tail / (tail - 1)`` for tail > 1, raw moments ``scale^p tail / (tail - p)``.

    >>> Pareto(tail=1.5).mean
    3.0
    """

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return PARETO, 1.0 / self.tail, 0.0

    @property
    def standard_support(self) -> tuple[float, float]:
        return 1.0, math.inf

    def standard_cdf(self, z: Floats) -> Floats:
        return np.asarray(-np.expm1(-self.tail * np.log(np.maximum(z, 1.0))))

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        return np.asarray(np.exp(hazard(q, upper) / self.tail))

    def standard_moment(self, order: float) -> float:
        return self.tail / (self.tail - order)

    def standard_density(self, order: float) -> Density:
        a = self.tail
        return Density(lambda _, log_x: math.log(a) - (a + 1.0) * log_x, 1.0, 1.0, a, lambda w: math.log(a) + 0.0 * w)

    def standard_above(self, t: float) -> tuple[float, float]:
        t = max(t, 1.0)
        mass = t**-self.tail
        if self.tail <= 1.0:
            return mass, math.inf
        if mass == 0.0:  # the formula below may give NaN: t times the mean may overflow, and 0 times infinity is NaN
            return mass, self.standard_mean * t ** (1.0 - self.tail)
        return mass, self.standard_mean * t * mass

    def standard_below(self, t: float) -> tuple[float, float]:
        return _below(self.tail, t)


def _below(tail: float, t: float) -> tuple[float, float]:
    """Return P(Z < t) and E[Z 1{Z < t}] for a Pareto variable with least value 1."""
    if t <= 1.0:
        return 0.0, 0.0
    log_t = math.log(t)
    part = log_t if tail == 1.0 else tail * math.expm1((1.0 - tail) * log_t) / (1.0 - tail)
    return -math.expm1(-tail * log_t), part


@dataclass(frozen=True)
class Lomax(PowerTail):
    """P(X > x) = (1 + x / scale)^-tail for x >= 0: a Pareto law shifted to start at 0.

    Mean ``scale / (tail - 1)`` for tail > 1, raw moments ``scale^p tail B(p + 1, tail - p)``.

    >>> Lomax(tail=1.5).mean
    2.0
    """

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return PARETO, 1.0 / self.tail, 0.0

    def components(self) -> tuple[Component, ...]:
        return (Component(1.0, -self.scale, self.scale, *self.standard_code),)

    @property
    def standard_mean(self) -> float:
        """1 / (tail - 1), without the rounding of the beta function."""
        return 1.0 / (self.tail - 1.0) if self.tail > 1.0 else math.inf

    def standard_cdf(self, z: Floats) -> Floats:
        return np.asarray(-np.expm1(-self.tail * np.log1p(np.maximum(z, 0.0))))

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        return np.asarray(np.expm1(hazard(q, upper) / self.tail))

    def standard_moment(self, order: float) -> float:
        log_beta = math.lgamma(order + 1.0) + math.lgamma(self.tail - order) - math.lgamma(self.tail + 1.0)
        return self.tail * math.exp(log_beta)

    def standard_density(self, order: float) -> Density:
        a = self.tail

        def log_density(x: Floats, log_x: Floats) -> Floats:
            return np.asarray(math.log(a) - (a + 1.0) * np.log1p(x))

        return Density(log_density, 0.0, 1.0 / a, a, lambda w: np.asarray(math.log(a) - (a + 1.0) * np.log1p(w)))

    def standard_above(self, t: float) -> tuple[float, float]:
        t = max(t, 0.0)
        mass = (1.0 + t) ** -self.tail
        if self.tail <= 1.0:
            return mass, math.inf
        if mass == 0.0:  # the formula below may give NaN, because tail times t may overflow
            return mass, self.tail / (self.tail - 1.0) * t ** (1.0 - self.tail)
        return mass, mass * (1.0 + self.tail * t) / (self.tail - 1.0)

    def standard_below(self, t: float) -> tuple[float, float]:
        mass, part = _below(self.tail, 1.0 + t)
        return mass, part - mass


@dataclass(frozen=True)
class Burr(LocationScale):
    """P(X > x) = (1 + (x / scale)^c)^-k for x >= 0 (Burr XII): tail index c k; a Lomax law for c = 1.

    Mean ``scale k B(k - 1/c, 1 + 1/c)`` for c k > 1, raw moments ``scale^p k B(k - p/c, 1 + p/c)``.

    >>> Burr(c=2.0, k=1.0).mean
    1.5707963267
    """

    c: float
    k: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        store_checked(self, positive, "c", "k", "scale")

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return BURR, 1.0 / self.c, 1.0 / self.k

    @property
    def right_tail(self) -> float:
        return self.c * self.k

    def standard_cdf(self, z: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(-self.k * np.log1p(np.maximum(z, 0.0) ** self.c)))

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        y = hazard(q, upper) / self.k
        # For y > 40, e^y - 1 rounds to e^y, which may overflow although its root does not.
        return np.where(y > 40.0, np.exp(y / self.c), np.expm1(y) ** (1.0 / self.c))

    def standard_moment(self, order: float) -> float:
        # This is k - order/c. Computed from the tail index, it is positive if and only if the order is below that index.
        rest = (self.right_tail - order) / self.c
        return self.k * math.exp(math.lgamma(rest) + math.lgamma(1.0 + order / self.c) - math.lgamma(self.k + 1.0))

    def standard_density(self, order: float) -> Density:
        c, k = self.c, self.k
        constant = math.log(c * k)

        def log_density(x: Floats, log_x: Floats) -> Floats:
            return np.asarray(constant + (c - 1.0) * log_x - (k + 1.0) * np.logaddexp(0.0, c * log_x))

        def log_kernel(w: Floats) -> Floats:
            return np.asarray(constant - (k + 1.0) * np.log1p(w**c))

        median = math.expm1(math.log(2.0) / k) ** (1.0 / c)
        return Density(log_density, 0.0, median, self.right_tail, log_kernel, edge=c)

    def standard_above(self, t: float) -> tuple[float, float]:
        from scipy import special

        log_one_plus = _softplus(log_power(t, self.c))
        share = math.exp(-log_one_plus)
        mass = math.exp(-self.k * log_one_plus)
        if self.right_tail <= 1.0:
            return mass, math.inf
        inverse = 1.0 / self.c
        return mass, self.standard_mean * float(special.betainc(self.k - inverse, 1.0 + inverse, share))

    def standard_below(self, t: float) -> tuple[float, float]:
        from scipy import special

        log_t_power = log_power(t, self.c)
        mass = -math.expm1(-self.k * _softplus(log_t_power))
        share = math.exp(-_softplus(-log_t_power))
        inverse = 1.0 / self.c
        if self.right_tail > 1.0:
            return mass, self.standard_mean * float(special.betainc(1.0 + inverse, self.k - inverse, share))
        # If there is no mean, the beta function has a negative parameter. A hypergeometric series gives the same integral.
        series = float(special.hyp2f1(1.0 + inverse, 1.0 + inverse - self.k, 2.0 + inverse, share))
        return mass, self.k * share ** (1.0 + inverse) / (1.0 + inverse) * series


def _softplus(y: float) -> float:
    """Return log(1 + e^y) for any y, even if e^y overflows."""
    return y if y > 700.0 else math.log1p(math.exp(y))
