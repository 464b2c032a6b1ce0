"""Numbers and short phrases as people read them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robandit.experiments.plan import Unit

__all__ = ["compact", "last_line", "number", "percent", "replications", "rounded"]


def number(value: float) -> str:
    """Format a measurement: without decimals from 100 to 1e15, otherwise with three digits.

    >>> number(1234.5), number(0.01234), number(math.inf), number(math.nan)
    ('1,234', '0.0123', '∞', '–')
    """
    if not math.isfinite(value):
        return "∞" if value == math.inf else "–"
    return f"{value:,.0f}" if 100.0 <= abs(value) < 1e15 else f"{value:.3g}"


def compact(value: float, digits: int = 4) -> str:
    """Format a reward with a few digits; large ones up to 1e7 without an exponent.

    >>> compact(12345.6), compact(0.0123456), compact(1e9), compact(-math.inf), compact(math.nan)
    ('12,346', '0.01235', '1e+09', '-∞', '–')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0.0 else "-∞"
    return f"{value:,.0f}" if 10.0**digits <= abs(value) < 1e7 else f"{value:.{digits}g}"


def percent(share: float) -> str:
    """Format a share of 1: without decimals from 10 % on, otherwise with two digits.

    >>> percent(12.3456), percent(0.01234), percent(math.nan)
    ('1,235 %', '1.2 %', '–')
    """
    if math.isnan(share):
        return "–"
    return f"{100.0 * share:,.0f} %" if abs(share) >= 0.1 else f"{100.0 * share:.2g} %"


def rounded(value: float, digits: int = 4) -> float | int | None:
    """Round to a few significant digits, for JSON: integers lose their point, and what is not finite becomes None."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def replications(unit: Unit) -> str:
    """Name the replications of a unit."""
    last = unit.first + unit.count - 1
    return f"replication {unit.first}" if unit.count == 1 else f"replications {unit.first} to {last}"


def last_line(traceback: str) -> str:
    """Return the last line of a traceback, which names the error."""
    return (traceback.strip().splitlines() or ["no traceback"])[-1]
