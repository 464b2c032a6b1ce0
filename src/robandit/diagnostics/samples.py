"""Reads recorded rewards as arrays, and checks the parameters of tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from robandit.errors import InvalidInput, formatted
from robandit.kernel.types import Floats
from robandit.validation import array, finite, read_items


def sample(x: Any, name: str = "the sample") -> Floats:
    """Return one row of finite numbers, or raise `InvalidInput`.

    >>> sample([1, 2.5, True]).tolist()
    [1.0, 2.5, 1.0]
    """
    if isinstance(x, (str, bytes)):
        raise _invalid(name, x, f"is the text {formatted(x)}: pass a list or array of numbers")
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise _invalid(name, x, "has masked values: remove them with .compressed()")
    if hasattr(type(x), "columns"):  # of the type, because the columns of a lazy frame take time
        raise _invalid(name, x, "is a table: pass one column of it, or all arms as dict(df) (polars: df.to_dict())")
    values = floats(x, name, "pass a list or array of floats")
    if values.ndim != 1:
        raise _invalid(name, x, f"has {values.ndim} axes: pass one row, or several arms as a dict from arm to rewards")
    if not len(values):
        raise _invalid(name, x, "is empty: there must be at least one number")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        place = f"has {values[bad[0]]} at position {bad[0]} ({len(bad)} such values in all)"
        raise _invalid(name, x, f"{place}: remove them, or give a failure a finite cost")
    return values


def floats(x: Any, name: str, hint: str) -> Floats:
    """Return an array of numbers of any shape as floats; other types are rejected."""
    if isinstance(x, Iterable) and not (hasattr(x, "__len__") or hasattr(x, "__array__")):
        x = read_items(x, name, "numbers", hint=hint)  # a generator
    try:
        numbers = array(x, name)
    except InvalidInput as error:
        reason = f" ({str(error.rule).partition(' (')[2][:-1]})"
        raise _invalid(name, x, f"is not an array of numbers{reason}: {hint}") from error
    if not isinstance(x, (Iterable, np.ndarray)) and numbers.ndim == 0:
        raise _invalid(name, x, f"is not an array of numbers (it is {formatted(x)}): {hint}")
    return numbers.copy() if numbers is x else numbers


def _invalid(name: str, x: Any, problem: str) -> InvalidInput:
    return InvalidInput(f"{name} {problem}", parameter=name, value=x)


def checked_about(about: Any) -> float | Literal["median"]:
    """Return the point as a float, or ``"median"``."""
    if isinstance(about, str) and about == "median":
        return "median"
    return finite(about, "about", hint="or pass 'median'")
