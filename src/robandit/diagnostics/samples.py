"""Reads recorded rewards as arrays, and checks the parameters of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats
from robandit.validation import column, finite, read_items


def sample(x: Any, name: str = "x") -> Floats:
    """Return a copy of one row of finite numbers, or raise `InvalidInput`.

    >>> sample([1, 2.5, True]).tolist()
    [1.0, 2.5, 1.0]
    """
    if hasattr(type(x), "columns"):  # of the type, because the columns of a lazy frame take time
        problem = "is a table: pass one column of it, or all arms as dict(df) (polars: df.to_dict())"
        raise InvalidInput(f"{name} {problem}", parameter=name, value=x)
    return np.array(column(read_items(x, name, "numbers") if isinstance(x, Iterator) else x, name))


def checked_about(about: Any) -> float | Literal["median"]:
    """Return the point as a float, or ``"median"``."""
    if isinstance(about, str) and about == "median":
        return "median"
    return finite(about, "about", hint="or pass 'median'")
