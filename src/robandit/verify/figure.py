"""The data of a check's figure, without any plotting library; `robandit.report.verify_figures` draws it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from robandit.intervals import Interval

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Rows of numbers, and what their axes mean."""

    rows: Sequence[Row]
    x_title: str
    log_x: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; an infinite end of an interval is null."""
        data: dict[str, Any] = {"kind": type(self).__name__.lower()}
        for each in fields(self):
            value = getattr(self, each.name)
            data[each.name] = [_finite(row) for row in value] if each.name in ("rows", "limits") else value
        return data


@dataclass(frozen=True, kw_only=True)
class Curves(Figure):
    """Lines over a number: rows have x, y, series and, if known, low and high; ``limits``, drawn dashed, have x, y, series."""

    limits: Sequence[Row] = ()
    y_title: str
    log_x: bool = True
    log_y: bool = True


@dataclass(frozen=True, kw_only=True)
class Cases(Figure):
    """One line per case: rows have case; x, low and high if measured; limit if predicted; and series, which sets the colour."""

    log_x: bool = False


def row_of(interval: Interval, axis: str = "x", **labels: Any) -> Row:
    """Return the row of a measured number."""
    return {**labels, axis: interval.measured, "low": interval.low, "high": interval.high}


def _finite(row: Row) -> Row:
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
