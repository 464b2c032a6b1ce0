"""Checks of what the functions here are given: each returns the value as a plain number, or says what is wrong with it."""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import Any

import numpy as np

from robandit.errors import InvalidInput

__all__ = ["MOST", "number", "order", "plain", "whole"]

MOST = 2**53
"""Pulls: beyond, whole numbers have no place in a double."""


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python number that it is."""
    return value.item() if isinstance(value, np.generic) else value


def whole(value: Any, name: str, least: int) -> int:
    """A whole number from ``least`` to 2^53."""
    given = plain(value)
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= MOST:
        raise InvalidInput(f"{name} is {value!r}: it must be a whole number from {least} to 2^53")
    return given


def number(value: Any, name: str) -> float:
    """A finite number above 0."""
    given = plain(value)
    good = isinstance(given, Real) and not isinstance(given, bool)
    if not (good and 0.0 < given <= sys.float_info.max):
        raise InvalidInput(f"{name} is {value!r}: it must be a finite number above 0")
    return float(given)


def order(value: Any, name: str = "eps") -> float:
    """The order of moments minus 1, in (0, 1]."""
    given = plain(value)
    good = isinstance(given, Real) and not isinstance(given, bool)
    if not (good and 0.0 < given <= 1.0) or math.isnan(given):
        raise InvalidInput(f"{name} is {value!r}: it must be a number in (0, 1], the order of the moments minus 1")
    return float(given)
