"""Figures of a comparison for a paper, as PDF and SVG. The same results give the same bytes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.drawing import (
    COLOURS,
    LINES,
    Curve,
    draw_regret,
    folded,
    legend_columns,
    new_figure,
    plain_text,
    rendered,
    settings,
)
from robandit.errors import FileError
from robandit.experiments.plan import Played
from robandit.experiments.results import Measured
from robandit.experiments.statistics import Findings, curves
from robandit.files import named, shown, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 3.4  # inches, the width of a column of a paper
TITLE = 52  # characters per line of the title
FOLDED = 20  # characters; longer names next to the axis take two lines


def write_figures(findings: Findings, folder: str | os.PathLike[str]) -> list[Path]:
    """Write two figures per problem, each as PDF and SVG, and return their paths.

    ``<problem>-curves`` shows the median regret over time with a band from the 5 % to the 95 % quantile, on logarithmic axes.
    ``<problem>-final`` shows the distribution of the final regret. Both show at most the eight policies with the lowest means, and
    the title says so if there are more. The folder is created if it does not exist.
    """
    target = named(folder, "folder", "the name of a folder")
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder {shown(target)} cannot be created: {error.strerror}; name another one") from error
    written = []
    with settings():
        for name, standing in zip(_names(findings.results.problems), findings.standings, strict=True):
            played, measured = standing.played, list(standing.measured.values())
            few = f", the {LINES} lowest means of {len(measured)}" if len(measured) > LINES else ""
            title = folded(f"{played.name}, T = {played.horizon:,}{few}", TITLE)
            for kind, draw in (("curves", _curves), ("final", _final)):
                figure = draw(measured[:LINES], title)
                for ending in ("pdf", "svg"):
                    path = target / f"{name}-{kind}.{ending}"
                    write_atomically(path, rendered(figure, ending))
                    written.append(path)
    return written


def _names(problems: tuple[Played, ...]) -> dict[str, Played]:
    """Return a different file name for each problem."""
    names: dict[str, Played] = {}
    for played in problems:
        several = sum(each.name == played.name for each in problems) > 1
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", played.name).strip("-.") or "problem"
        plain = plain[:80] + (f"-{played.horizon}" if several else "")
        name, number = plain, 2
        while name.lower() in (each.lower() for each in names):  # some file systems ignore case
            name, number = f"{plain}-{number}", number + 1
        names[name] = played
    return names


def _curves(measured: list[Measured], title: str) -> Figure:
    lines = []
    for m in measured:
        frame = curves(m)
        lines.append(Curve(m.cell.label, *(frame[name].to_numpy() for name in ("t", "median", "q05", "q95"))))
    rows = -(-len(lines) // legend_columns([line.label for line in lines]))
    figure, axes = new_figure(WIDTH, 2.3 + 0.14 * rows)
    draw_regret(figure, axes, lines, title)
    return figure


def _final(measured: list[Measured], title: str) -> Figure:
    figure, axes = new_figure(WIDTH, 1.2 + 0.27 * len(measured))
    for i, m in enumerate(measured):
        low, left, middle, right, high = np.quantile(m.final, [0.05, 0.25, 0.5, 0.75, 0.95])
        ink: dict[str, Any] = {"color": COLOURS[i]}
        below = np.full(len(m.final), i + 0.3)
        axes.plot(m.final, below, "|", markersize=3, markeredgewidth=0.5, alpha=0.6, label="a replication", **ink)
        axes.plot([low, high], [i, i], linewidth=0.9, label="5 to 95 %", **ink)
        axes.plot([left, right], [i, i], linewidth=4.0, solid_capstyle="butt", label="25 to 75 %", **ink)
        circle: dict[str, Any] = {"color": "white", "markeredgecolor": COLOURS[i], "markersize": 3.8}
        axes.plot([middle], [i], "o", markeredgewidth=0.9, label="median", **circle)
        axes.plot([m.final.mean()], [i - 0.26], "v", color="black", markersize=2.6, label="mean")
    uniform = measured[0].cell.played.uniform_regret
    axes.axvline(uniform, color="#555555", linewidth=0.8, linestyle=":", label="arms at random")
    values = np.concatenate([m.final for m in measured])
    if values.min() > 0.0 and max(values.max(), uniform) > 10.0 * values.min():
        axes.set_xscale("log")
    names = [plain_text(m.cell.label) for m in measured]
    folded = [name.replace("(", "\n(", 1) if len(name) > FOLDED else name for name in names]
    axes.set_yticks(range(len(measured)), folded)
    axes.invert_yaxis()
    axes.set_xlabel("regret")
    axes.set_title(title, fontsize=7, loc="left")
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(reversed(labels), reversed(handles), strict=True))  # the handles of the first policy
    order = ("a replication", "5 to 95 %", "25 to 75 %", "median", "mean", "arms at random")
    figure.legend([first[name] for name in order], order, loc="outside lower left", ncols=3, fontsize=6.5)
    return figure
