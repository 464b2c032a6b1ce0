"""The log-normal law: every moment finite, yet a tail that looks heavy in samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats
from robandit.laws.location_scale import LocationScale
from robandit.laws.quadrature import Density
from robandit.laws.table import LOGNORMAL, Component
from robandit.laws.validation import finite, positive

__all__ = ["LogNormal"]


@dataclass(frozen=True)
class LogNormal(LocationScale):
    """X = exp(mu + sigma N) with N standard normal.

    Mean ``exp(mu + sigma^2/2)``, raw moments ``exp(p mu + p^2 sigma^2/2)``.

    >>> LogNormal(sigma=1.0).mean
    1.6487212707
    """

    mu: float = 0.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        object.__setattr__(self, "mu", finite(self.mu, "mu"))
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        if abs(self.mu) > 600.0 or self.mu + 0.5 * self.sigma * self.sigma > 700.0:
            raise InvalidInput(
                f"{self!r} has values beyond a double: |mu| must be at most 600 and mu + sigma^2/2 at most 700"
            )

    @property
    def placement(self) -> tuple[float, float]:
        """The median is the scale."""
        return 0.0, math.exp(self.mu)

    @property
    def standard_code(self) -> tuple[int, float, float]:
        """exp(mu + sigma N)."""
        return LOGNORMAL, self.sigma, self.mu

    def components(self) -> tuple[Component, ...]:
        """The sampler adds mu before it takes the exponential."""
        code, a, b = self.standard_code
        return (Component(1.0, 0.0, 1.0, code, a, b),)

    @property
    def standard_mean(self) -> float:
        """exp(sigma^2/2)."""
        return math.exp(0.5 * self.sigma**2)

    def standard_cdf(self, z: Floats) -> Floats:
        """The normal cdf at log(z) / sigma."""
        from scipy import special

        with np.errstate(divide="ignore"):
            return np.asarray(special.ndtr(np.log(np.maximum(z, 0.0)) / self.sigma))

    def standard_moment(self, order: float) -> float:
        """exp(order^2 sigma^2 / 2)."""
        return math.exp(0.5 * (order * self.sigma) ** 2)

    def standard_density(self, order: float) -> Density:
        """The normal density at log(z) / sigma, over sigma z; a moment's weight lies about order sigma^2."""
        sigma = self.sigma
        constant = -math.log(sigma * math.sqrt(2.0 * math.pi))

        def log_density(x: Floats, log_x: Floats) -> Floats:
            return np.asarray(constant - log_x - 0.5 * (log_x / sigma) ** 2)

        return Density(log_density, 0.0, 1.0, reach=45.0 + order * sigma**2 + 12.0 * sigma)

    def standard_above(self, t: float) -> tuple[float, float]:
        """Normal tails, the second one shifted by sigma."""
        return self._sides(t, -1.0)

    def standard_below(self, t: float) -> tuple[float, float]:
        """Normal tails, the second one shifted by sigma."""
        return self._sides(t, 1.0)

    def _sides(self, t: float, sign: float) -> tuple[float, float]:
        from scipy import special

        place = math.log(t) / self.sigma if t > 0.0 else -math.inf
        mass = float(special.ndtr(sign * place))
        return mass, self.standard_mean * float(special.ndtr(sign * (place - self.sigma)))
