"""Valid ranges of arrays that compiled code uses. It does not check its indices, so a file is checked before it is used.

A policy declares the range of each field of its state (`Policy.ranges`), and `violation` finds the first value outside. Lows and
highs may be numbers or arrays that broadcast to the field, so a range can depend on sizes and on other fields::

    {
        "lead": Range(-1, arms - 1, integer=True),
        "used": Range(0, state.room, integer=True),
        "scratch": ANYTHING,
    }

NaN is in no range. Integers and truth values that are used as an index or as the end of a loop need a tight range. Floats need one
if they are converted to an index, or if a loop ends only because of their values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.loops import LARGEST_REWARD

__all__ = [
    "ANYTHING",
    "COUNTS",
    "FINITE",
    "FLAGS",
    "MOST",
    "NOT_NEGATIVE",
    "NUMBERS",
    "POSITIVE",
    "REWARDS",
    "SIGNED",
    "SUMS",
    "Range",
    "allowed_arm",
    "by_column",
    "exactly",
    "near",
    "violation",
]

MOST = 2**52
"""The largest count. No run reaches it, and counts may still grow from here before they meet a limit of 2^53."""


class Range(NamedTuple):
    """The valid values of a field: from ``low`` to ``high``, both included; only whole numbers if ``integer`` is True."""

    low: Any
    high: Any
    integer: Any = False
    nan: Any = False
    """Whether NaN is valid, too."""


_LARGEST = float(np.finfo(np.float64).max)

ANYTHING = Range(-math.inf, math.inf, nan=True)
"""For scratch memory, for random bits, and for numbers that are only compared or added."""
NUMBERS = Range(-math.inf, math.inf)
"""Everything but NaN."""
FINITE = Range(-_LARGEST, _LARGEST)
NOT_NEGATIVE = Range(0.0, _LARGEST)
POSITIVE = Range(5e-324, math.inf)
REWARDS = Range(-LARGEST_REWARD, LARGEST_REWARD)
SUMS = Range(-1e170, 1e170)
"""Sums of up to 2^53 rewards, or of differences between rewards."""
COUNTS = Range(0, MOST, True)
SIGNED = Range(-MOST, MOST, True)
"""Counts that are only compared, and may be negative after pulls that expire."""
FLAGS = Range(0, 1, True)


def exactly(value: Any) -> Range:
    """Return the range of one value."""
    return Range(value, value)


def near(value: Any) -> Range:
    """Return the range of a computed constant, which may have another rounding on another machine."""
    slack = 1e-9 * np.abs(value)
    return Range(value - slack, value + slack)


def allowed_arm(arms: Any, allowed: Any) -> Range:
    """Return the range of positions of arms that are -1 (none) or allowed.

    >>> allowed_arm(np.array([1, 0, -1, 9]), np.array([True, False])).high.tolist()
    [-1, 1, 1, 1]
    """
    last = len(allowed) - 1
    return Range(-1, np.where(allowed[np.clip(arms, 0, last)] | (arms < 0) | (arms > last), last, -1), True)


def by_column(array: Any, ranges: Mapping[int, Range], others: Range = NUMBERS) -> Range:
    """Return the range of an array whose last axis has columns with different meanings.

    A low or a high of ``ranges`` is a number, or an array with the shape of the other axes.

    >>> by_column(np.zeros((2, 3)), {0: COUNTS, 2: Range(0.0, [1.0, 2.0])}, others=Range(-1.0, 1.0)).high.tolist()
    [[4503599627370496.0, 1.0, 1.0], [4503599627370496.0, 1.0, 2.0]]
    """
    kind = np.int64 if array.dtype.kind in "iu" else np.float64
    low, high = np.empty(array.shape, kind), np.empty(array.shape, kind)
    integer, nan = np.zeros(array.shape[-1], np.bool_), np.zeros(array.shape[-1], np.bool_)
    for column in range(array.shape[-1]):
        low[..., column], high[..., column], integer[column], nan[column] = ranges.get(column, others)
    return Range(low, high, integer, nan)


def violation(fields: Mapping[str, Any], ranges: Mapping[str, Range]) -> str | None:
    """Return a sentence about the first value outside its range, or None if there is none.

    >>> violation({"lead": np.array([0, 7])}, {"lead": Range(-1, 2, True)})
    'lead[1] = 7 is not an integer from -1 to 2'
    """
    for name, valid in ranges.items():
        array = fields[name]
        with np.errstate(invalid="ignore"):
            right = (array >= valid.low) & (array <= valid.high)
            if array.dtype.kind == "f":
                right &= ~np.asarray(valid.integer) | (np.floor(array) == array)
                right |= np.asarray(valid.nan) & np.isnan(array)
        if not right.all():
            place = tuple(int(i) for i in np.argwhere(~right)[0])
            low, high, integer, _ = (np.broadcast_to(part, array.shape)[place].item() for part in valid)
            kind = "an integer" if integer or array.dtype.kind != "f" else "a number"
            return (
                f"{name}[{', '.join(map(str, place))}] = {array[place].item()!r} is not {kind} from {low!r} to {high!r}"
            )
    return None
