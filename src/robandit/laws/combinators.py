"""Laws made of laws: moved and scaled, negated, mixed, with extra zeros."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, MeanUndefined
from robandit.kernel.types import Floats
from robandit.laws.base import Law
from robandit.laws.discrete import stepped
from robandit.laws.table import Component
from robandit.laws.validation import finite, items_of, points, probabilities, within

__all__ = ["Affine", "Mixture", "Negated", "ZeroInflated", "scaled_to_mean"]


def _law(value: Any, name: str) -> Law:
    if not isinstance(value, Law):
        raise InvalidInput(f"{name} is {value!r}: it must be a law; wrap a plain number as Constant(number)")
    return value


class AffineLaw(Law):
    """The law of ``loc + scale * X`` with scale != 0: every fact is the inner law's, moved exactly."""

    law: Law

    @property
    @abstractmethod
    def map(self) -> tuple[float, float]:
        """The location and the scale."""

    def components(self) -> tuple[Component, ...]:
        """The inner law's, each moved and scaled."""
        loc, scale = self.map
        return tuple(
            part._replace(loc=loc + scale * part.loc, scale=scale * part.scale) for part in self.law.components()
        )

    @property
    def mean(self) -> float:
        """loc + scale E X."""
        loc, scale = self.map
        return loc + scale * self.law.mean

    @property
    def left_tail(self) -> float:
        """The inner law's, on the side that the scale's sign points to."""
        return self.law.left_tail if self.map[1] > 0.0 else self.law.right_tail

    @property
    def right_tail(self) -> float:
        """The inner law's, on the side that the scale's sign points to."""
        return self.law.right_tail if self.map[1] > 0.0 else self.law.left_tail

    @property
    def support(self) -> tuple[float, float]:
        """The inner law's, moved."""
        ends = [leaf.loc + leaf.scale * end for leaf in leaves(self) for end in leaf.law.support]
        return min(ends), max(ends)

    @property
    def symmetric_about(self) -> float | None:
        """The inner law's centre, moved."""
        loc, scale = self.map
        centre = self.law.symmetric_about
        return None if centre is None else loc + scale * centre

    @property
    def nonzero_probability(self) -> float:
        """The mass of what the map does not move onto 0."""
        return min(math.fsum(leaf.weight * leaf.nonzero_probability() for leaf in leaves(self)), 1.0)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """The inner law's, moved."""
        return gathered((leaf.weight, leaf.atoms()) for leaf in leaves(self))

    def cdf(self, x: ArrayLike) -> Floats:
        """The inner law's at the point that the map takes to x; its complement for a negative scale."""
        where = points(x)
        total = np.zeros(where.shape)
        for leaf in leaves(self):
            total = total + leaf.weight * leaf.cdf(where)
        return total

    def finite_moment(self, order: float, about: float) -> float:
        """|scale|^order E|X - (about - loc)/scale|^order."""
        loc, scale = self.map
        return float(abs(scale) ** order) * self.law.absolute_moment(order, (about - loc) / scale)

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """The inner law's two sides, scaled, and exchanged for a negative scale."""
        sides = [(leaf.weight, leaf.partial_means(m, about)) for leaf in leaves(self)]
        return _sum([w * side[0] for w, side in sides]), _sum([w * side[1] for w, side in sides])


class Leaf(NamedTuple):
    """A law that is not a combination, as it occurs in one: with a probability, moved and scaled.

    Values with a positive probability are moved one by one, with the same rounding as in the sampler; moving the
    question to the inner law instead would put the far side of a step on the near one.
    """

    weight: float
    loc: float
    scale: float
    law: Law

    def atoms(self) -> tuple[Floats, Floats] | None:
        """The moved values and their probabilities."""
        inner = self.law.atoms()
        return None if inner is None else (self.loc + self.scale * inner[0], inner[1])

    def nonzero_probability(self) -> float:
        """P(loc + scale X != 0)."""
        atoms = self.atoms()
        if atoms is not None:
            return math.fsum(atoms[1][atoms[0] != 0.0])
        return self.law.nonzero_probability if self.loc == 0.0 else 1.0

    def cdf(self, x: Floats) -> Floats:
        """P(loc + scale X <= x)."""
        atoms = self.atoms()
        if atoms is not None:
            order = np.argsort(atoms[0], kind="stable")
            return stepped(atoms[0][order], atoms[1][order], x)
        inner = (x - self.loc) / self.scale
        return self.law.cdf(inner) if self.scale > 0.0 else np.asarray(1.0 - self.law.cdf(inner))

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """The two sides for loc + scale X."""
        atoms = self.atoms()
        if atoms is not None:
            offset = atoms[0] - about
            parts = offset * atoms[1]
            return math.fsum(parts[offset > m]), math.fsum(parts[offset < -m])
        upper, lower = self.law.partial_means(m / abs(self.scale), (about - self.loc) / self.scale)
        return (
            (self.scale * upper, self.scale * lower) if self.scale > 0.0 else (self.scale * lower, self.scale * upper)
        )


