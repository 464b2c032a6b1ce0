"""Laws made from other laws: shifted and scaled, negated, mixed, or with extra zeros."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats
from robandit.laws.base import Law, checked_law, law_with_mean, store_checked
from robandit.laws.discrete import Constant, atoms_cdf, atoms_partial_means, atoms_quantiles
from robandit.laws.table import Component
from robandit.validation import finite, invalid, items_of, points, probabilities, within


class Leaf(NamedTuple):
    """A simple law inside a combination, with its probability, shift and scale.

    Atoms are mapped one by one, with the rounding of the sampler. Mapping x back instead could put it on the wrong side of a step.
    """

    weight: float
    loc: float
    scale: float
    law: Law

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Return the mapped values and their probabilities."""
        inner = self.law.atoms()
        return None if inner is None else (self.loc + self.scale * inner[0], inner[1])

    @property
    def left_tail(self) -> float:
        """The law's left tail index, or its right tail index if the scale is negative."""
        return self.law.left_tail if self.scale > 0.0 else self.law.right_tail

    @property
    def right_tail(self) -> float:
        """The law's right tail index, or its left tail index if the scale is negative."""
        return self.law.right_tail if self.scale > 0.0 else self.law.left_tail

    @property
    def support(self) -> tuple[float, float]:
        """The mapped support of the law."""
        first, second = (self.loc + self.scale * end for end in self.law.support)
        return min(first, second), max(first, second)

    @property
    def nonzero_probability(self) -> float:
        """P(loc + scale X != 0)."""
        atoms = self.atoms()
        if atoms is not None:
            return math.fsum(atoms[1][atoms[0] != 0.0])
        return self.law.nonzero_probability if self.loc == 0.0 else 1.0

    def cdf(self, x: Floats) -> Floats:
        """Return P(loc + scale X <= x)."""
        atoms = self.atoms()
        if atoms is not None:
            order = np.argsort(atoms[0], kind="stable")
            return atoms_cdf(atoms[0][order], atoms[1][order], x)
        inner = (x - self.loc) / self.scale
        return self.law.cdf(inner) if self.scale > 0.0 else np.asarray(1.0 - self.law.cdf(inner))

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        """Return loc + scale times the law's quantiles, which are upper ones if the scale is negative. It must have no atoms."""
        return self.loc + self.scale * self.law.quantiles(q, upper != (self.scale < 0.0))

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """Return the two sides of the partial mean of loc + scale X."""
        atoms = self.atoms()
        if atoms is not None:
            return atoms_partial_means(*atoms, m, about)
        upper, lower = self.law.partial_means(m / abs(self.scale), (about - self.loc) / self.scale)
        if self.scale < 0.0:
            upper, lower = lower, upper
        return self.scale * upper, self.scale * lower


def leaves(law: Law, weight: float = 1.0, loc: float = 0.0, scale: float = 1.0) -> Iterator[Leaf]:
    """Yield the simple laws of a combination. The maps are composed in the same order as in ``components``."""
    if isinstance(law, MixedLaw):
        for share, part in law.parts:
            yield from leaves(part, weight * share, loc, scale)
    elif isinstance(law, AffineLaw):
        inner_loc, inner_scale = law.map
        yield from leaves(law.law, weight, loc + scale * inner_loc, scale * inner_scale)
    else:
        yield Leaf(weight, loc, scale, law)


