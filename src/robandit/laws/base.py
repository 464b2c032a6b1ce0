"""The contract of a reward law."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, formatted
from robandit.kernel.types import Floats
from robandit.laws.packing import is_packed, packed, unpacked
from robandit.laws.validation import finite
from robandit.laws.verdict import Verdict

if TYPE_CHECKING:
    from robandit.laws.table import Component

__all__ = ["Law", "known_laws"]


class Law(ABC):
    """The distribution of one arm's reward: an immutable value with exact facts and a compiled sampler.

    A law of your own is a frozen dataclass that derives from this class and answers the abstract questions below; every
    number in it comes from formulas, never from samples. ``robandit.checks.check_law`` tries it.
    Laws are combined with ``-law``, ``law + c``, ``law * s``, ``c - law``, and the combinators of this package.
    """

    # --- what a law has to say --------------------------------------------------------------------------------------

    @abstractmethod
    def components(self) -> tuple[Component, ...]:
        """The law as a finite mixture of the base variables that the sampler knows (``robandit.laws.table``)."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """E X: infinite where it is, and NaN where it is undefined."""

    @property
    @abstractmethod
    def left_tail(self) -> float:
        """The tail index on the left: sup of the orders p with E max(-X, 0)^p finite."""

    @property
    @abstractmethod
    def right_tail(self) -> float:
        """The tail index on the right: sup of the orders p with E max(X, 0)^p finite."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest interval with probability 1."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), for an array of x."""

    @abstractmethod
    def finite_moment(self, order: float, about: float) -> float:
        """E|X - about|^order for an order in (0, tail_index); ``absolute_moment`` deals with every other case."""

    @abstractmethod
    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """The two sides of ``partial_mean``: E[(X - about) 1{X - about > m}] and E[(X - about) 1{X - about < -m}]."""

    # --- what many laws need not say --------------------------------------------------------------------------------

    @property
    def symmetric_about(self) -> float | None:
        """The centre of symmetry, or None."""
        return None

    @property
    def nonzero_probability(self) -> float:
        """P(X != 0): 1 for a law without atoms."""
        return 1.0

    def atoms(self) -> tuple[Floats, Floats] | None:
        """The values and probabilities of a law that is concentrated on finitely many points, else None."""
        return None

    # --- what follows -----------------------------------------------------------------------------------------------

    @property
    def tail_index(self) -> float:
        """The sup of the orders p with E|X|^p finite: infinite for light tails. At p = tail_index it is infinite."""
        return min(self.left_tail, self.right_tail)

    def absolute_moment(self, order: float, about: float = 0.0) -> float:
        """E|X - about|^order, infinite where it is (decided by the tail index, not by a quadrature).

        >>> from robandit.laws import Pareto
        >>> Pareto(tail=1.5).absolute_moment(1.25)
        6.0
        >>> Pareto(tail=1.5).absolute_moment(1.5)
        inf
        """
        order = finite(order, "order")
        about = finite(about, "about")
        if order < 0.0:
            raise InvalidInput(f"order is {order}: an absolute moment needs an order of at least 0")
        if order == 0.0:
            return 1.0
        if order >= self.tail_index:
            return math.inf
        try:
            with np.errstate(over="ignore"):
                value = self.finite_moment(order, about)
        except OverflowError:
            value = math.inf
        if value == math.inf:
            raise InvalidInput(
                f"E|X - {about}|^{order} of {self!r} is finite but too large for a double; scale the law down"
            )
        return value

    def central_moment(self, order: float) -> float:
        """E|X - mean|^order; NaN if the mean is undefined, infinite if the mean is."""
        mean = self.mean
        if math.isnan(mean):
            finite(order, "order")
            return math.nan
        if math.isinf(mean):
            finite(order, "order")
            return math.inf
        return self.absolute_moment(order, mean)

    @property
    def variance(self) -> float:
        """E(X - mean)^2; NaN if the mean is undefined."""
        return self.central_moment(2.0)

    def partial_mean(self, m: float, about: float = 0.0) -> float:
        """E[(X - about) 1{|X - about| > m}] for m >= 0."""
        m = finite(m, "m")
        if m < 0.0:
            raise InvalidInput(f"m is {m}: a truncation level must be at least 0")
        upper, lower = self.partial_means(m, finite(about, "about"))
        return upper + lower

    def truncated_nonpositivity(self, about: float = 0.0) -> Verdict:
        """Whether E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0.

        With ``about=0`` this is what AdaR-UCB's analysis asks of the best arm.

        >>> from robandit.laws import Pareto, StudentT
        >>> (-Pareto(tail=1.5)).truncated_nonpositivity().reason
        'the support (-inf, -1.0] lies at or below 0.0'
        >>> StudentT(dof=2, loc=1).truncated_nonpositivity().holds
        False
        >>> StudentT(dof=2, loc=1).truncated_nonpositivity(about=1).holds
        True
        """
        from robandit.laws.nonpositivity import judge

        return judge(self, finite(about, "about"))

    def sample(self, size: int, seed: int | np.random.SeedSequence) -> Floats:
        """``size`` independent rewards from the compiled sampler: the same seed gives the same bytes.

        >>> from robandit.laws import Bernoulli
        >>> float(Bernoulli(p=0.25).sample(10_000, seed=0).mean())
        0.25
        """
        from robandit.kernel import compiled
        from robandit.kernel.random import streams
        from robandit.laws.table import fill, tabulate

        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 0 <= size < 2**60:
            raise InvalidInput(f"size is {formatted(size)}: it must be a whole number from 0 on, and below 2^60")
        if not isinstance(seed, np.random.SeedSequence):
            if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
                raise InvalidInput(
                    f"seed is {formatted(seed)}: it must be a whole number of at least 0, or a numpy SeedSequence"
                )
            seed = np.random.SeedSequence(int(seed))
        table = tabulate([self])
        out = np.empty(int(size), dtype=np.float64)
        args = (*table, 0, streams(seed, 1)[0], out)
        compiled(fill, label="the law sampler", args=args)(*args)
        return out

    # --- arithmetic -------------------------------------------------------------------------------------------------

    def __neg__(self) -> Law:
        """The law of -X."""
        from robandit.laws.combinators import Negated

        return Negated(self)

    def __add__(self, shift: float) -> Law:
        """The law of X + shift."""
        from robandit.laws.combinators import Affine

        return Affine(self, loc=shift)

    __radd__ = __add__

    def __sub__(self, shift: float) -> Law:
        """The law of X - shift."""
        return self + -finite(shift, "shift")

    def __rsub__(self, minuend: float) -> Law:
        """The law of minuend - X."""
        from robandit.laws.combinators import Affine

        return Affine(self, loc=minuend, scale=-1.0)

    def __mul__(self, factor: float) -> Law:
        """The law of X * factor."""
        from robandit.laws.combinators import Affine

        return Affine(self, scale=factor)

    __rmul__ = __mul__

    # --- JSON -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The law as plain JSON data: its class name under "kind", and its parameters.

        >>> from robandit.laws import Pareto
        >>> Pareto(tail=1.5).to_dict()
        {'kind': 'Pareto', 'tail': 1.5, 'scale': 1.0}
        """
        out: dict[str, Any] = {"kind": type(self).__name__}
        for field in fields(self):  # type: ignore[arg-type]
            out[field.name] = _plain(getattr(self, field.name))
        return out

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Law:
        """The law that ``to_dict`` wrote; an unknown class or parameter is refused."""
        if not isinstance(data, Mapping) or "kind" not in data:
            raise InvalidInput(f'{data!r} is not a law: it must be an object with the class name under "kind"')
        known = known_laws()
        name = data["kind"]
        if not isinstance(name, str) or name not in known:
            raise InvalidInput(f"{name!r} is not a known law; there are {', '.join(sorted(known))}")
        kind = known[name]
        names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
        given = {key: _parsed(value) for key, value in data.items() if key != "kind"}
        unknown = sorted(map(str, set(given) - names))
        if unknown:
            raise InvalidInput(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(sorted(names))}")
        try:
            return kind(**given)
        except TypeError as error:
            raise InvalidInput(f"{name} cannot be made of {dict(data)!r}: {error}") from error


def known_laws() -> dict[str, type[Law]]:
    """Every law by its class name, with those of your own; Robandit's come first and cannot be replaced."""
    known: dict[str, type[Law]] = {}
    for law in _concrete(Law):  # type: ignore[type-abstract]
        known.setdefault(law.__name__, law)
    return known


def _concrete(kind: type[Law]) -> Iterator[type[Law]]:
    for child in kind.__subclasses__():
        if not inspect.isabstract(child):
            yield child
        yield from _concrete(child)


def _plain(value: Any) -> Any:
    if isinstance(value, Law):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return packed(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _parsed(value: Any) -> Any:
    if is_packed(value):
        return unpacked(value, "data")
    if isinstance(value, Mapping):
        return Law.from_dict(value)
    if isinstance(value, (list, tuple)):
        return tuple(_parsed(item) for item in value)
    return value
