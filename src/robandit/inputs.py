"""Columns of arms and rewards as plain lists, whatever library holds them.

NumPy, pandas, polars and Arrow each have a method that hands out Python's own values. No library is imported for it: who has
a column has the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from robandit.errors import InvalidInput, InvalidReward
from robandit.kernel.loops import LARGEST_REWARD

__all__ = ["at", "checked_reward", "checked_rewards", "listed", "plain"]

_PLAIN = {float, int, bool}
_WAYS_OUT = ("to_list", "to_pylist", "tolist")  # pandas and polars; Arrow; NumPy, pandas' arrays, array.array


def listed(name: str, values: Any, rule: str = "a list or a column") -> list[Any]:
    """The values in order; `InvalidInput` if they have no order, or more than one dimension, or are not several at all."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        kind = type(values).__name__
        frame = hasattr(values, "columns")
        way = f"pass one of its columns, such as {kind.lower()}['{name}']" if frame else "pass one dimension"
        raise InvalidInput(f"{name} is a {kind} of shape {shape}, and must be {rule}: {way}")
    if isinstance(values, (set, frozenset, Mapping)):
        raise InvalidInput(f"{name} is a {type(values).__name__}, and must be {rule}, in order: pass list(...) of it")
    if isinstance(values, (str, bytes, bytearray)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} = {values!r} must be {rule}")
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return list(values)  # its tolist() would make whole numbers of times
    for way in _WAYS_OUT:
        method = getattr(values, way, None)
        if callable(method):
            return list(method())
    return list(values)


def at(name: str, position: int) -> str:
    """Where in a column something is wrong, to stand before what is wrong."""
    return f"{name}, position {position} (from 0): "


def plain(value: Any) -> Any:
    """NumPy's scalars and arrays without dimensions as Python's values, where that says the same; others as they are."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        return value.item()
    return value


def checked_rewards(name: str, values: Any) -> list[float]:
    """The rewards as floats; the first that cannot be learned from is refused with its position."""
    given = listed(name, values)
    if _PLAIN.issuperset(map(type, given)):  # what columns hold: checked all at once
        try:
            array = np.array(given, dtype=np.float64)
        except OverflowError:
            pass
        else:
            if (np.abs(array) <= LARGEST_REWARD).all():
                floats: list[float] = array.tolist()
                return floats
    checked = []
    for position, value in enumerate(given):
        try:
            checked.append(checked_reward(value))
        except InvalidReward as error:
            raise InvalidReward(f"{at(name, position)}{error}") from None
    return checked


def checked_reward(reward: Any) -> float:
    """The reward as a float; `InvalidReward` if nothing can be learned from it."""
    value = plain(reward)
    duration = isinstance(value, np.timedelta64)  # which NumPy counts as a whole number
    if duration or not isinstance(value, (Real, Decimal)):
        raise InvalidReward(f"reward {reward!r} is not a number: pass a float")
    try:
        number = float(value)
    except OverflowError:  # a whole number or a fraction that no double holds
        raise InvalidReward(f"reward is beyond +-{LARGEST_REWARD:g}: scale all rewards down") from None
    except ValueError:  # a decimal that signals that it is not a number
        number = float("nan")
    if not abs(number) < float("inf"):
        raise InvalidReward(f"reward {number} cannot be learned from: leave it out, or give a failure a finite cost")
    if abs(number) > LARGEST_REWARD:
        raise InvalidReward(
            f"reward {number:g} is beyond +-{LARGEST_REWARD:g}: rewards are squared, scale them all down"
        )
    return number
