"""Sums of doubles and of their squares without rounding, so that the order of the values does not matter.

Every double is an integer times 2^-1074, and every square is an integer times 2^-2148. The sum of these integers is stored as
32-bit digits. Each digit is an int64 that may temporarily exceed 32 bits. So adding a value changes three neighbouring digits
(nine for a square) and never carries further. Carries happen once in 2^28 values. A sum over the whole range of doubles has 70
digits and a sum of squares 136, for any number of values.

Compensated sums would be shorter and nearly exact, but the last digits of the threshold would then depend on the split of a
stream. They would also need a shift against cancellation and a scale against overflow. Integers need neither.
"""

from __future__ import annotations

import math
from typing import Any

from robandit.kernel.types import Ints

SUM_DIGITS = 70  # 2098 bits for one value and 63 for the number of values, rounded up with room for `add_signed`
SQUARE_DIGITS = 136
CARRY_AFTER = 2**28  # values; each adds less than 2^34 to a digit
MASK = 2**32 - 1
HALF = 2**27 - 1


def add_signed(digits: Ints, mantissa: int, shift: int, sign: int) -> None:
    """Add sign * mantissa * 2^shift, where mantissa < 2^54."""
    j = shift >> 5
    r = shift & 31
    low = (mantissa & MASK) << r
    high = (mantissa >> 32) << r
    digits[j] += sign * (low & MASK)
    digits[j + 1] += sign * ((low >> 32) + (high & MASK))
    digits[j + 2] += sign * (high >> 32)


def add_square(digits: Ints, mantissa: int, shift: int) -> None:
    """Add (mantissa * 2^shift)^2, where mantissa < 2^53, in three products that fit into 64 bits."""
    low = mantissa & HALF
    high = mantissa >> 27
    add_signed(digits, low * low, 2 * shift, 1)
    add_signed(digits, low * high, 2 * shift + 28, 1)
    add_signed(digits, high * high, 2 * shift + 54, 1)


def carry(digits: Ints) -> None:
    """Normalise all digits except the last to 0 .. 2^32 - 1."""
    for j in range(digits.shape[0] - 1):
        digits[j + 1] += digits[j] >> 32
        digits[j] &= MASK


def read(digits: Ints) -> int:
    """Return the integer that the digits represent."""
    total = 0
    for digit in reversed(digits.tolist()):
        total = (total << 32) + digit
    return total


def write(number: int, digits: Ints) -> None:
    """Set the digits to represent an integer."""
    for j in range(digits.shape[0] - 1):
        digits[j] = number & MASK
        number >>= 32
    digits[-1] = number


def units(value: Any) -> int:
    """Return a double as a multiple of 2^-1074."""
    top, bottom = float(value).as_integer_ratio()
    return top << (1075 - bottom.bit_length())


def root_of_ratio(top: int, bottom: int, *, scale: int) -> float:
    """Return sqrt(top / bottom) / 2^scale with an error of at most one unit in the last place; infinite on overflow."""
    if top == 0:
        return 0.0
    more = max(0, (132 - top.bit_length() + bottom.bit_length()) // 2)
    root = math.isqrt((top << 2 * more) // bottom)
    try:
        return root / (1 << (more + scale))
    except OverflowError:
        return math.inf
