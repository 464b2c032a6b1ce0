"""Symmetric laws with heavy tails: Student's t, and the Cauchy law, which is t with one degree of freedom."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robandit.kernel.types import Floats
from robandit.laws.base import store_checked
from robandit.laws.location_scale import SymmetricLaw
from robandit.laws.quadrature import Density
from robandit.laws.table import CAUCHY, STUDENT
from robandit.validation import finite, positive


@dataclass(frozen=True)
class StudentT(SymmetricLaw):
    """loc + scale T, where T is Student's t: symmetric about loc, tail index dof, mean loc for dof > 1.

    E|X - loc|^p = ``scale^p dof^(p/2) Gamma((p+1)/2) Gamma((dof-p)/2) / (sqrt(pi) Gamma(dof/2))``.

    >>> StudentT(dof=3.0).variance
    3.0
    """

    dof: float
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        store_checked(self, positive, "dof", "scale")
        store_checked(self, finite, "loc")

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return STUDENT, self.dof, 0.0

    @property
    def right_tail(self) -> float:
        return self.dof

    def standard_cdf(self, z: Floats) -> Floats:
        from scipy import special

        return np.asarray(special.stdtr(self.dof, z))

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        """Student's quantiles, from those of a beta variable. SciPy's own are wrong beyond 1e154, where squares overflow."""
        from scipy import special

        dof = self.dof
        tail = np.minimum(q, 1.0 - q)  # 1 - q is exact where it is used
        # rest = T^2 / (dof + T^2) and share = 1 - rest are beta variables. The smaller one has the accurate digits.
        share = special.betaincinv(0.5 * dof, 0.5, 2.0 * tail)
        near = special.betaincinv(0.5, 0.5 * dof, 1.0 - 2.0 * tail)
        rest = np.where(tail < 0.25, special.betainccinv(0.5, 0.5 * dof, 2.0 * tail), near)
        size = math.sqrt(dof) * np.where(rest < 0.5, np.sqrt(rest / (1.0 - rest)), np.sqrt((1.0 - share) / share))
        # P(T > t) = constant t^-dof (1 - O(dof^2 / t^2))
        far = np.exp((_log_constant(dof) + 0.5 * (dof - 1.0) * math.log(dof) - np.log(tail)) / dof)
        size = np.where(far > 1e9 * (1.0 + dof), far, size)
        return np.where((q < 0.5) != upper, -size, size)

    def standard_moment(self, order: float) -> float:
        dof = self.dof
        gammas = math.lgamma(0.5 * (order + 1.0)) + math.lgamma(0.5 * (dof - order)) - math.lgamma(0.5 * dof)
        return math.exp(gammas + 0.5 * order * math.log(dof)) / math.sqrt(math.pi)

    def standard_density(self, order: float) -> Density:
        return _density(self.dof)

    def standard_above(self, t: float) -> tuple[float, float]:
        """The cdf at -t, and dof / (dof - 1) (1 + t^2/dof) times the density at t."""
        from scipy import special

        mass = float(special.stdtr(self.dof, -t))
        if self.dof <= 1.0:
            return mass, math.inf
        bend = 2.0 * math.log(math.hypot(1.0, t / math.sqrt(self.dof)))
        factor = self.dof / (self.dof - 1.0)
        return mass, factor * math.exp(_log_constant(self.dof) - 0.5 * (self.dof - 1.0) * bend)


@dataclass(frozen=True)
class Cauchy(SymmetricLaw):
    """loc + scale tan(pi (U - 1/2)), with tail index 1. It has no mean, so problems reject it. It serves diagnostics.

    E|X - loc|^p = ``scale^p / cos(pi p / 2)`` for p < 1.

    >>> Cauchy().mean
    nan
    """

    loc: float = 0.0
    scale: float = 1.0

    right_tail = 1.0

    def __post_init__(self) -> None:
        store_checked(self, finite, "loc")
        store_checked(self, positive, "scale")

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return CAUCHY, 0.0, 0.0

    def standard_cdf(self, z: Floats) -> Floats:
        """Return the angle over pi, in a form without cancellation."""
        return np.asarray(np.arctan2(1.0, -z) / math.pi)

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        """Minus the cotangent of pi q, in forms that are accurate near 0, 1/2 and 1."""
        tail = np.minimum(q, 1.0 - q)
        size = np.where(tail < 0.25, 1.0 / np.tan(math.pi * tail), np.tan(math.pi * (0.5 - tail)))
        return np.where((q < 0.5) != upper, -size, size)

    def standard_moment(self, order: float) -> float:
        return 1.0 / math.cos(0.5 * math.pi * order)

    def standard_density(self, order: float) -> Density:
        return _density(1.0)

    def standard_above(self, t: float) -> tuple[float, float]:
        return math.atan2(1.0, t) / math.pi, math.inf


def _log_constant(dof: float) -> float:
    """Return the log of the density at 0."""
    return math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * dof) - 0.5 * math.log(dof * math.pi)


def _density(dof: float) -> Density:
    constant = _log_constant(dof)
    power = 0.5 * (dof + 1.0)

    def log_density(x: Floats, log_x: Floats) -> Floats:
        return np.asarray(constant - power * np.log1p(x * x / dof))

    def log_kernel(w: Floats) -> Floats:
        return np.asarray(constant - power * np.log(w * w + 1.0 / dof))

    return Density(log_density, 0.0, 1.0, dof, log_kernel)
