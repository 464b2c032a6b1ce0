"""Format counts, lists, numbers and names for sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from robandit_client.wording import counted as counted
from robandit_client.wording import joined as joined
from robandit_client.wording import visible as visible


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
