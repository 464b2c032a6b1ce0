"""`check_law` accepts a correct law that a user wrote, and finds each kind of mistake."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from helpers.cases import cases
from robandit.checks.laws import check_law
from robandit.laws import Component, Law, Verdict
from robandit.laws.table import POWER


@dataclass(frozen=True)
class Exponential(Law):
    """A user's law, written against the documented contract only."""

    rate: float = 1.0

    def components(self) -> tuple[Component, ...]:
        return (Component(1.0, 0.0, 1.0 / self.rate, POWER, 1.0),)

    @property
    def mean(self) -> float:
        return 1.0 / self.rate

    @property
    def left_tail(self) -> float:
        return math.inf

    @property
    def right_tail(self) -> float:
        return math.inf

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, math.inf

    def cdf(self, x: ArrayLike) -> Any:
        return -np.expm1(-self.rate * np.maximum(np.asarray(x), 0.0))

    def finite_moment(self, order: float, about: float) -> float:
        from scipy import integrate

        def density(x: float) -> float:
            return self.rate * math.exp(-self.rate * x) * abs(x - about) ** order

        split = max(about, 0.0)
        near = integrate.quad(density, 0.0, split, epsabs=0, epsrel=1e-11)[0] if split else 0.0
        return float(near + integrate.quad(density, split, math.inf, epsabs=0, epsrel=1e-11)[0])

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        a, b = max(about + m, 0.0), max(about - m, 0.0)
        rest = 1.0 / self.rate - about

        def above(t: float) -> float:
            return math.exp(-self.rate * t) * (t + rest)

        return above(a), rest - above(b)


def test_a_correct_law_of_a_user_passes() -> None:
    check_law(Exponential())
    check_law(Exponential(rate=3.0))
    check_law(2.0 - Exponential())


class Mean(Exponential):
    @property
    def mean(self) -> float:
        return 1.01 / self.rate


class Cdf(Exponential):
    def cdf(self, x: ArrayLike) -> Any:
        return super().cdf(1.1 * np.asarray(x))


class Quantiles(Exponential):
    def quantiles(self, q: Any, upper: bool) -> Any:
        return -np.log(q if upper else 1.0 - q) * 1.01


class Upper(Exponential):
    def quantiles(self, q: Any, upper: bool) -> Any:
        return -np.log1p(-q)


class Sliding(Exponential):
    def cdf(self, x: ArrayLike) -> Any:
        return super().cdf(x) * np.where(np.asarray(x) > 2.0, 0.8, 1.0)


class Moment(Exponential):
    def finite_moment(self, order: float, about: float) -> float:
        return super().finite_moment(order, about) * (1.0 + 1e-6 * order)


class Shrinking(Exponential):
    def finite_moment(self, order: float, about: float) -> float:
        return super().finite_moment(order, about) / math.exp(3.0 * order**2)


class Tail(Exponential):
    @property
    def left_tail(self) -> float:
        return 2.0


class Zeros(Exponential):
    @property
    def nonzero_probability(self) -> float:
        return 0.9


class Partial(Exponential):
    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        upper, lower = super().partial_means(m, about)
        return upper * (1.0 if m == 0.0 else 3.0), lower


class Judge(Exponential):
    def truncated_nonpositivity(self, about: float = 0.0) -> Verdict:
        return Verdict(True, "exact", "trust me")


class Support(Exponential):
    @property
    def support(self) -> tuple[float, float]:
        return 0.5, math.inf


class Restless(Exponential):
    def sample(self, size: int, seed: int | np.random.SeedSequence) -> Any:
        return np.random.default_rng().exponential(size=size)


class Deaf(Exponential):
    def sample(self, size: int, seed: int | np.random.SeedSequence) -> Any:
        return super().sample(size, 0)


class Broken(Exponential):
    def sample(self, size: int, seed: int | np.random.SeedSequence) -> Any:
        out = super().sample(size, seed)
        out[-1] = math.nan
        return out


class Symmetric(Exponential):
    @property
    def symmetric_about(self) -> float | None:
        return 0.0


class Forgetful(Exponential):
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "Exponential"}


class Mute(Exponential):
    def __repr__(self) -> str:
        return "Exponential()"


@cases(
    ("law", "message"),
    [
        (Mean(), "not variance"),
        (Cdf(), "away from the cdf"),
        (Quantiles(), "the cdf next to the quantiles"),
        (Upper(), "isf gives"),
        (Sliding(), "cdf decreases"),
        (Moment(), r"E\|X - mean\| is"),
        (Shrinking(), "the norms .* decrease"),
        (Tail(), "bounded below, but left_tail"),
        (Zeros(), "share of values other than 0"),
        (Partial(), "grows with m"),
        (Judge(), "but the partial mean"),
        (Support(), "below the support|cdf starts"),
        (Restless(), "the same seed gave different values"),
        (Deaf(), "another seed gave the same values"),
        (Broken(), "gave NaN"),
        (Symmetric(), "symmetric about 0.0, but the mean is 1.0"),
        (Forgetful(rate=2.0), "JSON gave"),
        (Mute(rate=2.0), "the repr evaluates to"),
    ],
)
def test_each_mistake_is_found(law: Law, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_law(law)