def leaves(law: Law, weight: float = 1.0, loc: float = 0.0, scale: float = 1.0) -> Iterator[Leaf]:
    """The laws that a combination is made of; ``components`` composes the maps in the same order."""
    if isinstance(law, MixedLaw):
        for share, part in law.parts:
            yield from leaves(part, weight * share, loc, scale)
    elif isinstance(law, AffineLaw):
        inner_loc, inner_scale = law.map
        yield from leaves(law.law, weight, loc + scale * inner_loc, scale * inner_scale)
    else:
        yield Leaf(weight, loc, scale, law)


def gathered(parts: Iterable[tuple[float, tuple[Floats, Floats] | None]]) -> tuple[Floats, Floats] | None:
    """The atoms of a mixture in increasing order, equal values joined; None if a part has more than atoms."""
    values: list[Floats] = []
    masses: list[Floats] = []
    for weight, atoms in parts:
        if atoms is None:
            return None
        values.append(atoms[0])
        masses.append(weight * atoms[1])
    distinct, place = np.unique(np.concatenate(values), return_inverse=True)
    return distinct, np.bincount(place, weights=np.concatenate(masses)).astype(np.float64)


@dataclass(frozen=True)
class Affine(AffineLaw):
    """The law of ``loc + scale * X``; ``law + c``, ``law * s`` and ``c - law`` make it.

    >>> from robandit.laws import Pareto
    >>> (3.0 - Pareto(tail=1.5)).mean
    0.0
    """

    law: Law
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        _law(self.law, "law")
        object.__setattr__(self, "loc", finite(self.loc, "loc"))
        object.__setattr__(self, "scale", finite(self.scale, "scale"))
        if self.scale == 0.0:
            raise InvalidInput("scale is 0: an affine map must not lose the law; write Constant(loc) for a constant")

    @property
    def map(self) -> tuple[float, float]:
        """The parameters."""
        return self.loc, self.scale


@dataclass(frozen=True)
class Negated(AffineLaw):
    """The law of -X: a cost turned into a reward. ``-law`` makes it.

    >>> from robandit.laws import Pareto
    >>> (-Pareto(tail=1.5)).support
    (-inf, -1.0)
    """

    law: Law

    def __post_init__(self) -> None:
        """Check the law."""
        _law(self.law, "law")

    @property
    def map(self) -> tuple[float, float]:
        """0 and -1."""
        return 0.0, -1.0

    def __neg__(self) -> Law:
        """The law that was negated."""
        return self.law


