"""The normal law: the light-tailed control."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robandit.kernel.types import Floats
from robandit.laws.base import Law, store_checked
from robandit.laws.combinators import leaves
from robandit.laws.location_scale import SymmetricLaw
from robandit.laws.quadrature import Density
from robandit.laws.table import GAUSSIAN
from robandit.validation import finite, positive


@dataclass(frozen=True)
class Gaussian(SymmetricLaw):
    """The normal law with this mean and standard deviation.

    E|X - mean|^p = ``sd^p 2^(p/2) Gamma((p+1)/2) / sqrt(pi)``.

    >>> Gaussian(mean=1.0, sd=2.0).variance
    4.0
    """

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        store_checked(self, finite, "mean")
        store_checked(self, positive, "sd")

    @property
    def placement(self) -> tuple[float, float]:
        """The parameters ``mean`` and ``sd``."""
        return self.mean, self.sd

    @property
    def standard_code(self) -> tuple[int, float, float]:
        """Standard normal."""
        return GAUSSIAN, 0.0, 0.0

    def standard_cdf(self, z: Floats) -> Floats:
        """The normal cdf."""
        from scipy import special

        return np.asarray(special.ndtr(z))

    def standard_moment(self, order: float) -> float:
        """The formula of the class docstring, for mean 0 and sd 1."""
        return math.exp(math.lgamma(0.5 * (order + 1.0)) + 0.5 * order * math.log(2.0)) / math.sqrt(math.pi)

    def standard_density(self, order: float) -> Density:
        """The normal density."""
        constant = -0.5 * math.log(2.0 * math.pi)
        return Density(lambda x, _: constant - 0.5 * x * x, 0.0, 1.0)

    def standard_above(self, t: float) -> tuple[float, float]:
        """The normal tail, and the density at t."""
        from scipy import special

        return float(special.ndtr(-t)), math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


def normal_variance(law: Law) -> float | None:
    """Return the variance if the law is a normal law, shifted or scaled or not; None otherwise."""
    parts = tuple(leaves(law))
    return law.variance if len(parts) == 1 and isinstance(parts[0].law, Gaussian) else None
