"""Alpha-stable laws: the limits of sums of heavy-tailed variables."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robandit.kernel.types import Floats
from robandit.laws.base import Law, store_checked
from robandit.laws.gaussian import Gaussian
from robandit.laws.quadrature import NEGLIGIBLE, double_exponential
from robandit.laws.table import STABLE, Component
from robandit.validation import finite, points, positive, within


@dataclass(frozen=True)
class Stable(Law):
    """The stable law with index alpha in (1, 2], skewness beta in [-1, 1], mean ``loc`` and a scale, in Nolan's S1 form.

    log E exp(itX) = ``i loc t - |scale t|^alpha (1 - i beta sign(t) tan(pi alpha/2))``. The tail index is alpha on both sides,
    unless beta is -1 or 1. alpha = 2 is the normal law with variance 2 scale^2. Other stable laws have no mean, so they cannot be
    arms. Moments about loc are exact. Moments about other points, the cdf and partial means are quadratures to about 1e-9 if alpha
    is at least 1.05. Closer to 1 they may raise `InvalidInput` if the law is skewed.

    >>> Stable(alpha=1.5).absolute_moment(1.0)
    1.7054652401
    """

    alpha: float
    beta: float = 0.0
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        hint = "other stable laws have no mean"
        object.__setattr__(self, "alpha", within(self.alpha, "alpha", 1.0, 2.0, open_low=True, hint=hint))
        object.__setattr__(self, "beta", within(self.beta, "beta", -1.0, 1.0))
        store_checked(self, finite, "loc")
        store_checked(self, positive, "scale")

    @property
    def _skew(self) -> float:
        """beta tan(pi alpha/2), in forms that are accurate near alpha = 1 and alpha = 2."""
        if self.alpha < 1.5:
            return -self.beta / math.tan(0.5 * math.pi * (self.alpha - 1.0))
        return self.beta * math.tan(0.5 * math.pi * (self.alpha - 2.0))

    def components(self) -> tuple[Component, ...]:
        return (Component(1.0, self.loc, self.scale, STABLE, self.alpha, self._skew),)

    @property
    def mean(self) -> float:
        return self.loc

    @property
    def left_tail(self) -> float:
        return math.inf if self.alpha == 2.0 or self.beta == 1.0 else self.alpha

    @property
    def right_tail(self) -> float:
        return math.inf if self.alpha == 2.0 or self.beta == -1.0 else self.alpha

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def symmetric_about(self) -> float | None:
        return self.loc if self.beta == 0.0 or self.alpha == 2.0 else None

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x) by quadrature over the angle of the sampler's transform."""
        z = (points(x) - self.loc) / self.scale
        if self.alpha == 2.0:
            return Gaussian(0.0, math.sqrt(2.0)).cdf(z)
        flat = z.ravel()
        out = np.empty(flat.shape)
        for start in range(0, flat.size, 512):  # blocks bound the size of the matrix of nodes
            part = flat[start : start + 512]
            right = self._angles[0].above(np.maximum(part, 0.0))
            left = self._angles[1].above(np.maximum(-part, 0.0))
            out[start : start + 512] = np.where(part > 0.0, 1.0 - right, left)
        return out.reshape(z.shape)

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        """Return the quantiles of the normal law, the only case with a closed form."""
        if self.alpha == 2.0:
            return Gaussian(self.loc, self.scale * math.sqrt(2.0)).quantiles(q, upper)
        return super().quantiles(q, upper)

    @cached_property
    def _angles(self) -> tuple[_Angles, _Angles]:
        """The quadratures for the right side and for the mirrored left side."""
        return _Angles(self.alpha, self._skew, self.beta), _Angles(self.alpha, -self._skew, -self.beta)

    def finite_moment(self, order: float, about: float) -> float:
        """Return a moment: about loc exactly, about other points from the characteristic function."""
        if self.alpha == 2.0:
            return Gaussian(self.loc, self.scale * math.sqrt(2.0)).finite_moment(order, about)
        centre = (about - self.loc) / self.scale
        if centre == 0.0:
            turn = math.atan(self._skew) * order / self.alpha
            stretch = math.exp(0.5 * order / self.alpha * math.log1p(self._skew**2))
            gammas = math.gamma(order) * math.gamma(1.0 - order / self.alpha)
            value = 2.0 / math.pi * gammas * math.sin(0.5 * math.pi * order) * stretch * math.cos(turn)
        else:
            value = self._moment_about(order, centre)
        return float(self.scale**order * value)

    def _moment_about(self, order: float, centre: float) -> float:
        """E|Z - c|^p = (2/pi) Gamma(1+p) sin(pi p/2) times the integral of (1 - Re phi(t)) t^(-1-p) over t > 0.

        phi(t) contains exp(-ict), which oscillates. It is conjugated to exp(i|c|t), and the ray of integration is turned into the
        upper half-plane, where that factor decays. There the integral of the term i|c|t would diverge. To cancel this term, a
        function is added that is imaginary on the real line, so that it does not change the real part.
        """
        side = 1.0 if centre > 0.0 else -1.0
        shift = abs(centre)
        alpha, skew = self.alpha, side * self._skew
        angle = min(math.pi / 8.0, 0.5 * (0.5 * math.pi - math.atan(skew)) / alpha)
        turn = cmath.exp(1j * angle)
        back = cmath.exp(-1j * angle * order)
        fade = cmath.exp(1j * angle * alpha) * (1.0 + 1j * skew)
        walk = 1j * shift * turn

        def integrand(log_s: Floats) -> Floats:
            # log phi is z = s rate. Powers of s are combined with s^-order before they are evaluated.
            rate = walk - fade * np.exp((alpha - 1.0) * log_s)
            z = rate * np.exp(log_s)
            square = np.square(walk * np.exp(log_s))  # -(c t)^2
            inside = np.abs(z) < 0.5
            near = (
                fade * np.exp((alpha - order) * log_s)
                - np.square(rate) * _exponential_rest(np.where(inside, z, 0.0)) * np.exp((2.0 - order) * log_s)
                + walk**3 / (1.0 - square) * np.exp((3.0 - order) * log_s)
            )
            far = (1.0 - np.exp(z) + walk * np.exp(log_s) / (1.0 - square)) * np.exp(-order * log_s)
            value = (back * np.where(inside, near, far)).real
            # Where terms overflow, phi and the added function are 0.
            return np.asarray(np.where(np.isfinite(value), value, back.real * np.exp(-order * log_s)))

        reach = NEGLIGIBLE / min(order, alpha - order, 1.0) + abs(math.log(shift or 1.0))
        integral = double_exponential(integrand, reach, f"the moment of order {order} of {self!r}")
        return 2.0 / math.pi * math.gamma(1.0 + order) * math.sin(0.5 * math.pi * order) * integral

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """Return the two sides by quadrature over the angle of the sampler's transform."""
        if self.alpha == 2.0:
            return Gaussian(self.loc, self.scale * math.sqrt(2.0)).partial_means(m, about)
        centre, level = (about - self.loc) / self.scale, m / self.scale
        upper = self._above(0, centre + level, centre)
        lower = -self._above(1, level - centre, -centre)
        return self.scale * upper, self.scale * lower

    def _above(self, side: int, t: float, centre: float) -> float:
        """Return E[(Z - centre) 1{Z > t}] for Z on side 0, for -Z on side 1."""
        if t >= 0.0:
            mass, part = self._angles[side].partial(t)
        else:
            mass, part = self._angles[1 - side].partial(-t)
            mass = 1.0 - mass  # E Z = 0, so E[Z 1{Z > t}] = -E[Z 1{Z < t}], which is the part that was computed
        return part - centre * mass