class MixedLaw(Law):
    """A finite mixture: probabilities and moments are weighted sums."""

    @property
    @abstractmethod
    def parts(self) -> tuple[tuple[float, Law], ...]:
        """The weights (above 0) and the laws."""

    def components(self) -> tuple[Component, ...]:
        """All components of all parts."""
        return tuple(
            part._replace(weight=weight * part.weight) for weight, law in self.parts for part in law.components()
        )

    @property
    def mean(self) -> float:
        """The weighted sum; undefined if one is, or if two are infinite with different signs."""
        return _sum([weight * law.mean for weight, law in self.parts])

    @property
    def left_tail(self) -> float:
        """The heaviest."""
        return min(law.left_tail for _, law in self.parts)

    @property
    def right_tail(self) -> float:
        """The heaviest."""
        return min(law.right_tail for _, law in self.parts)

    @property
    def support(self) -> tuple[float, float]:
        """From the least end to the greatest."""
        return min(law.support[0] for _, law in self.parts), max(law.support[1] for _, law in self.parts)

    @property
    def symmetric_about(self) -> float | None:
        """The common centre, if all parts share one."""
        centres = {law.symmetric_about for _, law in self.parts}
        return centres.pop() if len(centres) == 1 else None

    @property
    def nonzero_probability(self) -> float:
        """The weighted sum."""
        return min(math.fsum(weight * law.nonzero_probability for weight, law in self.parts), 1.0)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """All points of all parts, if each is concentrated on points."""
        return gathered((weight, law.atoms()) for weight, law in self.parts)

    def cdf(self, x: ArrayLike) -> Floats:
        """The weighted sum."""
        where = points(x)
        total = np.zeros(where.shape)
        for weight, law in self.parts:
            total = total + weight * law.cdf(where)
        return total

    def finite_moment(self, order: float, about: float) -> float:
        """The weighted sum."""
        return math.fsum(weight * law.absolute_moment(order, about) for weight, law in self.parts)

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """The weighted sums."""
        sides = [(weight, law.partial_means(m, about)) for weight, law in self.parts]
        return _sum([w * side[0] for w, side in sides]), _sum([w * side[1] for w, side in sides])


def _sum(terms: list[float]) -> float:
    """An accurate sum that follows the rules for infinities (fsum refuses inf - inf)."""
    return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)


@dataclass(frozen=True)
class Mixture(MixedLaw):
    """First choose a law by its weight, then draw from it.

    >>> from robandit.laws import Gaussian, Pareto
    >>> Mixture((Gaussian(), -Pareto(tail=1.5)), (0.5, 0.5)).mean
    -1.5
    """

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the laws and the weights."""
        laws = tuple(_law(law, f"laws[{i}]") for i, law in enumerate(items_of(self.laws, "laws", "laws")))
        if not laws:
            raise InvalidInput("laws is empty: a mixture needs at least one law")
        object.__setattr__(self, "laws", laws)
        object.__setattr__(self, "weights", probabilities(self.weights, "weights", len(laws)))

    @property
    def parts(self) -> tuple[tuple[float, Law], ...]:
        """The parts with a positive weight."""
        return tuple((w, law) for w, law in zip(self.weights, self.laws, strict=True) if w > 0.0)


@dataclass(frozen=True)
class ZeroInflated(MixedLaw):
    """Exactly 0 with the given probability, else a draw from the law: rewards that are mostly absent.

    >>> from robandit.laws import Pareto
    >>> law = ZeroInflated(-Pareto(tail=1.5), zero_probability=0.75)
    >>> law.mean, law.nonzero_probability
    (-0.75, 0.25)
    """

    law: Law
    zero_probability: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        _law(self.law, "law")
        object.__setattr__(self, "zero_probability", within(self.zero_probability, "zero_probability", 0.0, 1.0))

    @property
    def parts(self) -> tuple[tuple[float, Law], ...]:
        """The zero first: it is the cheapest to draw."""
        from robandit.laws.discrete import Constant

        both = ((self.zero_probability, Constant(0.0)), (1.0 - self.zero_probability, self.law))
        return tuple((weight, law) for weight, law in both if weight > 0.0)


def scaled_to_mean(law: Law, mean: float) -> Law:
    """The law times the factor that gives it this mean; shape and tails stay.

    >>> from robandit.laws import Pareto
    >>> scaled_to_mean(Pareto(tail=1.5), -1.0)
    Affine(law=Pareto(tail=1.5, scale=1.0), loc=0.0, scale=-0.3333333333333333)
    """
    mean = finite(mean, "mean")
    old = _law(law, "law").mean
    if not math.isfinite(old):
        raise MeanUndefined(
            f"{law!r} has mean {old}: it cannot be scaled to a mean; take a law with a tail index above 1"
        )
    if old == 0.0 or mean == 0.0:
        raise InvalidInput(
            f"a law with mean {old} cannot be scaled to mean {mean}: neither may be 0; shift it with law + c"
        )
    return Affine(law, scale=mean / old)
