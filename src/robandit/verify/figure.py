"""The data of a check's figure, which `robandit.report.verify_figures` draws; no plotting library is needed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from robandit.intervals import Interval

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Rows of numbers, and the titles of their axes."""

    rows: Sequence[Row]
    x_title: str
    log_x: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, with null for infinite ends of intervals."""
        data: dict[str, Any] = {"kind": type(self).__name__.lower()}
        for each in fields(self):
            value = getattr(self, each.name)
            data[each.name] = [_finite(row) for row in value] if each.name in ("rows", "limits") else value
        return data


@dataclass(frozen=True, kw_only=True)
class Curves(Figure):
    """Lines over a number. Rows have x, y, series and, if known, low and high. ``limits`` (dashed) have x, y and series."""

    limits: Sequence[Row] = ()
    y_title: str
    log_x: bool = True
    log_y: bool = True


@dataclass(frozen=True, kw_only=True)
class Cases(Figure):
    """One line per case. Rows have case and series (the colour); x, low and high if measured; and limit if predicted."""

    log_x: bool = False


def row_of(interval: Interval, axis: str = "x", **labels: Any) -> Row:
    """Return the row of a measured number."""
    return {**labels, axis: interval.measured, "low": interval.low, "high": interval.high}


def _finite(row: Row) -> Row:
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
