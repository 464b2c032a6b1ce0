"""Checks parameters: integers, positive numbers, probabilities and others.

Each function takes a value and the name of its parameter, and returns the value as a plain Python number or raises `InvalidInput`:
``name = value must be RULE; WAY OUT``. NumPy scalars and fractions are accepted, and booleans rejected. Nothing is rounded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sized
from fractions import Fraction
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robandit.errors import InvalidInput, formatted
from robandit.wording import visible

LARGEST_INTEGER = 2**53
"""The bound of horizons and other counts of pulls. A double represents every integer up to it."""

LARGEST_COUNT = 2**52
"""The largest count in a saved file. No run reaches it, and counts may still grow from here before they meet a limit of 2^53."""

MOST_ITEMS = 10_000_000
"""The longest collection of names, laws or parameters. It also ends generators that would never end."""

LEAST_EPS = 1e-9
"""The smallest eps. Formulas contain powers of 1/eps, and 1 + eps must differ from 1."""


def invalid(
    name: str, value: Any, rule: str, *, owner: str = "", hint: str = "", error: type[InvalidInput] = InvalidInput
) -> InvalidInput:
    """Return the error for a value that breaks a rule. ``owner`` names the object with the parameter, ``hint`` is the way out.

    >>> error = invalid("scale", -1, "a finite number > 0", owner="UCB1")
    >>> str(error), error.parameter, error.value, error.rule
    ('UCB1: scale = -1 must be a finite number > 0', 'scale', -1, 'a finite number > 0')
    """
    message = f"{owner}: " if owner else ""
    message += f"{name} = {formatted(value)} must be {rule}"
    return error(f"{message}; {hint}" if hint else message, parameter=name, value=value, rule=rule)


def plain(value: Any) -> Any:
    """Return NumPy scalars and arrays without dimensions as Python values, fractions as floats, and others unchanged."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.floating):
        return float(value)  # a longdouble's item() is a longdouble
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        return value.item()
    return float(value) if isinstance(value, Fraction) and abs(value) <= sys.float_info.max else value


def integer(
    value: Any, name: str, least: int = 0, most: int | None = LARGEST_INTEGER, *, owner: str = "", hint: str = ""
) -> int:
    """Return an integer from ``least`` to ``most`` (None: no upper bound). 1.5 and 1.0 are rejected."""
    given = plain(value)
    if isinstance(given, int) and not isinstance(given, bool):
        given = int(given)  # an enumeration may be one
    if type(given) is not int or given < least or (most is not None and given > most):
        largest = "2^53" if most == LARGEST_INTEGER else "2^63 - 1" if most == 2**63 - 1 else most
        rule = f"an integer >= {least}" if most is None else f"an integer from {least} to {largest}"
        raise invalid(name, value, rule, owner=owner, hint=hint or integer_meant(given, least, most))
    return given


def integer_meant(value: Any, least: int, most: int | None) -> str:
    """Return a hint with the integer that a float such as 1e3 stands for; empty if it is none that is allowed."""
    largest = LARGEST_INTEGER if most is None else min(most, LARGEST_INTEGER)
    return f"write {value:.0f}" if type(value) is float and value.is_integer() and least <= value <= largest else ""


def _number(value: Any, accepts: Callable[[float], bool], name: str, rule: str, owner: str, hint: str) -> float:
    """Return the value as a float if it is a real number that fits a double and ``accepts`` returns True."""
    given = plain(value)
    number, reason = math.nan, None
    if isinstance(given, Real) and not isinstance(given, (bool, np.timedelta64)):  # NumPy counts durations as integers
        try:
            number = float(given)
        except OverflowError as error:  # too large for a double
            reason = error
    if not (math.isfinite(number) and accepts(number)):
        raise invalid(name, value, rule, owner=owner, hint=hint) from reason
    return number


def finite(value: Any, name: str, *, owner: str = "", hint: str = "") -> float:
    """Return a finite number as a float."""
    return _number(value, lambda number: True, name, "a finite number", owner, hint)


def positive(value: Any, name: str, *, owner: str = "", hint: str = "") -> float:
    """Return a finite number > 0 as a float."""
    return _number(value, lambda number: number > 0.0, name, "a finite number > 0", owner, hint)


