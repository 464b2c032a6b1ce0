"""The two kinds of figure that the checks draw, as Vega-Lite specifications with their data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["cases", "curves"]

Row = dict[str, Any]
WIDTH = 620
LIMIT = "black"
LABELS = {WIDTH: 8, WIDTH - 200: 5}  # on a logarithmic axis that is so long: small numbers are long words


def curves(
    rows: Sequence[Row],
    limits: Sequence[Row] = (),
    *,
    x_title: str,
    y_title: str,
    log_x: bool = True,
    log_y: bool = True,
) -> dict[str, Any]:
    """Lines over a number. ``rows`` have x, y, series and, if known, low and high; ``limits``, drawn dashed, have x, y, series."""
    every = [*rows, *limits]
    scales = {axis: {"type": "log"} if log else {"zero": False} for axis, log in (("x", log_x), ("y", log_y))}
    encoding: dict[str, Any] = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "scale": scales["x"],
            "title": x_title,
            "axis": _axis(log_x, every, "x"),
        },
        "y": {
            "field": "y",
            "type": "quantitative",
            "scale": scales["y"],
            "title": y_title,
            "axis": _axis(log_y, every, "y", "low", "high"),
        },
        "color": {"field": "series", "type": "nominal", "title": None, "legend": {"labelLimit": 300}},
    }
    if len({row["series"] for row in (*rows, *limits)}) > 10:  # the usual colours are ten
        encoding["color"]["scale"] = {"scheme": "tableau20"}
    layers: list[dict[str, Any]] = [
        {"data": {"values": list(rows)}, "mark": {"type": "line", "point": True}, "encoding": encoding}
    ]
    spread = [_fits(row, log_y) for row in rows if "low" in row]
    if spread:
        ends = {**encoding, "y": {**encoding["y"], "field": "low"}, "y2": {"field": "high"}}
        layers.append({"data": {"values": spread}, "mark": {"type": "rule"}, "encoding": ends})
    if limits:
        mark = {"type": "line", "strokeDash": [6, 4], "strokeWidth": 1.5}
        layers.append({"data": {"values": list(limits)}, "mark": mark, "encoding": encoding})
    return {"width": WIDTH, "height": 300, "layer": layers, "background": "white"}


def cases(rows: Sequence[Row], *, x_title: str, log_x: bool = False, series: bool = False) -> dict[str, Any]:
    """A line per case. ``rows`` have case, x, low, high, and limit where one is predicted.

    With ``series`` they also have a series, which is told by colour.
    """
    drawn = [_fits(row, log_x, "x") if "low" in row else row for row in rows]
    scale = {"type": "log"} if log_x else {"zero": False}
    y = {"field": "case", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}}
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": scale,
        "title": x_title,
        "axis": _axis(log_x, drawn, "x", "low", "high", "limit", width=WIDTH - 200),
    }
    colour: dict[str, Any] = (
        {"color": {"field": "series", "type": "nominal", "title": None, "legend": {"labelLimit": 300}}}
        if series
        else {}
    )
    layers: list[dict[str, Any]] = [
        {"mark": "rule", "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, **colour}},
        {"mark": {"type": "point", "filled": True, "size": 45}, "encoding": {"y": y, "x": x, **colour}},
    ]
    if any("limit" in row for row in rows):
        mark = {"type": "tick", "color": LIMIT, "thickness": 2}
        layers.append({"mark": mark, "encoding": {"y": y, "x": {**x, "field": "limit"}}})
    return {"data": {"values": drawn}, "width": WIDTH - 200, "layer": layers, "background": "white"}


def _fits(row: Row, log: bool, of: str = "y") -> Row:
    """On a logarithmic axis 0 is infinitely far: an interval down to it ends at a tenth of its number."""
    return {**row, "low": 0.1 * row[of]} if log and row["low"] <= 0.0 else row


def _axis(log: bool, rows: Sequence[Row], *fields: str, width: int = WIDTH) -> dict[str, Any]:
    """On a logarithmic axis: every decade, or every other one and so on, so that the labels do not run into each other."""
    if not log:
        return {}
    seen = [row[field] for row in rows for field in fields if row.get(field, 0.0) > 0.0]
    first, last = (math.floor(math.log10(min(seen))), math.ceil(math.log10(max(seen)))) if seen else (0, 1)
    step = math.ceil((last - first + 1) / LABELS[width])
    return {"format": "~g", "values": [10.0**j for j in range(first - first % step, last + 1, step)]}
