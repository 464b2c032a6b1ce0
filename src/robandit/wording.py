"""Format counts, lists, numbers and names for sentences and tables."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of control, formatting, half, line and paragraph characters. A terminal may obey them."""


def visible(text: str, keep: str = "") -> str:
    """Return text in which control characters and others that cannot be seen are escaped as in Python, except those to keep.

    >>> print(visible("a" + chr(27) + "[31m" + chr(0x202E) + "b\\nc"))
    a\\x1b[31m\\u202eb\\nc
    """
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if char not in keep and unicodedata.category(char) in INVISIBLE else char
        for char in text
    )


def counted(n: int, one: str, several: str = "") -> str:
    """Return a count with its noun. ``several`` is the plural, if it is not the singular with an s.

    >>> counted(1, "pull"), counted(2_000, "pull"), counted(3, "policy", "policies")
    ('1 pull', '2,000 pulls', '3 policies')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def joined(parts: Sequence[str]) -> str:
    """Return the parts with commas and a final "and".

    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return the first ``most`` names and the number of the others.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return joined(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most:,} more"


def number(value: float) -> str:
    """Format a measured number: as an integer from 100 to 1e15, otherwise with three significant digits.

    >>> number(1234.5), number(0.01234), number(math.inf), number(math.nan)
    ('1,234', '0.0123', '∞', '–')
    """
    if not math.isfinite(value):
        return "∞" if value == math.inf else "–"
    return f"{value:,.0f}" if 100.0 <= abs(value) < 1e15 else f"{value:.3g}"


def compact(value: float, digits: int = 4) -> str:
    """Format a reward with a few significant digits, without an exponent up to 1e7.

    >>> compact(12345.6), compact(0.0123456), compact(1e9), compact(-math.inf), compact(math.nan)
    ('12,346', '0.01235', '1e+09', '-∞', '–')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0.0 else "-∞"
    return f"{value:,.0f}" if 10.0**digits <= abs(value) < 1e7 else f"{value:.{digits}g}"


def percent(share: float) -> str:
    """Format a share in percent: as an integer from 10 % on, otherwise with two significant digits.

    >>> percent(12.3456), percent(0.01234), percent(math.nan)
    ('1,235 %', '1.2 %', '–')
    """
    if math.isnan(share):
        return "–"
    return f"{100.0 * share:,.0f} %" if abs(share) >= 0.1 else f"{100.0 * share:.2g} %"


def share(value: float) -> str:
    """Format a share in percent: as an integer from 10 % on, otherwise with one decimal, so that columns line up.

    >>> share(0.123), share(0.02), share(math.nan)
    ('12 %', '2.0 %', '–')
    """
    return "–" if math.isnan(value) else f"{100.0 * value:.{0 if value >= 0.1 else 1}f} %"


def rounded(value: float, digits: int = 4) -> float | int | None:
    """Round to a few significant digits. Return an int if the rounded value is an integer, and None if it is not finite."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