def within(
    value: Any,
    name: str,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
    owner: str = "",
    hint: str = "",
) -> float:
    """Return a number in [low, high]. ``open_low`` and ``open_high`` exclude an end; an infinite end is always excluded.

    >>> within(0.5, "share", 0.0, 1.0, open_low=True)
    0.5
    """
    low_rule = "" if low == -math.inf else f" > {low:g}" if open_low else f" >= {low:g}"
    high_rule = "" if high == math.inf else f" < {high:g}" if open_high else f" <= {high:g}"
    rule = "a finite number" + " and".join(part for part in (low_rule, high_rule) if part)
    excluded = (low if open_low else math.nan, high if open_high else math.nan)
    return _number(value, lambda number: low <= number <= high and number not in excluded, name, rule, owner, hint)


def probability(value: Any, name: str, *, owner: str = "") -> float:
    """Return a probability strictly between 0 and 1."""
    rule = "a probability strictly between 0 and 1"
    return _number(value, lambda number: 0.0 < number < 1.0, name, rule, owner, "such as 0.05")


def order(value: Any, name: str = "eps", *, least: float = LEAST_EPS, owner: str = "") -> float:
    """Return eps, the order of the moments minus 1: a number in (0, 1], at least ``least``."""
    rule = f"a number with 0 < {name} <= 1 (and at least {least:g})"
    return _number(value, lambda number: least <= number <= 1.0, name, rule, owner, "")


def choice(value: Any, name: str, allowed: Iterable[Any], *, owner: str = "", hint: str = "") -> Any:
    """Return the allowed value that equals the given one and has the same type."""
    options, given = tuple(allowed), plain(value)
    for option in options:
        if given is option or (type(given) is type(option) and given == option):
            return option
    raise invalid(name, value, f"one of {', '.join(map(repr, options))}", owner=owner, hint=hint)


def flag(value: Any, name: str, *, owner: str = "") -> bool:
    """Return True or False. Numbers and texts are rejected."""
    given = plain(value)
    if not isinstance(given, bool):
        raise invalid(name, value, "True or False", owner=owner)
    return given


def instance(
    value: Any, kind: type | tuple[type, ...], name: str, rule: str, *, owner: str = "", hint: str = ""
) -> Any:
    """Return a value that has one of these types."""
    if not isinstance(value, kind):
        raise invalid(name, value, rule, owner=owner, hint=hint)
    return value


def text(value: Any, name: str, rule: str = "a string", *, owner: str = "") -> str:
    """Return a string that can be printed and written to a file: without lone surrogates."""
    given = plain(value)
    if not isinstance(given, str):
        raise invalid(name, value, rule, owner=owner)
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise invalid(name, value, f"{rule} of valid Unicode", owner=owner) from error
    return given


def mapping(value: Any, name: str, rule: str, *, owner: str = "") -> dict[Any, Any]:
    """Return the entries of a mapping as a dictionary."""
    if not isinstance(value, Mapping):
        raise invalid(name, value, rule, owner=owner)
    return dict(value)


def function(value: Any, name: str, rule: str, *, owner: str = "") -> Any:
    """Return a function, or None."""
    if not (value is None or callable(value)):
        raise invalid(name, value, f"{rule}, or None", owner=owner)
    return value


def seed(value: Any, name: str = "seed") -> int | None:
    """Return a seed: an integer >= 0, or None for a seed from the system."""
    if value is None:
        return None
    try:
        return integer(value, name, 0, None)
    except InvalidInput:
        raise invalid(name, value, "an integer >= 0, or None") from None


def items_of(values: Any, name: str, what: str, *, owner: str = "") -> tuple[Any, ...]:
    """Return the items of an ordered collection; strings, sets and mappings are rejected."""
    rule, hint = f"a sequence of {what}", "pass a list or a tuple"
    unordered = isinstance(values, (str, bytes, bytearray, set, frozenset, Mapping))
    if unordered or not isinstance(values, Iterable):
        raise invalid(name, values, rule, owner=owner, hint=hint)
    return read_items(values, name, rule, owner=owner, hint=hint)


