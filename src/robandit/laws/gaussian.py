"""The normal law, the light-tailed control, and the log-normal law, whose samples look heavy-tailed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robandit.kernel.types import Floats
from robandit.laws.base import Law, store_checked
from robandit.laws.combinators import leaves
from robandit.laws.location_scale import LocationScale, SymmetricLaw
from robandit.laws.quadrature import Density
from robandit.laws.table import GAUSSIAN, LOGNORMAL, Component
from robandit.validation import finite, invalid, positive, within


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
        store_checked(self, finite, "mean")
        store_checked(self, positive, "sd")

    @property
    def placement(self) -> tuple[float, float]:
        return self.mean, self.sd

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return GAUSSIAN, 0.0, 0.0

    def standard_cdf(self, z: Floats) -> Floats:
        from scipy import special

        return np.asarray(special.ndtr(z))

    def standard_quantiles(self, q: Floats, upper: bool) -> Floats:
        from scipy import special

        return np.asarray(-special.ndtri(q) if upper else special.ndtri(q))

    def standard_moment(self, order: float) -> float:
        return math.exp(math.lgamma(0.5 * (order + 1.0)) + 0.5 * order * math.log(2.0)) / math.sqrt(math.pi)

    def standard_density(self, order: float) -> Density:
        constant = -0.5 * math.log(2.0 * math.pi)
        return Density(lambda x, _: constant - 0.5 * x * x, 0.0, 1.0)

    def standard_above(self, t: float) -> tuple[float, float]:
        from scipy import special

        return float(special.ndtr(-t)), math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)


def normal_variance(law: Law) -> float | None:
    """Return the variance if the law is normal, possibly shifted and scaled; None otherwise."""
    parts = tuple(leaves(law))
    return law.variance if len(parts) == 1 and isinstance(parts[0].law, Gaussian) else None


@dataclass(frozen=True)
class LogNormal(LocationScale):
    """X = exp(mu + sigma N) with N standard normal: every moment is finite.

    Mean ``exp(mu + sigma^2/2)``, raw moments ``exp(p mu + p^2 sigma^2/2)``.

    >>> LogNormal(sigma=1.0).mean
    1.6487212707
    """

    mu: float = 0.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        mu = within(self.mu, "mu", -600.0, 600.0, hint="values overflow or underflow for other mu")
        object.__setattr__(self, "mu", mu)
        store_checked(self, positive, "sigma")
        if self.mu + 0.5 * self.sigma * self.sigma > 700.0:
            raise invalid("sigma", self.sigma, f"small enough that mu + sigma^2/2 <= 700 (mu = {self.mu})")

    @property
    def placement(self) -> tuple[float, float]:
        return 0.0, math.exp(self.mu)

    @property
    def standard_code(self) -> tuple[int, float, float]:
        return LOGNORMAL, self.sigma, self.mu

    def components(self) -> tuple[Component, ...]:
        """Return one component. The sampler adds mu before it takes the exponential."""
        return (Component(1.0, 0.0, 1.0, *self.standard_code),)

    def standard_cdf(self, z: Floats) -> Floats:
        from scipy import special

        with np.errstate(divide="ignore"):
            return np.asarray(special.ndtr(np.log(np.maximum(z, 0.0)) / self.sigma))

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        """Return exp(mu + sigma N) at the quantiles of N, in one step: exp(mu) times exp(sigma N) may overflow."""
        return np.asarray(np.exp(Gaussian(self.mu, self.sigma).quantiles(q, upper)))

    def standard_moment(self, order: float) -> float:
        return math.exp(0.5 * (order * self.sigma) ** 2)

    def standard_density(self, order: float) -> Density:
        """The normal density at log(z) / sigma, divided by sigma z; the integrand of a moment peaks at log z = order sigma^2."""
        sigma = self.sigma
        constant = -math.log(sigma * math.sqrt(2.0 * math.pi))

        def log_density(x: Floats, log_x: Floats) -> Floats:
            return np.asarray(constant - log_x - 0.5 * (log_x / sigma) ** 2)

        return Density(log_density, 0.0, 1.0, reach=45.0 + order * sigma**2 + 12.0 * sigma)

    def standard_above(self, t: float) -> tuple[float, float]:
        return self._sides(t, -1.0)

    def standard_below(self, t: float) -> tuple[float, float]:
        return self._sides(t, 1.0)

    def _sides(self, t: float, sign: float) -> tuple[float, float]:
        from scipy import special

        quantile = math.log(t) / self.sigma if t > 0.0 else -math.inf
        mass = float(special.ndtr(sign * quantile))
        return mass, self.standard_mean * float(special.ndtr(sign * (quantile - self.sigma)))