class CombinedLaw(Law):
    """A law whose probabilities and partial means are weighted sums over simpler laws."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[tuple[float, Law | Leaf]]:
        """The positive weights and their laws."""

    @property
    def left_tail(self) -> float:
        return min(part.left_tail for _, part in self.parts)

    @property
    def right_tail(self) -> float:
        return min(part.right_tail for _, part in self.parts)

    @property
    def support(self) -> tuple[float, float]:
        return min(part.support[0] for _, part in self.parts), max(part.support[1] for _, part in self.parts)

    @property
    def nonzero_probability(self) -> float:
        return min(math.fsum(weight * part.nonzero_probability for weight, part in self.parts), 1.0)

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Return the atoms of all parts, increasing, with equal values merged; None if a part is not discrete."""
        values: list[Floats] = []
        masses: list[Floats] = []
        for weight, part in self.parts:
            if (atoms := part.atoms()) is None:
                return None
            values.append(atoms[0])
            masses.append(weight * atoms[1])
        distinct, place = np.unique(np.concatenate(values), return_inverse=True)
        return distinct, np.bincount(place, weights=np.concatenate(masses)).astype(np.float64)

    def cdf(self, x: ArrayLike) -> Floats:
        x = points(x)
        total = np.zeros(x.shape)
        for weight, part in self.parts:
            total = total + weight * part.cdf(x)
        return total

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        """Return the quantiles of atoms, or of one law with a density and at most one atom; others have no closed form."""
        atoms = self.atoms()
        if atoms is not None:
            return atoms_quantiles(*atoms, q, upper)
        parts = list(leaves(self))
        smooth = [leaf for leaf in parts if leaf.law.atoms() is None]
        jumps = {float(at) for leaf in parts if (own := leaf.atoms()) is not None for at in own[0][own[1] > 0.0]}
        if len(smooth) > 1 or len(jumps) > 1:
            return super().quantiles(q, upper)
        (leaf,) = smooth
        if not jumps:
            return leaf.quantiles(q, upper)
        (at,) = jumps
        below = float(leaf.cdf(np.asarray(at)))
        low, high = (1.0 - q, q) if upper else (q, 1.0 - q)
        left = low <= leaf.weight * below
        right = ~left & (high < leaf.weight * (1.0 - below))
        out = np.full(q.shape, at)
        out[left] = leaf.quantiles(np.minimum(low[left] / leaf.weight, 1.0), False)
        out[right] = leaf.quantiles(high[right] / leaf.weight, True)
        return out

    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        sides = [(weight, part.partial_means(m, about)) for weight, part in self.parts]
        return _sum([w * side[0] for w, side in sides]), _sum([w * side[1] for w, side in sides])


def _sum(terms: list[float]) -> float:
    """Return an accurate sum of numbers that may be infinite. (``math.fsum`` rejects inf - inf.)"""
    return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)


class AffineLaw(CombinedLaw):
    """The law of ``loc + scale * X`` with scale != 0. Its facts are the exactly mapped facts of the inner law."""

    law: Law

    @property
    @abstractmethod
    def map(self) -> tuple[float, float]:
        """The location and the scale."""

    @property
    def parts(self) -> Sequence[tuple[float, Leaf]]:
        return [(leaf.weight, leaf) for leaf in leaves(self)]

    def components(self) -> tuple[Component, ...]:
        loc, scale = self.map
        inner = self.law.components()
        return tuple(part._replace(loc=loc + scale * part.loc, scale=scale * part.scale) for part in inner)

    @property
    def mean(self) -> float:
        loc, scale = self.map
        return loc + scale * self.law.mean

    @property
    def symmetric_about(self) -> float | None:
        loc, scale = self.map
        centre = self.law.symmetric_about
        return None if centre is None else loc + scale * centre

    def finite_moment(self, order: float, about: float) -> float:
        loc, scale = self.map
        return float(abs(scale) ** order) * self.law.absolute_moment(order, (about - loc) / scale)


@dataclass(frozen=True)
class Affine(AffineLaw):
    """The law of ``loc + scale * X``; ``law + c``, ``law * s`` and ``c - law`` return it.

    >>> from robandit.laws import Pareto
    >>> (3.0 - Pareto(tail=1.5)).mean
    0.0
    """

    law: Law
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        checked_law(self.law, "law")
        store_checked(self, finite, "loc", "scale")
        if self.scale == 0.0:
            raise invalid("scale", self.scale, "a finite number other than 0", hint="for a constant use Constant(loc)")

    @property
    def map(self) -> tuple[float, float]:
        return self.loc, self.scale