def read_items(values: Iterable[Any], name: str, rule: str, *, owner: str = "", hint: str = "") -> tuple[Any, ...]:
    """Return the items of any iterable, if they can be read and are at most `MOST_ITEMS`."""
    try:
        many = len(values) > MOST_ITEMS if isinstance(values, Sized) else False
        items = () if many else tuple(islice(values, MOST_ITEMS + 1))
    except TypeError as error:  # an array without dimensions
        raise invalid(name, values, rule, owner=owner, hint=hint) from error
    if many or len(items) > MOST_ITEMS:
        raise invalid(name, values, f"{rule}, at most {MOST_ITEMS:,}", owner=owner)
    return items


def numbers(values: Any, name: str, *, owner: str = "") -> tuple[float, ...]:
    """Return one or more finite numbers as floats."""
    items = items_of(values, name, "numbers", owner=owner)
    if not items:
        raise invalid(name, values, "at least one number", owner=owner)
    return tuple(finite(item, f"{name}[{i}]", owner=owner) for i, item in enumerate(items))


def probabilities(values: Any, name: str, count: int, *, owner: str = "") -> tuple[float, ...]:
    """Return ``count`` numbers >= 0 that add up to 1 (to within 1e-9, for rounding)."""
    items = numbers(values, name, owner=owner)
    if len(items) != count:
        raise invalid(name, values, f"{count} probabilities, one for each item", owner=owner)
    for i, item in enumerate(items):
        if item < 0.0:
            raise invalid(f"{name}[{i}]", item, "a probability, which is not negative", owner=owner)
    total = math.fsum(items) if math.isfinite(sum(items)) else math.inf
    if abs(total - 1.0) > 1e-9:
        rule = f"probabilities that add up to 1, not to {total!r}"
        raise invalid(name, values, rule, owner=owner, hint="divide each by the total")
    return items


def array(values: Any, name: str, *, owner: str = "", hint: str = "") -> NDArray[np.float64]:
    """Return numbers of any shape as an array of doubles, without copying one. Text and dates are rejected."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"its type is {given.dtype}")
        if given.dtype.kind != "O":
            return given.astype(np.float64, copy=False)
        items = given.ravel().tolist()
        for item in items:  # astype would turn None into NaN, and "1" into 1
            if not hasattr(item, "__float__"):
                raise TypeError(f"it contains {formatted(item)}")
        return np.array([float(item) for item in items]).reshape(given.shape)
    except (TypeError, ValueError, OverflowError) as error:
        reason = "its rows differ in length" if "inhomogeneous" in str(error) else visible(str(error)[:120])
        raise invalid(name, values, f"an array of numbers ({reason})", owner=owner, hint=hint) from None


def check_items(
    values: NDArray[Any], accepted: NDArray[np.bool_], name: str, rule: str, *, owner: str = "", hint: str = ""
) -> None:
    """Raise `InvalidInput` for the first item of an array that is not accepted."""
    places = np.argwhere(~accepted)
    if len(places):
        index = tuple(places[0].tolist())
        raise invalid(f"{name}[{', '.join(map(str, index))}]", values[index].item(), rule, owner=owner, hint=hint)


def column(values: Any, name: str, most: float = sys.float_info.max, *, owner: str = "") -> NDArray[np.float64]:
    """Return one or more finite numbers as a one-dimensional array of doubles. ``most`` bounds their absolute values."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise invalid(name, values, "without masked values", owner=owner, hint="remove them with .compressed()")
    numbers = array(values, name, owner=owner)
    if numbers.ndim != 1 or not numbers.size:
        raise invalid(name, values, "one row of at least one number", owner=owner)
    rule = "a finite number" + ("" if most == sys.float_info.max else f" within +-{most:g}")
    check_items(numbers, np.abs(numbers) <= most, name, rule, owner=owner)
    return numbers


def points(x: Any) -> NDArray[np.float64]:
    """Return the points at which a function is evaluated, of any shape. Infinities and NaN are accepted."""
    return array(x, "x", hint="pass an int, a float or an array")
