"""Reads columns of arms and rewards as plain lists, from any library.

NumPy, pandas, polars and Arrow each have a method that returns Python values, so none of them is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from robandit.errors import InvalidInput, InvalidReward
from robandit.kernel.loops import LARGEST_REWARD
from robandit.validation import invalid, plain

__all__ = ["at", "checked_reward", "checked_rewards", "listed"]

_PLAIN = {float, int, bool}
_LIST_METHODS = ("to_list", "to_pylist", "tolist")  # pandas and polars; Arrow; NumPy, pandas' arrays, array.array


def listed(name: str, values: Any, rule: str = "a list or a column") -> list[Any]:
    """Return the values of a column as a list; `InvalidInput` if they have no order or more than one dimension."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        kind = type(values).__name__
        hint = "pass one dimension"
        if hasattr(values, "columns"):
            hint = f"pass one of its columns, such as {kind.lower()}['{name}']"
        raise InvalidInput(
            f"{name} is a {kind} of shape {shape}, and must be {rule}: {hint}", parameter=name, value=values, rule=rule
        )
    if isinstance(values, (set, frozenset, Mapping)):
        kind = type(values).__name__
        raise InvalidInput(
            f"{name} is a {kind}, and must be {rule}, in order: pass list(...) of it",
            parameter=name,
            value=values,
            rule=rule,
        )
    if isinstance(values, (str, bytes, bytearray)) or not isinstance(values, Iterable):
        raise invalid(name, values, rule)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return list(values)  # tolist() would turn times into integers
    for each in _LIST_METHODS:
        method = getattr(values, each, None)
        if callable(method):
            return list(method())
    return list(values)


def at(name: str, position: int) -> str:
    """Return the position in a column, as the beginning of an error message."""
    return f"{name}, position {position} (from 0): "


def checked_rewards(name: str, values: Any) -> list[float]:
    """Return rewards as floats; `InvalidReward` with the position of the first invalid one."""
    given = listed(name, values)
    if _PLAIN.issuperset(map(type, given)):  # the usual case: checked all at once
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
            raise InvalidReward(f"{at(name, position)}{error}", parameter=name, value=value, rule=error.rule) from None
    return checked


def checked_reward(reward: Any) -> float:
    """Return a reward as a float; `InvalidReward` if no policy can learn from it."""
    value = plain(reward)
    # NumPy counts durations as integers.
    if isinstance(value, np.timedelta64) or not isinstance(value, (Real, Decimal)):
        raise _invalid_reward(reward, f"{reward!r} is not a number: pass a float")
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction that does not fit a double
        raise _invalid_reward(reward, f"is beyond +-{LARGEST_REWARD:g}: scale all rewards down") from None
    except ValueError:  # a signalling NaN of decimal
        number = float("nan")
    if not abs(number) < float("inf"):
        raise _invalid_reward(reward, f"{number} is not finite: leave it out, or give a failure a finite cost")
    if abs(number) > LARGEST_REWARD:
        raise _invalid_reward(
            reward, f"{number:g} is beyond +-{LARGEST_REWARD:g}: rewards are squared, scale them all down"
        )
    return number


def _invalid_reward(reward: Any, problem: str) -> InvalidReward:
    rule = f"a finite number within +-{LARGEST_REWARD:g}"
    return InvalidReward(f"reward {problem}", parameter="reward", value=reward, rule=rule)
