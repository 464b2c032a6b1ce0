"""Converts columns of NumPy, pandas, polars and Arrow to lists of arms and rewards, without importing these packages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from robandit.errors import InvalidInput, InvalidReward
from robandit.kernel.loops import LARGEST_REWARD, SMALLEST_REWARD, playable
from robandit.validation import invalid, plain, read_items

# The types of nearly all rewards. They are known to be numbers, so `checked_reward` needs a fifth of the time of other types.
_USUAL = frozenset({float, int, bool, np.bool, *(np.dtype(code).type for code in "efdbhilqBHILQ")})
_LIST_METHODS = ("to_list", "to_pylist", "tolist")  # pandas and polars; Arrow; NumPy, pandas' arrays, array.array


def listed(name: str, values: Any, rule: str = "a list or a column") -> list[Any]:
    """Return the values of a column as a list. Raise `InvalidInput` if they have no order or more than one dimension."""
    shape, kind, problem = getattr(values, "shape", None), type(values).__name__[:60], ""
    if isinstance(shape, tuple) and len(shape) != 1:
        column = f"one of its columns, such as {kind.lower()}['{name}']"
        hint = f"pass {column if hasattr(values, 'columns') else 'one dimension'}"
        problem = f"a {kind} of shape {shape}, and must be {rule}: {hint}"
    elif isinstance(values, (set, frozenset, Mapping)):
        problem = f"a {kind}, and must be {rule}, in order: pass list(...) of it"
    if problem:
        raise InvalidInput(f"{name} is {problem}", parameter=name, value=values, rule=rule)
    if isinstance(values, (str, bytes, bytearray)) or not isinstance(values, Iterable):
        raise invalid(name, values, rule)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return list(values)  # tolist() would turn times into integers
    for each in () if isinstance(values, (list, tuple)) else _LIST_METHODS:
        method = getattr(values, each, None)
        if callable(method):
            values = method()
            break
    return list(values) if type(values) in (list, tuple) else list(read_items(values, name, rule))


def at(name: str, position: int) -> str:
    """Return the beginning of an error message: the column and the position in it."""
    return f"{name}, position {position} (from 0): "


def checked_rewards(name: str, values: Any) -> list[float]:
    """Return rewards as floats. Raise `InvalidReward` with the position of the first invalid one."""
    given = listed(name, values)
    if _USUAL.issuperset(map(type, given)):  # checked all at once
        with suppress(OverflowError):
            array = np.array(given, dtype=np.float64)
            if playable(array).all():
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
    """Return a reward as a float. Raise `InvalidReward` if no policy can learn from it."""
    if type(reward) in _USUAL:
        try:
            usual = float(reward)
        except OverflowError:  # an integer; the message is written below
            usual = math.inf
        if playable(usual):
            return usual
    value = plain(reward)
    if isinstance(value, np.timedelta64) or not isinstance(
        value, (Real, Decimal)
    ):  # NumPy counts durations as integers
        raise invalid("reward", reward, "a number", hint="pass a float", error=InvalidReward)
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction that does not fit a double
        number = LARGEST_REWARD * 2.0
    except ValueError:  # a signalling NaN of decimal
        number = float("nan")
    if not abs(number) < float("inf"):
        hint = "skip it, or give a failure a finite cost"
        raise invalid("reward", number, "a finite number", hint=hint, error=InvalidReward)
    if abs(number) > LARGEST_REWARD:
        rule = f"within +-{LARGEST_REWARD:g}, because rewards are squared"
        raise invalid("reward", reward, rule, hint="scale all rewards down", error=InvalidReward)
    if not playable(number) or (number == 0.0 and value != 0):  # a decimal or a fraction that became 0
        rule = f"0 or at least {SMALLEST_REWARD:g} in size, because rewards are squared"
        raise invalid("reward", reward, rule, hint="scale all rewards up, or pass 0.0", error=InvalidReward)
    return number
