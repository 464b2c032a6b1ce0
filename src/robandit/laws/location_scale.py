"""The base classes of laws ``loc + scale * Z`` with a standard variable Z."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.kernel.types import Floats
from robandit.laws.base import Law, store_checked
from robandit.laws.quadrature import Density, moment
from robandit.laws.table import Component
from robandit.validation import points, positive

__all__ = ["LocationScale", "PowerTail", "SymmetricLaw", "hazard", "log_power"]


class LocationScale(Law):
    """A law ``X = loc + scale * Z``. A subclass gives the facts of Z, from which this class derives the facts of X."""

    @property
    def placement(self) -> tuple[float, float]:
        """The location and the scale."""
        return 0.0, self.scale  # type: ignore[attr-defined]

    @property
    @abstractmethod
    def standard_code(self) -> tuple[int, float, float]:
        """The sampler's code for Z, with its two parameters."""

    @property
    def standard_mean(self) -> float:
        """E Z, computed as E|Z|. Laws whose Z can be negative override it."""
        return self.standard_moment(1.0) if self.right_tail > 1.0 else math.inf

    @property
    def standard_support(self) -> tuple[float, float]:
        """The support of Z."""
        return 0.0, math.inf

    @abstractmethod
    def standard_cdf(self, z: Floats) -> Floats:
        """P(Z <= z)."""

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        """The z with P(Z <= z) = q or, if ``upper``, with P(Z > z) = q, accurate for the smallest q."""
        return super().quantiles(q, upper)

    @abstractmethod
    def standard_moment(self, order: float) -> float:
        """E|Z|^order for an order below the tail index."""

    @abstractmethod
    def standard_density(self, order: float) -> Density:
        """The density of Z, for the quadrature of a moment of this order about a point other than 0."""

    @abstractmethod
    def standard_above(self, t: float) -> tuple[float, float]:
        """P(Z > t) and E[Z 1{Z > t}]."""

    @abstractmethod
    def standard_below(self, t: float) -> tuple[float, float]:
        """P(Z < t) and E[Z 1{Z < t}]."""

    def components(self) -> tuple[Component, ...]:
        loc, scale = self.placement
        return (Component(1.0, loc, scale, *self.standard_code),)

    @property
    def mean(self) -> float:
        loc, scale = self.placement
        return loc + scale * self.standard_mean

    @property
    def left_tail(self) -> float:
        """Infinite, because the law is bounded below."""
        return math.inf

    @property
    def right_tail(self) -> float:
        """Infinite, because the tail is lighter than every power."""
        return math.inf

    @property
    def support(self) -> tuple[float, float]:
        loc, scale = self.placement
        low, high = self.standard_support
        return loc + scale * low, loc + scale * high

    def cdf(self, x: ArrayLike) -> Floats:
        loc, scale = self.placement
        return self.standard_cdf((points(x) - loc) / scale)

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        loc, scale = self.placement
        return loc + scale * self.standard_quantiles(q, upper)

    def finite_moment(self, order: float, about: float) -> float:
        """Return a moment: about ``loc`` in closed form, about other points by quadrature to about 1e-12."""
        loc, scale = self.placement
        centre = (about - loc) / scale
        return float(
            scale**order * (self._moment_about(order, centre) if centre != 0.0 else self.standard_moment(order))
        )

    def _moment_about(self, order: float, centre: float) -> float:
        """Return `standard_moment_about`. It is kept, since the laws of a problem often differ only in their scales."""
        key = (type(self), *self.standard_code, self.left_tail, self.right_tail, order, centre)
        moment = _quadratures.get(key)
        if moment is None:
            if len(_quadratures) >= 4096:
                _quadratures.clear()
            moment = _quadratures[key] = self.standard_moment_about(order, centre)
        return moment

    def standard_moment_about(self, order: float, centre: float) -> float:
        """E|Z - centre|^order for an order below the tail index."""
        return moment(self.standard_density(order), order, centre, f"the moment of order {order} of {self!r}")

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        loc, scale = self.placement
        centre, level = (about - loc) / scale, m / scale
        sides = self.standard_above(centre + level), self.standard_below(centre - level)
        upper, lower = (part - centre * mass for mass, part in sides)
        return scale * upper, scale * lower


class SymmetricLaw(LocationScale):
    """A law ``loc + scale * Z`` where -Z and Z have the same law. ``standard_density`` is the density for Z > 0."""

    @property
    def placement(self) -> tuple[float, float]:
        return self.loc, self.scale  # type: ignore[attr-defined]

    @property
    def standard_mean(self) -> float:
        """0, or NaN if the tail index is at most 1."""
        return 0.0 if self.right_tail > 1.0 else math.nan

    @property
    def standard_support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def left_tail(self) -> float:
        return self.right_tail

    @property
    def symmetric_about(self) -> float | None:
        return self.placement[0]

    def standard_moment_about(self, order: float, centre: float) -> float:
        """Return the sum over both halves. The left half about the centre is the right half about -centre."""
        density = self.standard_density(order)
        what = f"the moment of order {order} of {self!r}"
        return moment(density, order, centre, what) + moment(density, order, -centre, what)

    def standard_below(self, t: float) -> tuple[float, float]:
        mass, part = self.standard_above(-t)
        return mass, -part


@dataclass(frozen=True)
class PowerTail(LocationScale):
    """A law on x >= 0 with a scale and a right tail that falls like x^-tail."""

    tail: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        store_checked(self, positive, "tail", "scale")

    @property
    def right_tail(self) -> float:
        return self.tail


_quadratures: dict[tuple[Any, ...], float] = {}


def hazard(q: Floats, upper: bool) -> Floats:
    """Return -log P(X > x) at the quantiles x of q."""
    return np.asarray(-np.log(q) if upper else -np.log1p(-q))


def log_power(t: float, exponent: float) -> float:
    """Return log(t^exponent). For t <= 0, where laws on t >= 0 have no mass, return the limit at 0."""
    return exponent * math.log(t) if t > 0.0 else -math.copysign(math.inf, exponent)
