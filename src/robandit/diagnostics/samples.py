"""Recorded rewards as arrays, or a refusal that says what is wrong and where; and a hash of their positions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.random import GOLDEN, mixed
from robandit.kernel.types import Floats, UInts
from robandit.validation import finite, probability

__all__ = ["check_about", "check_confidence", "hashed", "sample"]


def sample(x: Any, name: str = "the sample") -> Floats:
    """One row of finite numbers.

    >>> sample([1, 2.5, True]).tolist()
    [1.0, 2.5, 1.0]
    """
    if isinstance(x, (str, bytes)):
        raise InvalidInput(f"{name} is the text {x!r}: pass a list or array of numbers")
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InvalidInput(f"{name} has masked values: leave them out with .compressed()")
    if hasattr(x, "columns"):
        raise InvalidInput(
            f"{name} is a table: pass one column of it, such as df['name'], or all of them as a dict from arm to rewards, "
            "with dict(df) (polars: df.to_dict())"
        )
    try:
        given = np.asarray(x if hasattr(x, "__len__") or hasattr(x, "__array__") else list(x))
        if given.dtype.kind not in "biufO":
            raise TypeError(f"its type is {given.dtype}")
        values = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} is not an array of numbers ({error}): pass a list or array of floats") from None
    if values.ndim != 1:
        raise InvalidInput(
            f"{name} has {values.ndim} axes: pass the rewards of one arm as one row, or several arms as a dict "
            "from arm to rewards"
        )
    if not len(values):
        raise InvalidInput(f"{name} is empty: there must be at least one number")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InvalidInput(
            f"{name} has {values[bad[0]]} at position {bad[0]} ({len(bad)} such values in all): leave them out, or give a "
            "failure a finite cost"
        )
    return values


def check_about(about: Any) -> None:
    """Raise `InvalidInput` unless this is a point, or the word for the median."""
    if not (isinstance(about, str) and about == "median"):
        finite(about, "about", hint="or pass 'median'")


def check_confidence(confidence: Any) -> None:
    """Raise `InvalidInput` unless this is a probability."""
    probability(confidence, "confidence", hint="such as 0.95")


def hashed(number: UInts) -> UInts:
    """SplitMix64: 64 well mixed bits for each number, no two of them equal."""
    with np.errstate(over="ignore"):
        return cast("UInts", mixed(cast("np.uint64", number * GOLDEN)))
