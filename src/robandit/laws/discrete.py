"""Laws on finitely many values: Constant, Bernoulli, Discrete and recorded samples."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from robandit.kernel.types import Floats
from robandit.laws.base import Law, store_checked
from robandit.laws.table import BERNOULLI, CONSTANT, DISCRETE, EMPIRICAL, Component
from robandit.validation import array, check_items, finite, invalid, numbers, points, probabilities, within

# --- facts of atoms, which are increasing values with their probabilities ----------------------------------------------


def atoms_cdf(values: Floats, masses: Floats, x: Floats) -> Floats:
    """Return P(X <= x), with NaN where x is NaN."""
    steps = np.append(0.0, _cumulative(masses))
    return np.where(np.isnan(x), np.nan, steps[np.searchsorted(values, x, side="right")])


def atoms_quantiles(values: Floats, masses: Floats, q: Floats, upper: bool) -> Floats:
    """Return the least value with P(X <= x) >= q or, if ``upper``, with P(X > x) <= q."""
    values, masses = values[masses > 0.0], masses[masses > 0.0]
    if not upper:
        return np.asarray(values[np.searchsorted(_cumulative(masses), q)])
    above = np.append(_cumulative(masses[::-1])[-2::-1], 0.0)  # P(X > x) at each value, decreasing
    return np.asarray(values[np.searchsorted(-above, -q)])


def _cumulative(masses: Floats) -> Floats:
    total = np.minimum(np.cumsum(masses), 1.0)
    total[-1] = 1.0
    return np.asarray(total)


def atoms_partial_means(values: Floats, masses: Floats, m: float, about: float) -> tuple[float, float]:
    """Return the two sides of the partial mean. The values may have any order."""
    offset = values - about
    parts = offset * masses
    return math.fsum(parts[offset > m]), math.fsum(parts[offset < -m])


class FiniteLaw(Law):
    """A law on finitely many values. Its facts are finite sums."""

    left_tail = right_tail = math.inf

    @abstractmethod
    def atoms(self) -> tuple[Floats, Floats]:
        """Return the increasing values and their probabilities."""

    @cached_property
    def _atoms(self) -> tuple[Floats, Floats]:
        return self.atoms()

    @cached_property
    def _components(self) -> tuple[Component, ...]:
        values, masses = self._atoms
        cumulative = np.minimum(np.cumsum(masses), 1.0)
        # Set to exactly 1 from the last possible value on, so that a uniform of 1 gives this value, not an impossible one.
        cumulative[np.flatnonzero(masses)[-1] :] = 1.0
        return (Component(1.0, 0.0, 1.0, DISCRETE, data=np.concatenate([cumulative, values])),)

    def components(self) -> tuple[Component, ...]:
        """Return one component. Its pool holds the cumulative probabilities and then the values."""
        return self._components

    @cached_property
    def mean(self) -> float:
        values, masses = self._atoms
        return math.fsum(values * masses)

    @property
    def support(self) -> tuple[float, float]:
        values, masses = self._atoms
        possible = values[masses > 0.0]
        return float(possible[0]), float(possible[-1])

    @property
    def nonzero_probability(self) -> float:
        values, masses = self._atoms
        return min(math.fsum(masses[values != 0.0]), 1.0)

    @property
    def symmetric_about(self) -> float | None:
        values, masses = self._atoms
        values, masses = values[masses > 0.0], masses[masses > 0.0]
        centre = 0.5 * float(values[0]) + 0.5 * float(values[-1])
        mirrored = np.array_equal(values - centre, (centre - values)[::-1]) and np.array_equal(masses, masses[::-1])
        return centre if mirrored else None

    def cdf(self, x: ArrayLike) -> Floats:
        return atoms_cdf(*self._atoms, points(x))

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        return atoms_quantiles(*self._atoms, q, upper)

    def finite_moment(self, order: float, about: float) -> float:
        values, masses = self._atoms
        return math.fsum(np.abs(values - about) ** order * masses)

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        return atoms_partial_means(*self._atoms, m, about)


@dataclass(frozen=True)
class Constant(FiniteLaw):
    """A law that always gives the same value.

    >>> Constant(-2.0).mean
    -2.0
    """

    value: float

    def __post_init__(self) -> None:
        store_checked(self, finite, "value")

    def components(self) -> tuple[Component, ...]:
        return (Component(1.0, self.value, 0.0, CONSTANT),)

    def atoms(self) -> tuple[Floats, Floats]:
        return np.array([self.value]), np.ones(1)


@dataclass(frozen=True)
class Bernoulli(FiniteLaw):
    """The law of a reward that is 1 with probability p, else 0.

    >>> Bernoulli(p=0.25).variance
    0.1875
    """

    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", within(self.p, "p", 0.0, 1.0))

    def components(self) -> tuple[Component, ...]:
        return (Component(1.0, 0.0, 1.0, BERNOULLI, self.p),)

    def atoms(self) -> tuple[Floats, Floats]:
        return np.array([0.0, 1.0]), np.array([1.0 - self.p, self.p])

    @property
    def nonzero_probability(self) -> float:
        return self.p


@dataclass(frozen=True)
class Discrete(FiniteLaw):
    """A law on the given values, which are sorted, with the given probabilities. Repeated values are rejected.

    >>> Discrete(values=(-10.0, 0.0), probabilities=(0.1, 0.9)).mean
    -1.0
    """

    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        values = numbers(self.values, "values")
        masses = probabilities(self.probabilities, "probabilities", len(values))
        order = sorted(range(len(values)), key=values.__getitem__)
        ordered = tuple(values[i] for i in order)
        for first, second in pairwise(ordered):
            if first == second:
                rule = f"distinct values, but {first} occurs more than once"
                raise invalid("values", self.values, rule, hint="add up its probabilities")
        object.__setattr__(self, "values", ordered)
        object.__setattr__(self, "probabilities", tuple(masses[i] for i in order))

    def atoms(self) -> tuple[Floats, Floats]:
        return np.array(self.values), np.array(self.probabilities)


def two_point(low: float, high: float, high_probability: float) -> Discrete:
    """Return the law of ``high`` with the given probability, else ``low``.

    >>> two_point(0.0, 10.0, 0.25).mean
    2.5
    """
    high_probability = within(high_probability, "high_probability", 0.0, 1.0)
    return Discrete(values=(low, high), probabilities=(1.0 - high_probability, high_probability))


# --- recorded samples --------------------------------------------------------------------------------------------------


class Sample(FiniteLaw):
    """Base class of recorded samples. Their arrays are copied, read-only and compared by content."""

    data: Floats

    def __repr__(self) -> str:
        name = type(self).__name__
        if self.data.size <= 32:
            return f"{name}({', '.join(repr(each.tolist()) for each in self._arrays)})"
        return f"<{name}: {self.data.size} values from {self.data.min():g} to {self.data.max():g}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample) or type(self) is not type(other):
            return False
        return self is other or all(map(np.array_equal, self._arrays, other._arrays))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # + 0.0 turns -0.0 into 0.0, because they are equal
        return hash((type(self).__name__, *(hashlib.sha256((a + 0.0).tobytes()).digest() for a in self._arrays)))

    def __reduce__(self) -> tuple[type[Sample], tuple[Floats, ...]]:
        """Copy and pickle through the constructor, so that the data stay read-only."""
        return type(self), self._arrays

    @property
    def _arrays(self) -> tuple[Floats, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class Empirical(Sample):
    """A recorded sample, drawn with replacement. The data are copied, read-only and compared by content.

    >>> Empirical([1.0, 2.0, 6.0]).mean
    3.0
    """

    data: Floats

    def __init__(self, data: Sequence[float] | Floats) -> None:
        object.__setattr__(self, "data", _sample(data, "data"))

    def components(self) -> tuple[Component, ...]:
        return (Component(1.0, 0.0, 1.0, EMPIRICAL, data=self.data),)

    def atoms(self) -> tuple[Floats, Floats]:
        values, counts = np.unique(self.data, return_counts=True)
        return values, counts / self.data.size

    @cached_property
    def _ordered(self) -> Floats:
        return np.sort(self.data)

    def cdf(self, x: ArrayLike) -> Floats:
        given = points(x)
        return np.where(np.isnan(given), np.nan, np.searchsorted(self._ordered, given, side="right") / self.data.size)

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        """Return order statistics, as ``numpy.quantile(data, q, method="inverted_cdf")``."""
        steps = np.arange(1, self.data.size + 1) / self.data.size
        if upper:  # P(X > x) at each order statistic is 1 - k/n, which is (n - k)/n
            return np.asarray(self._ordered[np.searchsorted(-np.append(steps[-2::-1], 0.0), -q)])
        return np.asarray(self._ordered[np.searchsorted(steps, q)])

    @cached_property
    def mean(self) -> float:
        return math.fsum(self.data) / self.data.size


@dataclass(frozen=True, eq=False, repr=False)
class Weighted(Sample):
    """A recorded sample whose values are drawn with probabilities proportional to their weights.

    >>> Weighted([1.0, 2.0], weights=[3.0, 1.0]).mean
    1.25
    """

    data: Floats
    weights: Floats

    def __init__(self, data: Sequence[float] | Floats, weights: Sequence[float] | Floats) -> None:
        object.__setattr__(self, "data", _sample(data, "data"))
        object.__setattr__(self, "weights", _sample(weights, "weights"))
        if self.weights.size != self.data.size:
            raise invalid("weights", weights, f"{self.data.size} numbers, one for each value")
        check_items(self.weights, self.weights > 0.0, "weights", "a number > 0", hint="leave such values out")
        if not math.isfinite(self._total):
            raise invalid("weights", weights, "numbers with a finite sum", hint="divide them all by the largest")

    @cached_property
    def _total(self) -> float:
        with np.errstate(over="ignore"):
            return math.fsum(self.weights) if np.isfinite(self.weights.sum()) else math.inf

    def atoms(self) -> tuple[Floats, Floats]:
        values, place = np.unique(self.data, return_inverse=True)
        return values, np.bincount(place, weights=self.weights) / self._total

    @cached_property
    def mean(self) -> float:
        return math.fsum(self.data * (self.weights / self._total))


def _sample(values: Sequence[float] | Floats, name: str) -> Floats:
    """Return a checked, read-only copy of a sample."""
    sample = np.array(array(values, name, hint="pass a list or array of floats"))
    if sample.ndim != 1 or sample.size == 0:
        raise invalid(name, values, f"one-dimensional and not empty (its shape is {sample.shape})")
    check_items(sample, np.isfinite(sample), name, "a finite number", hint="drop such records first")
    sample.setflags(write=False)
    return sample
