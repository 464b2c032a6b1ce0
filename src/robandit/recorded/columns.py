"""Conversion of columns to numbers and times, from text or typed columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from robandit.kernel.types import Floats

if TYPE_CHECKING:
    import polars as pl

NUMERIC = ("reward", "propensity")
"""The roles of the columns with numbers."""


def number_expressions(text: pl.Expr, role: str) -> list[pl.Expr]:
    """Parse text as floats, null where that fails. The text is kept in another column, such as "reward text"."""
    import polars as pl

    return [text.cast(pl.Float64, strict=False).alias(role), text.alias(f"{role} text")]


def text_expressions(roles: Mapping[str, str]) -> list[pl.Expr]:
    """Select columns of text (role -> name), rename them to their roles, and parse numbers."""
    import polars as pl

    selected: list[pl.Expr] = []
    for role, name in roles.items():
        selected += number_expressions(pl.col(name), role) if role in NUMERIC else [pl.col(name).alias(role)]
    return selected


def numbers_of(frame: pl.DataFrame, role: str) -> Floats:
    """Return a column as floats, NaN for values that are not numbers.

    Text that did not parse is tried again: blanks around a number are ignored, and "true" and "false" are 1 and 0. A number that
    is too small for a float is the smallest float, since 0 is a valid reward, and this is none.
    """
    import polars as pl

    values = frame[role]
    if f"{role} text" not in frame:
        return values.to_numpy()
    text = frame[f"{role} text"]
    unparsed = values.is_null() & text.is_not_null()
    if unparsed.any():
        stripped = text.filter(unparsed).str.strip_chars().str.to_lowercase()
        truth = stripped.replace_strict({"true": 1.0, "false": 0.0}, default=None, return_dtype=pl.Float64)
        numbers = values.to_numpy(writable=True)
        numbers[unparsed.to_numpy()] = stripped.cast(pl.Float64, strict=False).fill_null(truth).to_numpy()
        values = pl.Series(numbers)
    vanished = ((values == 0.0) & (text.str.len_bytes() >= len("1e-324"))).fill_null(False)
    if vanished.any():
        values = values.set(vanished & text.str.contains(r"^\s*[+-]?[0.]*[1-9]"), math.ulp(0.0))
    return values.to_numpy()


def times_of(frame: pl.DataFrame) -> pl.Series:
    """Return the column of times, with null for NaN and blank text."""
    import polars as pl

    times = frame["time"]
    if times.dtype.is_float():
        return times.fill_nan(None)
    if times.dtype == pl.String:
        return times.set(times.str.strip_chars().str.len_bytes() == 0, None)
    return times
