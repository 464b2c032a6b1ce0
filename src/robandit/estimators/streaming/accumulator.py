"""The base class of accumulators, which checks values, saves states with a version, and merges only equal settings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, formatted
from robandit.estimators.estimate import rows
from robandit.kernel.types import Floats
from robandit.validation import finite, integer, invalid, mapping, probability, within

Own = TypeVar("Own", bound="Accumulator")
CHUNK = 2**20  # largest number of values passed to compiled code at once; exact sums carry between chunks at the latest


class Accumulator(ABC):
    """A robust mean that is built value by value. This class checks values, and subclasses store them. An error changes nothing."""

    version: ClassVar[int] = 1
    settings: ClassVar[tuple[str, ...]] = ()  # the constructor's parameters, which must be equal in merged shards
    largest: ClassVar[float] = float(np.finfo(np.float64).max)  # the largest absolute value that is accepted

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of values taken."""

    def update(self, value: float) -> None:
        """Take one value."""
        number = value if type(value) is float else finite(value, "value", owner=self._name)
        if not abs(number) <= self.largest:
            raise self._unusable(number)
        self._one[0] = number
        self._take(self._one)

    def update_many(self, values: ArrayLike) -> None:
        """Take many values in this order. If one of them is rejected, none is taken."""
        if type(values) in (list, tuple, range) and not values:
            return
        if isinstance(values, np.ndarray) and values.shape == (0,):
            return
        matrix, shape = rows(values, check=False)
        if shape:
            raise InvalidInput(f"the values have {len(shape) + 1} dimensions: pass one, in the order of arrival")
        data = matrix[0]
        # This comparison fails for NaN, infinity and values that are too large.
        if not max(float(data.max()), -float(data.min())) <= self.largest:
            place = int(np.flatnonzero(~(np.abs(data) <= self.largest))[0])
            raise self._unusable(float(data[place]), f" (position {place}); nothing was taken")
        for start in range(0, data.size, CHUNK):
            self._take(data[start : start + CHUNK])

    def merge(self: Own, other: Own) -> None:
        """Take all values of another accumulator with the same class and settings, which is not changed."""
        if type(other) is not type(self):
            raise InvalidInput(f"{self._name} cannot be merged with {formatted(other)}: both must be of the same kind")
        if other is self:
            raise InvalidInput(f"this {self._name} cannot be merged with itself: every value would count twice")
        for name in self.settings:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                pair = f"{name} = {mine!r} cannot be merged with {name} = {theirs!r}"
                raise InvalidInput(f"{self._name} with {pair}: use equal settings")
        self._add(other)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data, from which `from_dict` continues exactly."""
        settings = {name: getattr(self, name) for name in self.settings}
        return {"kind": self._name, "version": self.version, **settings, **self._save()}

    @classmethod
    def from_dict(cls: type[Own], state: dict[str, Any]) -> Own:
        """Return the accumulator of a `to_dict` state. Raise `InvalidInput` if it is newer, damaged or incomplete."""
        name = cls.__name__
        if not isinstance(state, dict):
            kind = type(state).__name__
            raise InvalidInput(f"the state of a {name} is a dictionary, not {kind}: pass the result of to_dict")
        saved = Saved(name, mapping(state, "state", "a dictionary", owner=name))
        kind = saved.take("kind")
        if kind != name:
            raise InvalidInput(f"the state's kind is {formatted(state['kind'])}: it cannot become a {name}")
        version = saved.count("version", least=1)
        if version > cls.version:
            reads = f"this Robandit reads up to {cls.version}: install a newer one"
            raise InvalidInput(f"the state of this {name} has version {version}, and {reads}")
        accumulator = cls(**{s: saved.take(s) for s in cls.settings})
        accumulator._load(saved)
        if saved.fields:
            field = next(iter(saved.fields))
            raise InvalidInput(
                f"the state of a {name} has no field {formatted(field)}: it is damaged, or of another kind"
            )
        return accumulator

    def __repr__(self) -> str:
        """Return the settings and the number of values."""
        settings = ", ".join(f"{s}={getattr(self, s)!r}" for s in self.settings)
        return f"<{self._name}({settings}) of {self.n} values>"

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _unusable(self, value: float, position: str = "") -> InvalidInput:
        """Return the error for a number that is not finite or too large."""
        limit, way_out = "", "leave it out"
        if math.isfinite(value):
            limit, way_out = f" up to {self.largest:g} in size", "scale the data"
        return invalid("value", value, f"a finite number{limit}", owner=self._name, hint=way_out + position)

    # Hooks of subclasses. `_take` gets at most CHUNK checked values in a C-contiguous array.

    _one: Floats  # a buffer for one value

    @abstractmethod
    def _take(self, values: Floats) -> None: ...

    @abstractmethod
    def _add(self: Own, other: Own) -> None: ...

    @abstractmethod
    def _save(self) -> dict[str, Any]: ...

    @abstractmethod
    def _load(self, saved: Saved) -> None: ...


def checked_delta(name: str, delta: Any, delta_min: float) -> float:
    """Return delta. Raise `InvalidInput` if it is below the accumulator's delta_min."""
    checked = probability(delta, "delta")
    if checked < delta_min:
        hint = f"make a {name} with a smaller delta_min"
        raise invalid("delta", delta, f"at least this {name}'s delta_min = {delta_min!r}", hint=hint)
    return checked


class Saved:
    """A saved state that is read field by field, with errors that name the field."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        """Store the fields that have not been read yet."""
        self.name = name
        self.fields = fields
        self.owner = f"the state of this {name} is damaged"

    def take(self, field: str) -> Any:
        """Remove a field and return its value, of any type."""
        if field not in self.fields:
            raise InvalidInput(f"the state of this {self.name} has no field {field!r}: it is damaged or incomplete")
        return self.fields.pop(field)

    def damaged(self, field: str, value: Any, rule: str) -> InvalidInput:
        """Return the error for a field that breaks a rule."""
        return invalid(field, value, rule, owner=self.owner)

    def count(self, field: str, *, least: int = 0, most: int = 2**62) -> int:
        """Return an integer within limits."""
        return integer(self.take(field), field, least, most, owner=self.owner)

    def number(self, field: str, *, least: float = -math.inf) -> float:
        """Return a finite number."""
        return within(self.take(field), field, least, math.inf, owner=self.owner)

    def numbers(self, field: str, *, most: int, least: float = -math.inf) -> Floats:
        """Return a list of finite numbers as an array."""
        value = self.take(field)
        if type(value) is not list or len(value) > most:
            raise self.damaged(field, value, f"a list of at most {most} numbers")
        return np.array([within(v, field, least, math.inf, owner=self.owner) for v in value], dtype=np.float64)

    def integer(self, field: str) -> int:
        """Return an integer of any size, written in base 16."""
        value = self.take(field)
        try:
            if not isinstance(value, str):
                raise ValueError
            return int(value, 16)
        except ValueError:
            raise self.damaged(field, value, "an integer in base 16, as a string") from None
