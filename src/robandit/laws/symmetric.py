"""The base class of laws that are symmetric about their location."""

from __future__ import annotations

import math

from robandit.laws.location_scale import LocationScale
from robandit.laws.quadrature import moment

__all__ = ["SymmetricLaw"]


class SymmetricLaw(LocationScale):
    """A law ``loc + scale * Z`` where -Z has the law of Z; ``standard_density`` gives the density for Z > 0."""

    @property
    def placement(self) -> tuple[float, float]:
        """The parameters ``loc`` and ``scale``."""
        return self.loc, self.scale  # type: ignore[attr-defined]

    @property
    def standard_mean(self) -> float:
        """0, or NaN if the tail index is at most 1."""
        return 0.0 if self.right_tail > 1.0 else math.nan

    @property
    def standard_support(self) -> tuple[float, float]:
        """The real line."""
        return -math.inf, math.inf

    @property
    def left_tail(self) -> float:
        """The right tail index."""
        return self.right_tail

    @property
    def symmetric_about(self) -> float | None:
        """The location."""
        return self.placement[0]

    def standard_moment_about(self, order: float, centre: float) -> float:
        """The sum over both halves: the left one is the right one about -centre."""
        density = self.standard_density(order)
        what = f"the moment of order {order} of {self!r}"
        return moment(density, order, centre, what) + moment(density, order, -centre, what)

    def standard_below(self, t: float) -> tuple[float, float]:
        """The mirror image of ``standard_above(-t)``."""
        mass, part = self.standard_above(-t)
        return mass, -part
