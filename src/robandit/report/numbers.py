"""Numbers as people read them."""

from __future__ import annotations

import math

__all__ = ["number", "percent", "rounded"]


def number(value: float) -> str:
    """Something measured: whole from 100 on, else three digits; so also from 1e15 on.

    >>> number(1234.5), number(0.01234), number(math.inf), number(math.nan)
    ('1,234', '0.0123', '∞', '–')
    """
    if not math.isfinite(value):
        return "∞" if value == math.inf else "–"
    return f"{value:,.0f}" if 100.0 <= abs(value) < 1e15 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share of 1: whole from 10 % on, else two digits.

    >>> percent(12.3456), percent(0.01234), percent(math.nan)
    ('1,235 %', '1.2 %', '–')
    """
    if math.isnan(share):
        return "–"
    return f"{100.0 * share:,.0f} %" if abs(share) >= 0.1 else f"{100.0 * share:.2g} %"


def rounded(value: float, digits: int = 4) -> float | int | None:
    """A few significant digits; None where there is no number. Whole numbers lose their point."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
