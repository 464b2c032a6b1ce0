"""What all accumulators share: values are checked at the door, states are versioned, only like is merged with like."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.estimators.estimate import check_delta, rows
from robandit.kernel.types import Floats

__all__ = ["Accumulator", "Saved", "check_asked"]

Own = TypeVar("Own", bound="Accumulator")
CHUNK = 2**20  # values handed to compiled code at once: the exact sums carry between chunks at the latest


class Accumulator(ABC):
    """A robust mean that is built value by value. Subclasses say how values are kept; this class says which are let in.

    A call that is refused changes nothing.
    """

    version: ClassVar[int] = 1
    settings: ClassVar[tuple[str, ...]] = ()
    """The constructor's parameters: equal in all shards that are merged."""
    largest: ClassVar[float] = math.inf
    """The largest absolute value that can be taken."""

    @property
    @abstractmethod
    def n(self) -> int:
        """How many values were taken."""

    def update(self, value: float) -> None:
        """Take one value."""
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise InvalidInput(f"{value!r} is not a number: {self._name} takes finite numbers")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or abs(number) > self.largest:
            raise InvalidInput(self._refusal(value))
        self._one[0] = number
        self._take(self._one)

    def update_many(self, values: ArrayLike) -> None:
        """Take many values, in this order; all of them or, if one is refused, none."""
        if (isinstance(values, np.ndarray) and values.shape == (0,)) or (
            isinstance(values, (list, tuple, range)) and not values
        ):
            return
        try:
            matrix, shape = rows(values, check=False)
        except OverflowError as error:
            raise InvalidInput(f"the values are not doubles ({error}); nothing was taken") from None
        if shape:
            raise InvalidInput(f"the values have {len(shape) + 1} dimensions: pass one, in the order of arrival")
        data = matrix[0]
        # One pass that NaN and infinity cannot get through, and neither can a too large value.
        if not max(float(data.max()), -float(data.min())) <= min(self.largest, np.finfo(np.float64).max):
            place = int(np.flatnonzero(~(np.abs(data) <= min(self.largest, np.finfo(np.float64).max)))[0])
            raise InvalidInput(f"{self._refusal(float(data[place]))} (position {place}); nothing was taken")
        for start in range(0, data.size, CHUNK):
            self._take(data[start : start + CHUNK])

    def merge(self: Own, other: Own) -> None:
        """Take everything that another accumulator of the same kind and settings took; the other stays as it is."""
        if type(other) is not type(self):
            raise InvalidInput(f"{self._name} cannot be merged with {other!r}: both must be of the same kind")
        if other is self:
            raise InvalidInput(f"this {self._name} cannot be merged with itself: every value would count twice")
        for name in self.settings:
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                raise InvalidInput(
                    f"{self._name} with {name} = {mine!r} cannot be merged with {name} = {its!r}: make both alike"
                )
        self._add(other)

    def to_dict(self) -> dict[str, Any]:
        """The state as a dictionary that JSON can hold; `from_dict` continues from it as if nothing had happened."""
        return {
            "kind": self._name,
            "version": self.version,
            **{s: getattr(self, s) for s in self.settings},
            **self._save(),
        }

    @classmethod
    def from_dict(cls: type[Own], state: dict[str, Any]) -> Own:
        """The accumulator that `to_dict` described. A newer, damaged or incomplete state is refused by name."""
        name = cls.__name__
        if not isinstance(state, dict):
            raise InvalidInput(
                f"the state of a {name} is a dictionary, not {type(state).__name__}: pass what to_dict returned"
            )
        saved = Saved(name, dict(state))
        if saved.take("kind") != name:
            raise InvalidInput(f"the state's kind is {state['kind']!r}: it cannot become a {name}")
        version = saved.whole("version", least=1)
        if version > cls.version:
            raise InvalidInput(
                f"the state of this {name} has version {version}, and this Robandit knows up to {cls.version}: install a newer one"
            )
        made = cls(**{s: saved.take(s) for s in cls.settings})
        made._load(saved)
        if saved.fields:
            raise InvalidInput(
                f"the state of a {name} has no field {next(iter(saved.fields))!r}: it is damaged, or another's"
            )
        return made

    def __repr__(self) -> str:
        """Settings and number of values."""
        settings = ", ".join(f"{s}={getattr(self, s)!r}" for s in self.settings)
        return f"<{self._name}({settings}) of {self.n} values>"

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _refusal(self, value: Any) -> str:
        if isinstance(value, float) and math.isfinite(value):
            return f"{value!r} is too large: {self._name} takes numbers up to {self.largest:g}; scale the data"
        return f"{value!r} is not finite: {self._name} takes finite numbers; leave it out"

    # The hooks. `_take` gets at most CHUNK checked values, C-contiguous; `_one` is room for one.

    _one: Floats

    @abstractmethod
    def _take(self, values: Floats) -> None: ...

    @abstractmethod
    def _add(self: Own, other: Own) -> None: ...

    @abstractmethod
    def _save(self) -> dict[str, Any]: ...

    @abstractmethod
    def _load(self, saved: Saved) -> None: ...


def check_asked(name: str, delta: Any, delta_min: float) -> float:
    """A delta that the accumulator kept enough for."""
    delta = check_delta(delta)
    if delta < delta_min:
        raise InvalidInput(
            f"delta = {delta!r} is below this {name}'s delta_min = {delta_min!r}: make one with a smaller delta_min"
        )
    return float(delta)


class Saved:
    """A saved state that is read field by field; whatever is wrong is refused with the field's name."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        """Fields that were not read yet."""
        self.name = name
        self.fields = fields

    def take(self, field: str) -> Any:
        """Any value."""
        if field not in self.fields:
            raise InvalidInput(f"the state of this {self.name} has no field {field!r}: it is damaged or incomplete")
        return self.fields.pop(field)

    def refuse(self, field: str, value: Any, rule: str) -> InvalidInput:
        """The error for a field that breaks a rule."""
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return InvalidInput(f"the state of this {self.name} is damaged: {field} = {shown} must be {rule}")

    def whole(self, field: str, *, least: int = 0, most: int = 2**62) -> int:
        """An integer within limits."""
        value = self.take(field)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refuse(field, value, f"an integer from {least} to {most}")
        return value

    def number(self, field: str, *, least: float = -math.inf) -> float:
        """A finite number."""
        return self._finite(field, self.take(field), least)

    def numbers(self, field: str, *, most: int, least: float = -math.inf) -> Floats:
        """A list of finite numbers."""
        value = self.take(field)
        if not isinstance(value, list) or len(value) > most:
            raise self.refuse(field, value, f"a list of at most {most} numbers")
        return np.array([self._finite(field, v, least) for v in value], dtype=np.float64)

    def integer(self, field: str) -> int:
        """An integer of any size, written in base 16."""
        value = self.take(field)
        try:
            if not isinstance(value, str):
                raise ValueError
            return int(value, 16)
        except ValueError:
            raise self.refuse(field, value, "an integer in base 16, as a string") from None

    def _finite(self, field: str, value: Any, least: float) -> float:
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or value < least:
            raise self.refuse(
                field, value, "a finite number" if least == -math.inf else f"a finite number >= {least:g}"
            )
        return float(value)
