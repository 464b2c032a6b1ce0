"""The base class of reward laws."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, MeanUndefined, excerpt, formatted
from robandit.kernel.types import Floats
from robandit.laws.packing import is_packed, packed, unpacked
from robandit.laws.verdict import Verdict, judge
from robandit.validation import array, check_items, choice, finite, integer, invalid, mapping, within

if TYPE_CHECKING:
    from robandit.laws.table import Component


class Law(ABC):
    """The distribution of one arm's reward: an immutable object with exact facts and a compiled sampler.

    To write a law, derive a frozen dataclass from this class and implement the abstract members by formulas, not from samples.
    ``robandit.checks.check_law`` checks it. Combine laws with ``-law``, ``law + c``, ``law * s``, ``c - law`` and combinators.
    """

    # --- abstract: each law implements these -----------------------------------------------------------------------

    @abstractmethod
    def components(self) -> tuple[Component, ...]:
        """Return the law as a finite mixture of base variables that the sampler can draw (``robandit.laws.table``)."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """E X, which may be infinite; NaN if it is undefined."""

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
        """Return P(X <= x) for an array of x."""

    @abstractmethod
    def finite_moment(self, order: float, about: float) -> float:
        """Return E|X - about|^order for an order in (0, tail_index). ``absolute_moment`` handles all other orders."""

    @abstractmethod
    def partial_means(self, m: float, about: float) -> tuple[float, float]:
        """Return the two sides of ``partial_mean``: E[(X - about) 1{X - about > m}] and E[(X - about) 1{X - about < -m}]."""

    # --- defaults: laws override them if necessary -----------------------------------------------------------------

    @property
    def symmetric_about(self) -> float | None:
        """The centre of symmetry, or None."""
        return None

    @property
    def nonzero_probability(self) -> float:
        """P(X != 0), which is 1 for a law without atoms."""
        return 1.0

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Return the values and probabilities of a law on finitely many points, else None."""
        return None

    def quantiles(self, q: Floats, upper: bool) -> Floats:
        """Return the least x with P(X <= x) >= q or, if ``upper``, with P(X > x) <= q, for 0 < q < 1. `ppf` and `isf` call it."""
        raise InvalidInput(f"{formatted(self)} has no quantiles in closed form: draw a sample, and use numpy.quantile")

    # --- derived ---------------------------------------------------------------------------------------------------

    @property
    def tail_index(self) -> float:
        """The sup of the orders p with E|X|^p finite; infinite for light tails. The moment of this order itself is infinite."""
        return min(self.left_tail, self.right_tail)

    def absolute_moment(self, order: float, about: float = 0.0) -> float:
        """Return E|X - about|^order. The tail index, not a quadrature, decides whether it is infinite.

        >>> from robandit.laws import Pareto
        >>> Pareto(tail=1.5).absolute_moment(1.25)
        6.0
        >>> Pareto(tail=1.5).absolute_moment(1.5)
        inf
        """
        order = within(order, "order", 0.0, math.inf)
        about = finite(about, "about")
        if order == 0.0:
            return 1.0
        if order >= self.tail_index:
            return math.inf
        value = math.inf
        with np.errstate(over="ignore"), suppress(OverflowError):
            value = self.finite_moment(order, about)
        if value == math.inf:
            raise InvalidInput(f"E|X - {about}|^{order} of {self!r} is finite but overflows; scale the law down")
        return value

    def central_moment(self, order: float) -> float:
        """Return E|X - mean|^order; NaN if the mean is undefined, infinite if the mean is infinite."""
        order = within(order, "order", 0.0, math.inf)
        mean = self.mean
        return self.absolute_moment(order, mean) if math.isfinite(mean) else abs(mean)

    @property
    def variance(self) -> float:
        """E(X - mean)^2; NaN if the mean is undefined."""
        return self.central_moment(2.0)

    def partial_mean(self, m: float, about: float = 0.0) -> float:
        """Return E[(X - about) 1{|X - about| > m}] for m >= 0."""
        upper, lower = self.partial_means(within(m, "m", 0.0, math.inf), finite(about, "about"))
        return upper + lower

    def truncated_nonpositivity(self, about: float = 0.0) -> Verdict:
        """Return whether E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0.

        With ``about=0`` this is the assumption of AdaR-UCB's analysis about the best arm.

        >>> from robandit.laws import Pareto, StudentT
        >>> (-Pareto(tail=1.5)).truncated_nonpositivity().reason
        'the support (-inf, -1.0] lies at or below 0.0'
        >>> StudentT(dof=2, loc=1).truncated_nonpositivity().holds
        False
        >>> StudentT(dof=2, loc=1).truncated_nonpositivity(about=1).holds
        True
        """
        return judge(self, finite(about, "about"))

    def sample(self, size: int, seed: int | np.random.SeedSequence) -> Floats:
        """Return ``size`` independent rewards from the compiled sampler. Equal seeds give equal bytes.

        >>> from robandit.laws import Bernoulli
        >>> float(Bernoulli(p=0.25).sample(10_000, seed=0).mean())
        0.25
        """
        from robandit.kernel import compiled
        from robandit.kernel.random import streams
        from robandit.laws.table import fill, tabulate

        size = integer(size, "size")
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(integer(seed, "seed", 0, None, hint="or pass a numpy SeedSequence"))
        try:
            out = np.empty(size, dtype=np.float64)
        except MemoryError as error:
            raise invalid("size", size, "a number of rewards that fits into memory") from error
        args = (*tabulate([self]), 0, streams(seed, 1)[0], out)
        compiled(fill, label="the law sampler", args=args)(*args)
        return out

    # --- SciPy's names ---------------------------------------------------------------------------------------------

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantiles: the least x with P(X <= x) >= q. At q = 0 and 1 they are the ends of the support.

        A quantile beyond the range of doubles is infinite. Stable laws and mixtures have no quantiles in closed form, except
        special cases such as `ZeroInflated`; they raise `InvalidInput`.

        >>> from robandit.laws import Pareto
        >>> Pareto(tail=2.0).ppf([0.0, 0.75, 1.0]).tolist()
        [1.0, 2.0, inf]
        """
        return self._quantiles_at(q, upper=False)

    def isf(self, q: ArrayLike) -> Floats:
        """Return the upper quantiles: the least x with P(X > x) <= q. This is ``ppf(1 - q)``, but exact for the smallest q.

        >>> from robandit.laws import Pareto
        >>> float(Pareto(tail=2.0).isf(1e-300))
        1e+150
        """
        return self._quantiles_at(q, upper=True)

    def _quantiles_at(self, q: ArrayLike, upper: bool) -> Floats:
        given = array(q, "q", hint="pass an int, a float or an array")
        check_items(given, ~((given < 0.0) | (given > 1.0)), "q", "a probability from 0 to 1")
        inner = (given > 0.0) & (given < 1.0)
        low, high = self.support
        out = np.full(given.shape, np.nan)  # NaN stays NaN, as in cdf
        with np.errstate(all="ignore"):
            # Without any such q, this still raises for a law without quantiles.
            out[inner] = self.quantiles(given[inner], upper)
        out[given == 0.0], out[given == 1.0] = (high, low) if upper else (low, high)
        scalar_or_array: Floats = out[()]  # SciPy returns a number for a number
        return scalar_or_array

    # --- arithmetic ------------------------------------------------------------------------------------------------

    def __neg__(self) -> Law:
        from robandit.laws.combinators import Negated

        return Negated(self)

    def _affine(self, loc: float = 0.0, scale: float = 1.0) -> Law:
        from robandit.laws.combinators import Affine

        return Affine(self, loc, scale)

    def __add__(self, shift: float) -> Law:
        return self._affine(loc=shift)

    __radd__ = __add__

    def __sub__(self, shift: float) -> Law:
        return self + -finite(shift, "shift")

    def __rsub__(self, minuend: float) -> Law:
        return self._affine(minuend, -1.0)

    def __mul__(self, factor: float) -> Law:
        return self._affine(scale=factor)

    __rmul__ = __mul__

    # --- JSON ------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain JSON data: its class name under "kind", and its parameters.

        >>> from robandit.laws import Pareto
        >>> Pareto(tail=1.5).to_dict()
        {'kind': 'Pareto', 'tail': 1.5, 'scale': 1.0}
        """
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return {"kind": type(self).__name__} | {name: _to_json(getattr(self, name)) for name in names}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Law:
        """Return the law that ``to_dict`` wrote. Unknown classes and parameters are rejected."""
        rule = 'an object with the class name under "kind"'
        data = mapping(data, "law", rule)
        if "kind" not in data:
            raise invalid("law", data, rule)
        kind = data["kind"]
        laws = _own_laws() if type(kind) is str and kind in _own_laws() else known_laws()
        name = choice(kind, "kind", sorted(laws))
        try:
            parameters = {key: _from_json(value) for key, value in data.items() if key != "kind"}
        except RecursionError as error:
            raise invalid("law", data, "plain JSON data that to_dict wrote") from error
        names = {field.name for field in fields(laws[name])}  # type: ignore[arg-type]
        unknown = sorted(map(str, set(parameters) - names))
        if unknown:
            raise InvalidInput(f"{name} has no parameter {excerpt(unknown)}; it has {', '.join(sorted(names))}")
        try:
            return laws[name](**parameters)
        except TypeError as error:
            raise InvalidInput(f"{name} cannot be made of {formatted(data)}: {error}") from error


