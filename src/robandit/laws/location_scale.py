"""What base laws share: they are ``loc + scale * Z`` with a standard variable Z."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from robandit.kernel.types import Floats
from robandit.laws.base import Law
from robandit.laws.quadrature import Density, moment
from robandit.laws.table import Component
from robandit.laws.validation import points

__all__ = ["LocationScale"]


class LocationScale(Law):
    """A law ``loc + scale * Z``: the subclass answers for Z, this class moves the answers to X."""

    @property
    def placement(self) -> tuple[float, float]:
        """The location and the scale."""
        return 0.0, self.scale  # type: ignore[attr-defined]

    @property
    @abstractmethod
    def standard_code(self) -> tuple[int, float, float]:
        """The sampler's code for Z, with its two parameters."""

    @property
    @abstractmethod
    def standard_mean(self) -> float:
        """E Z."""

    @property
    def standard_support(self) -> tuple[float, float]:
        """The support of Z."""
        return 0.0, np.inf

    @abstractmethod
    def standard_cdf(self, z: Floats) -> Floats:
        """P(Z <= z)."""

    @abstractmethod
    def standard_moment(self, order: float) -> float:
        """E|Z|^order for an order below the tail index."""

    @abstractmethod
    def standard_density(self, order: float) -> Density:
        """What the quadrature needs for a moment of this order about another point than 0."""

    @abstractmethod
    def standard_above(self, t: float) -> tuple[float, float]:
        """P(Z > t) and E[Z 1{Z > t}]."""

    @abstractmethod
    def standard_below(self, t: float) -> tuple[float, float]:
        """P(Z < t) and E[Z 1{Z < t}]."""

    def components(self) -> tuple[Component, ...]:
        """One component."""
        loc, scale = self.placement
        code, a, b = self.standard_code
        return (Component(1.0, loc, scale, code, a, b),)

    @property
    def mean(self) -> float:
        """Exact: loc + scale E Z."""
        loc, scale = self.placement
        return loc + scale * self.standard_mean

    @property
    def left_tail(self) -> float:
        """Infinite: bounded below."""
        return np.inf

    @property
    def right_tail(self) -> float:
        """Infinite: lighter than every power."""
        return np.inf

    @property
    def support(self) -> tuple[float, float]:
        """The support of Z, moved."""
        loc, scale = self.placement
        low, high = self.standard_support
        return loc + scale * low, loc + scale * high

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), by closed form."""
        loc, scale = self.placement
        return self.standard_cdf((points(x) - loc) / scale)

    def finite_moment(self, order: float, about: float) -> float:
        """By closed form about ``loc``, by quadrature to about 1e-12 about any other point."""
        loc, scale = self.placement
        centre = (about - loc) / scale
        if centre == 0.0:
            value = self.standard_moment(order)
        else:
            value = self.standard_moment_about(order, centre)
        return float(scale**order * value)

    def standard_moment_about(self, order: float, centre: float) -> float:
        """E|Z - centre|^order for an order below the tail index."""
        return moment(self.standard_density(order), order, centre, f"the moment of order {order} of {self!r}")

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """By closed form."""
        loc, scale = self.placement
        centre = (about - loc) / scale
        level = m / scale
        mass, part = self.standard_above(centre + level)
        upper = part - centre * mass
        mass, part = self.standard_below(centre - level)
        lower = part - centre * mass
        return scale * upper, scale * lower
