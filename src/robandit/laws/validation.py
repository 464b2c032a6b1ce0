"""Checks of parameters: each returns the value it was given, as a float, or says what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

__all__ = ["finite", "items_of", "numbers", "points", "positive", "probabilities", "within"]


def finite(value: Any, name: str) -> float:
    """A finite number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidInput(f"{name} is {value!r}: it must be a finite number; pass an int or a float")
    try:
        number = float(value)
    except OverflowError:  # a whole number or a fraction that no double holds
        raise InvalidInput(f"{name} is beyond a double: it must be a finite number; scale it down") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{name} is {number}: it must be finite; use the law's limit case instead, if it has one")
    return number


def positive(value: Any, name: str) -> float:
    """A finite number above 0."""
    number = finite(value, name)
    if number <= 0.0:
        raise InvalidInput(f"{name} is {number}: it must be above 0; to turn a law around write -law")
    return number


def within(value: Any, name: str, low: float, high: float, *, open_low: bool = False) -> float:
    """A number in [low, high], or in (low, high]."""
    number = finite(value, name)
    if number < low or number > high or (open_low and number == low):
        bracket = "(" if open_low else "["
        raise InvalidInput(f"{name} is {number}: it must lie in {bracket}{low:g}, {high:g}]; nothing is clamped")
    return number


def items_of(values: Any, name: str, what: str) -> tuple[Any, ...]:
    """The items of something that holds several, in an order."""
    unordered = isinstance(values, (str, bytes, set, frozenset, Mapping))
    if unordered or not isinstance(values, Iterable) or getattr(values, "shape", None) == ():
        raise InvalidInput(f"{name} is {values!r}: it must be a sequence of {what}; pass a list or a tuple")
    return tuple(values)


def points(x: Any) -> Floats:
    """Where a function of x is asked for: numbers of any shape, infinities and NaN included."""
    try:
        given = np.asarray(x)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"its type is {given.dtype}")
        if given.dtype.kind == "O":  # astype would make NaN of None
            return np.array([float(value) for value in given.ravel().tolist()]).reshape(given.shape)
        return given.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"x is not an array of numbers ({error}): pass a number, or a list or array of them"
        ) from None


def numbers(values: Iterable[Any], name: str) -> tuple[float, ...]:
    """At least one finite number."""
    items = tuple(finite(value, f"{name}[{i}]") for i, value in enumerate(items_of(values, name, "numbers")))
    if not items:
        raise InvalidInput(f"{name} is empty: at least one number is needed")
    return items


def probabilities(values: Iterable[Any], name: str, count: int) -> tuple[float, ...]:
    """``count`` numbers that are not negative and add up to 1 (to 1e-9, which is only rounding)."""
    items = numbers(values, name)
    if len(items) != count:
        raise InvalidInput(f"{name} has {len(items)} entries for {count} items: give one for each")
    for i, item in enumerate(items):
        if item < 0.0:
            raise InvalidInput(f"{name}[{i}] is {item}: a probability cannot be negative")
    total = math.fsum(items)
    if abs(total - 1.0) > 1e-9:
        raise InvalidInput(f"{name} add up to {total!r}: they must add up to 1; divide each by the total")
    return items
