"""Draw the figures of the checks as inline SVG. The same data give the same bytes.

The figures have no scripts, no style sheets and no style attributes, so a page with a strict Content-Security-Policy shows them.
Their ids are unique within the page.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from robandit.drawing import new_figure, plain_text, rendered, settings
from robandit.verify.figure import Curves, Figure, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WIDTH = 8.6  # inches
LABELS = 8  # the maximal number of labels of a logarithmic axis
COLOURS = (
    *("#4c78a8", "#f58518", "#e45756", "#1b9e8f", "#54a24b", "#b8860b", "#b279a2"),
    *("#d6708b", "#9d755d", "#6b6b6b", "#1f3b73", "#86bcf0", "#7a1f1f", "#2b5d34"),
)
MARKERS = "os^D"
DASHES = ((0, (6, 3)), (0, (2, 2)))  # line styles of limits that form a series
SETTINGS = {
    "font.size": 9,
    "axes.labelsize": "medium",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
}


def svg(figure: Figure, prefix: str) -> str:
    """Return a figure as SVG for an HTML page; ``prefix`` makes its ids unique there."""
    with settings(SETTINGS):
        canvas = _draw_curves(figure) if isinstance(figure, Curves) else _draw_cases(figure)
        return _inline(rendered(canvas, "svg", bbox_inches="tight", pad_inches=0.05), prefix)


def _draw_curves(figure: Curves) -> Canvas:
    canvas, axes = new_figure(WIDTH, 4.2)
    series = _series(figure.rows)
    for i, name in enumerate(series):
        rows = [row for row in figure.rows if row["series"] == name]
        colour = COLOURS[i % len(COLOURS)]
        marker = MARKERS[i % len(MARKERS)] if len(rows) <= 20 else ""
        axes.plot(*_columns(rows, "x", "y"), color=colour, marker=marker, label=plain_text(name))
        spread = [_drawable(row, "y", figure.log_y) for row in rows if "low" in row]
        if spread:
            x, low, high = _columns(spread, "x", "low", "high")
            axes.vlines(x, low, high, color=colour, linewidth=1.0)
    own = [name for name in _series(figure.limits) if name not in series]
    for name in _series(figure.limits):
        rows = [row for row in figure.limits if row["series"] == name]
        style: dict[str, Any] = {"color": "black", "linestyle": DASHES[0]}
        if name in own:
            style |= {"linestyle": DASHES[own.index(name) % 2], "label": plain_text(name)}
        else:  # the limit of a measured series
            style["color"] = COLOURS[series.index(name) % len(COLOURS)]
        axes.plot(*_columns(rows, "x", "y"), linewidth=1.1, **style)
    _scale(axes, "x", figure.log_x)
    _scale(axes, "y", figure.log_y)
    axes.set_xlabel(plain_text(figure.x_title))
    axes.set_ylabel(plain_text(figure.y_title))
    canvas.legend(loc="outside right upper")
    return canvas


def _draw_cases(figure: Figure) -> Canvas:
    cases = list(dict.fromkeys(row["case"] for row in figure.rows))
    series = _series(figure.rows)
    canvas, axes = new_figure(WIDTH, 0.9 + 0.24 * len(cases))
    for i, case in enumerate(cases):
        rows = [row for row in figure.rows if row["case"] == case]
        for j, row in enumerate(rows):
            y = i + 0.3 * (j - (len(rows) - 1) / 2.0)  # place the series of a case side by side
            colour = COLOURS[series.index(row["series"]) % len(COLOURS)] if series else COLOURS[0]
            if "x" in row:
                ends = _drawable(row, "x", figure.log_x)
                axes.plot([ends["low"], ends["high"]], [y, y], color=colour, linewidth=1.2)
                axes.plot([row["x"]], [y], "o", color=colour)
        limits = {row["limit"] for row in rows if "limit" in row}
        axes.vlines(sorted(limits), i - 0.36, i + 0.36, color="black", linewidth=1.6, zorder=1.5)
    for i, name in enumerate(series):
        axes.plot([], [], "o-", color=COLOURS[i % len(COLOURS)], label=plain_text(name))
    axes.set_yticks(range(len(cases)), [plain_text(case) for case in cases])
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    _scale(axes, "x", figure.log_x)
    axes.set_xlabel(plain_text(figure.x_title))
    if series:
        canvas.legend(loc="outside right upper")
    return canvas


def _series(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["series"] for row in rows if "series" in row))


def _columns(rows: Sequence[Row], *names: str) -> list[list[float]]:
    return [[row[name] for row in rows] for name in names]


def _drawable(row: Row, axis: str, log: bool) -> Row:
    """Return the row with ends that can be drawn. On a logarithmic axis, an interval down to 0 ends at a tenth of its number."""
    low, high = (end if math.isfinite(end) else row[axis] for end in (row["low"], row["high"]))
    return {**row, "low": 0.1 * row[axis] if log and low <= 0.0 else low, "high": high}


def _scale(axes: Axes, which: str, log: bool) -> None:
    """Set the scale of an axis. A logarithmic axis has one label per decade, or fewer if there are many decades."""
    from matplotlib.ticker import LogLocator, NullLocator

    if log:
        axes.set(**{f"{which}scale": "log"})
        axis = axes.xaxis if which == "x" else axes.yaxis
        low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
        decades = math.log10(high) - math.log10(low)
        axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.0 else (1.0, 2.0, 5.0), numticks=LABELS))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if 1.0 <= value < 1e7 else f"{value:g}")


def _inline(content: bytes, prefix: str) -> str:
    """Remove metadata and style sheets from Matplotlib's SVG, and replace styles by attributes."""
    root = ET.fromstring(content)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', content.decode()))
    for parent in root.iter():
        parent.tag = parent.tag.rpartition("}")[2]
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
        for key, value in list(parent.attrib.items()):
            del parent.attrib[key]
            name = key.rpartition("}")[2]
            if name == "style":
                parent.attrib.update(_attributes(value, prefix))
            elif name == "id" and value in used:
                parent.set(name, f"{prefix}-{value}")
            elif name == "href":
                parent.set(name, value.replace("#", f"#{prefix}-"))
            elif name not in ("id", "version", "type"):
                parent.set(name, _references(value, prefix))
    root.attrib |= {"stroke-linejoin": "round", "font-family": "sans-serif"}
    return ET.tostring(root, encoding="unicode")


def _attributes(style: str, prefix: str) -> dict[str, str]:
    """Return a style as presentation attributes. Of the font's shorthand, only the size is kept."""
    attributes = {}
    for name, _, value in (part.partition(":") for part in style.split(";") if part.strip()):
        if name.strip() == "font":
            size = re.search(r"[\d.]+px", value)
            attributes["font-size"] = size[0] if size else "9px"
        elif name.strip() != "font-family":
            attributes[name.strip()] = _references(value.strip(), prefix)
    return attributes


def _references(value: str, prefix: str) -> str:
    return value.replace("url(#", f"url(#{prefix}-")