def checked_law(value: Any, name: str) -> Law:
    """Return the value, or raise if it is not a law."""
    if not isinstance(value, Law):
        raise invalid(name, value, "a law", hint="wrap a plain number as Constant(number)")
    return value


def law_with_mean(value: Any, name: str) -> Law:
    """Return the value, or raise if it is not a law with a finite mean."""
    law = checked_law(value, name)
    if not math.isfinite(law.mean):
        rule = "a law with a finite mean"
        message = f"{name} = {formatted(law)} must be {rule}, not {law.mean}; use a law with a tail index above 1"
        raise MeanUndefined(message, parameter=name, value=law, rule=rule)
    return law


def store_checked(law: Law, check: Callable[[Any, str], Any], *names: str) -> None:
    """Replace each named parameter of a frozen law by the result of ``check(value, name)``."""
    for name in names:
        object.__setattr__(law, name, check(getattr(law, name), name))


def known_laws() -> dict[str, type[Law]]:
    """Return all laws by class name, including users' laws. A user's law cannot replace one of Robandit."""
    laws = sorted(_concrete(Law), key=lambda law: not law.__module__.startswith("robandit."))  # type: ignore[type-abstract]
    return {law.__name__: law for law in reversed(laws)}


@cache
def _own_laws() -> dict[str, type[Law]]:
    """Return Robandit's laws by class name. Searching for all laws takes longer than making one."""
    return {name: law for name, law in known_laws().items() if law.__module__.startswith("robandit.")}


def _concrete(kind: type[Law]) -> Iterator[type[Law]]:
    for child in kind.__subclasses__():
        if not inspect.isabstract(child):
            yield child
        yield from _concrete(child)


def _to_json(value: Any) -> Any:
    if isinstance(value, Law):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return packed(value)
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value


def _from_json(value: Any) -> Any:
    if is_packed(value):
        return unpacked(value, "data")
    if isinstance(value, Mapping):
        return Law.from_dict(value)
    if isinstance(value, (list, tuple)):
        return tuple(_from_json(item) for item in value)
    return value
