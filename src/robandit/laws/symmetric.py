"""What laws that are symmetric about their location share."""

from __future__ import annotations

import math

from robandit.laws.location_scale import LocationScale
from robandit.laws.quadrature import moment

__all__ = ["SymmetricLaw"]


class SymmetricLaw(LocationScale):
    """A law ``loc + scale * Z`` with Z and -Z alike; the density given to the quadrature is that of Z > 0."""

    @property
    def standard_mean(self) -> float:
        """0 where it exists."""
        return 0.0 if self.right_tail > 1.0 else math.nan

    @property
    def standard_support(self) -> tuple[float, float]:
        """The whole line."""
        return -math.inf, math.inf

    @property
    def left_tail(self) -> float:
        """The same as on the right."""
        return self.right_tail

    @property
    def symmetric_about(self) -> float | None:
        """The location."""
        return self.placement[0]

    def standard_moment_about(self, order: float, centre: float) -> float:
        """The two halves are one half seen from both sides."""
        density = self.standard_density(order)
        what = f"the moment of order {order} of {self!r}"
        return moment(density, order, centre, what) + moment(density, order, -centre, what)

    def standard_below(self, t: float) -> tuple[float, float]:
        """The mirror image of what lies above -t."""
        mass, part = self.standard_above(-t)
        return mass, -part