def _exponential_rest(z: NDArray[Any]) -> NDArray[Any]:
    """Return (exp(z) - 1 - z) / z^2 for |z| < 1/2 by its series."""
    total = np.zeros_like(z)
    for k in range(16, 2, -1):
        total = (total + 1.0) * z / k
    return np.asarray((total + 1.0) / 2.0)


class _Angles:
    """The positive part of a standard stable variable as a mixture over an angle.

    Z = A(V) W^((alpha-1)/alpha) with V uniform on (-pi/2, pi/2) and W exponential. Given V, probabilities and partial means of Z
    have closed forms, so one integral over V remains. A > 0 for the angles (V0, pi/2). Near both ends A is a power of the distance
    to the end, so both halves are integrated in the log of that distance.
    """

    def __init__(self, alpha: float, skew: float, beta: float) -> None:
        self.power = alpha / (alpha - 1.0)
        shift = math.atan(skew)
        # ``start`` is V0 + pi/2, and ``end`` is pi minus the sine's angle at pi/2, which is exactly 0 at full skew to the left.
        start = 0.5 * math.pi - shift / alpha
        end = 0.0 if beta == -1.0 else math.pi - 0.5 * math.pi * alpha - shift
        length = math.pi - start
        if length < 1e-12:  # a law on the other half-line
            self.log_a = self.weight = np.zeros(1)
            return
        step = max(min(1.0 / 32.0, abs(alpha - 1.0) / 12.0), 1.0 / 4096.0)
        width = math.asinh(NEGLIGIBLE / min(1.0, abs(1.0 - 1.0 / alpha)))
        t = np.arange(-math.ceil(width / step), math.ceil(width / step) + 1) * step
        logit = np.sinh(t)
        log_offset = math.log(0.5 * length) - np.logaddexp(0.0, -logit)
        log_weight = log_offset - np.logaddexp(0.0, logit) + np.log(np.cosh(t)) + math.log(step / math.pi)
        stretch = 0.5 * math.log1p(skew * skew)

        def log_a(first: float, second: float, third: float, slope: float) -> Floats:
            """Return log A from the bases of its three sines and the slope of the third."""
            sines = alpha * _log_sine(first, alpha, log_offset) + stretch - _log_sine(second, 1.0, log_offset)
            return np.asarray((sines + (1.0 - alpha) * _log_sine(third, slope, log_offset)) / alpha)

        near_start, near_end = log_a(0.0, start, start, 1.0 - alpha), log_a(end, 0.0, end, alpha - 1.0)
        self.log_a = np.concatenate([near_start, near_end])
        self.weight = np.exp(np.concatenate([log_weight, log_weight]))
        self.log_part = np.concatenate([near_start + log_weight, near_end + log_weight])

    def above(self, t: Floats) -> Floats:
        """Return P(Z > t) for an array of t >= 0."""
        with np.errstate(all="ignore"):
            level = np.exp((np.log(t)[:, None] - self.log_a) * self.power)
        return np.asarray(np.exp(-level) @ self.weight)

    def partial(self, t: float) -> tuple[float, float]:
        """Return P(Z > t) and E[Z 1{Z > t}] for t >= 0."""
        from scipy import special

        if not self.weight.any():
            return 0.0, 0.0
        s = 1.0 / self.power
        with np.errstate(all="ignore"):
            level = np.exp(((math.log(t) if t > 0.0 else -math.inf) - self.log_a) * self.power)
            terms = np.exp(self.log_part) * special.gammaincc(1.0 + s, level)
        return float(self.above(np.array([t]))[0]), math.gamma(1.0 + s) * float(np.sum(terms))


def _log_sine(base: float, slope: float, log_offset: Floats) -> Floats:
    """Return log sin(base + slope * offset). For base = 0 it is accurate for every offset, however small."""
    offset = np.exp(log_offset)
    if base == 0.0:
        angle = abs(slope) * offset
        # sinc avoids 0/0 where the offset underflows.
        return np.asarray(math.log(abs(slope)) + log_offset + np.log(np.sinc(angle / math.pi)))
    return np.asarray(np.log(np.sin(base + slope * offset)))