@dataclass(frozen=True)
class Negated(AffineLaw):
    """The law of -X: a cost turned into a reward. ``-law`` returns it.

    >>> from robandit.laws import Pareto
    >>> (-Pareto(tail=1.5)).support
    (-inf, -1.0)
    """

    law: Law

    def __post_init__(self) -> None:
        checked_law(self.law, "law")

    @property
    def map(self) -> tuple[float, float]:
        return 0.0, -1.0

    def __neg__(self) -> Law:
        return self.law


class MixedLaw(CombinedLaw):
    """A finite mixture, whose probabilities and moments are weighted sums."""

    @property
    @abstractmethod
    def parts(self) -> tuple[tuple[float, Law], ...]:
        """The positive weights and the laws."""

    def components(self) -> tuple[Component, ...]:
        inner = ((weight, part) for weight, law in self.parts for part in law.components())
        return tuple(part._replace(weight=weight * part.weight) for weight, part in inner)

    @property
    def mean(self) -> float:
        """The weighted sum of the means; NaN if one is undefined, or two are infinite with different signs."""
        return _sum([weight * law.mean for weight, law in self.parts])

    @property
    def symmetric_about(self) -> float | None:
        centres = {law.symmetric_about for _, law in self.parts}
        return centres.pop() if len(centres) == 1 else None

    def finite_moment(self, order: float, about: float) -> float:
        return math.fsum(weight * law.absolute_moment(order, about) for weight, law in self.parts)


@dataclass(frozen=True)
class Mixture(MixedLaw):
    """A mixture: draw a law according to the weights, then a value from that law.

    >>> from robandit.laws import Gaussian, Pareto
    >>> Mixture((Gaussian(), -Pareto(tail=1.5)), (0.5, 0.5)).mean
    -1.5
    """

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        laws = tuple(checked_law(law, f"laws[{i}]") for i, law in enumerate(items_of(self.laws, "laws", "laws")))
        if not laws:
            raise invalid("laws", self.laws, "at least one law")
        object.__setattr__(self, "laws", laws)
        object.__setattr__(self, "weights", probabilities(self.weights, "weights", len(laws)))

    @property
    def parts(self) -> tuple[tuple[float, Law], ...]:
        return tuple((w, law) for w, law in zip(self.weights, self.laws, strict=True) if w > 0.0)


@dataclass(frozen=True)
class ZeroInflated(MixedLaw):
    """A law for rewards that are mostly 0: exactly 0 with the given probability, else a draw from the inner law.

    >>> from robandit.laws import Pareto
    >>> law = ZeroInflated(-Pareto(tail=1.5), zero_probability=0.75)
    >>> law.mean, law.nonzero_probability
    (-0.75, 0.25)
    """

    law: Law
    zero_probability: float

    def __post_init__(self) -> None:
        checked_law(self.law, "law")
        object.__setattr__(self, "zero_probability", within(self.zero_probability, "zero_probability", 0.0, 1.0))

    @property
    def parts(self) -> tuple[tuple[float, Law], ...]:
        """The constant 0, which comes first because it is the cheapest to draw, and the law."""
        both = ((self.zero_probability, Constant(0.0)), (1.0 - self.zero_probability, self.law))
        return tuple((weight, law) for weight, law in both if weight > 0.0)


def scaled_to_mean(law: Law, mean: float) -> Law:
    """Return the law multiplied by the factor that gives it this mean. Its shape and tail indices do not change.

    >>> from robandit.laws import Pareto
    >>> scaled_to_mean(Pareto(tail=1.5), -1.0)
    Affine(law=Pareto(tail=1.5, scale=1.0), loc=0.0, scale=-0.3333333333333333)
    """
    mean = finite(mean, "mean")
    old = law_with_mean(law, "law").mean
    if old == 0.0 or mean == 0.0:
        raise InvalidInput(f"a law with mean {old} cannot be scaled to mean {mean}; shift it with law + c instead")
    return Affine(law, scale=mean / old)
