"""Write the coverage study as Markdown, CSV and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.drawing import rendered, settings
from robandit.files import write_atomically

if TYPE_CHECKING:
    import polars as pl

MARK = "†"
COLOURS = ("#f0803c", "#fdd9b5", "#ffffff")  # for 0, 50 and 100 %; black text is readable on each


def legend(delta: float) -> str:
    """Return the explanation of the marks in a table."""
    return (
        f"{MARK}: the assumption fails, so there is no guarantee. –: no bounds (no variance, too few values, or not installed). "
        f"Other cells: at least {100 * (1 - delta):g} % is guaranteed (measured, not proved, for centred estimators on symmetric "
        "laws), but Student's, SciPy's and statsmodels' intervals are only asymptotic."
    )


def grid(frame: pl.DataFrame, n: int, *, width: bool) -> tuple[list[str], list[list[str]]]:
    """Return the laws, and one row per estimator: its name, the parameters it must know, and one cell per law."""
    part = frame.filter(frame["n"] == n)
    laws = part["law"].unique(maintain_order=True).to_list()
    lines = []
    for name in part["estimator"].unique(maintain_order=True):
        cells = {row["law"]: row for row in part.filter(part["estimator"] == name).iter_rows(named=True)}
        knowledge = next(iter(cells.values()))["told"]
        lines.append([name, knowledge, *(_cell(cells[law], width=width) for law in laws)])
    return laws, lines


def write_coverage(frame: pl.DataFrame, folder: Path, *, delta: float, trials: int, command: str) -> list[Path]:
    """Write coverage.md, coverage.svg and coverage.csv into a folder, and return their paths."""
    n: int = max(frame["n"])
    laws, lines = grid(frame, n, width=True)
    head = f"| estimator | must know | {' | '.join(laws)} |\n|---|---|{'---:|' * len(laws)}"
    parts = [
        "# Coverage and width of the estimators",
        f"A cell has the share of {trials:,} samples of n = {n:,} values, in %, whose interval contained the true mean, and the "
        "median half-width in parentheses. For one-sided bounds it is the bound minus the mean (< 0 on failure).",
        head + "".join(f"\n| {' | '.join(line)} |" for line in lines),
        f"{legend(delta)} The figure and coverage.csv have all sizes. Written by `{command}`.",
        "![Coverage of each estimator on each law](coverage.svg)",
    ]
    contents = {
        "coverage.md": ("\n\n".join(parts) + "\n").encode(),
        "coverage.svg": draw_coverage(frame),
        "coverage.csv": frame.write_csv().encode(),
    }
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


@settings()
def draw_coverage(frame: pl.DataFrame) -> bytes:
    """Return the figure as SVG: one panel per sample size, one row per estimator, one column per law."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    sizes = frame["n"].unique(maintain_order=True).to_list()
    laws, estimators = (frame[name].unique(maintain_order=True).to_list() for name in ("law", "estimator"))
    figure = Figure(figsize=(6.5, 1.1 + (0.3 + 0.165 * len(estimators)) * len(sizes)), layout="constrained")
    panels = figure.subplots(len(sizes), 1, sharex=True, squeeze=False)[:, 0]
    colours = LinearSegmentedColormap.from_list("coverage", COLOURS)
    for axes, n in zip(panels, sizes, strict=True):
        shares = np.full((len(estimators), len(laws)), np.nan)
        for row in frame.filter(frame["n"] == n).iter_rows(named=True):
            if row["coverage"] is not None:
                x, y = laws.index(row["law"]), estimators.index(row["estimator"])
                shares[y, x] = 100.0 * row["coverage"]
                axes.text(x + 0.5, y + 0.5, _cell(row, width=False), ha="center", va="center_baseline", fontsize=6.5)
        known = np.ma.masked_invalid(shares)
        mesh = axes.pcolormesh(known, cmap=colours, vmin=0, vmax=100, edgecolors="white", linewidth=0.5)
        axes.set_yticks(np.arange(len(estimators)) + 0.5, estimators)
        axes.invert_yaxis()
        axes.set_xticks(np.arange(len(laws)) + 0.5, laws, rotation=40, ha="right", rotation_mode="anchor")
        axes.tick_params(length=0)
        axes.set_title(f"n = {n:,}", fontsize=8, loc="left")
    figure.colorbar(mesh, ax=panels, label="coverage, %", shrink=0.3, anchor=(0.0, 1.0), aspect=12)
    return rendered(figure, "svg")


def _cell(row: dict[str, Any], *, width: bool) -> str:
    if row["coverage"] is None:
        return "–"
    share = 100 * row["coverage"]
    text = f"{share:.1f} ({row['half_width']:.3g})" if width else f"{share:.0f}"
    return text if row["assumption"] else text + MARK
