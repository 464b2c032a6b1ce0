"""The coverage study as tables for the terminal, Markdown, CSV and a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robandit.files import write_atomically

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

__all__ = ["tables", "write_coverage"]

MARK = "†"
# Eight laws side by side on a terminal of 80 columns.
_SHORT = {"Pareto": "Par.", "negated": "neg.", "Student t": "t", "log-normal": "log- norm.", "Gaussian": "Gauss"}


def _cell(row: dict[str, Any], *, width: bool) -> str:
    if row["coverage"] is None:
        return "–"
    text = f"{100 * row['coverage']:.1f}" if width else f"{100 * row['coverage']:.0f}"
    if width:
        text += f" ({row['half_width']:.3g})"
    return text if row["assumption"] else text + MARK


def _grid(frame: pl.DataFrame, n: int, *, width: bool) -> tuple[list[str], list[list[str]]]:
    """The laws, and for each estimator its name, what it is told and a cell per law."""
    part = frame.filter(frame["n"] == n)
    laws = part["law"].unique(maintain_order=True).to_list()
    lines = []
    for name in part["estimator"].unique(maintain_order=True):
        cells = {row["law"]: row for row in part.filter(part["estimator"] == name).iter_rows(named=True)}
        told = next(iter(cells.values()))["told"]
        lines.append([name, told, *(_cell(cells[law], width=width) for law in laws)])
    return laws, lines


def _explained(delta: float) -> str:
    return (
        f"{MARK}: the assumption fails, so nothing is promised; –: no bounds (no variance, too few values, not installed). "
        f"Promised: at least {100 * (1 - delta):g} %; centred: measured, not proved for symmetric laws."
    )


def tables(frame: pl.DataFrame, delta: float) -> list[Table]:
    """Coverage in percent, a table per sample size."""
    from rich import box
    from rich.table import Table

    out = []
    for n in frame["n"].unique(maintain_order=True):
        laws, lines = _grid(frame, n, width=False)
        table = Table(
            title=f"coverage in %, n = {n:,}", caption=_explained(delta), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        table.add_column("estimator", no_wrap=True)
        for name in laws:
            law = name
            for long, short in _SHORT.items():
                law = law.replace(long, short)
            table.add_column(law, justify="right", max_width=6)
        for line in lines:
            table.add_row(line[0], *line[2:])
        out.append(table)
    return out


def write_coverage(frame: pl.DataFrame, folder: Path, *, delta: float, trials: int, command: str) -> None:
    """Write coverage.md, coverage.svg and coverage.csv into a folder."""
    parts = [
        "# Coverage and width of the estimators",
        f"Made by `{command}`. Each cell: how often, in % of {trials:,} samples, the interval held the true mean, and in "
        f"brackets its median half-width (one-sided: upper bound minus mean; negative where it fails). {_explained(delta)}",
        "![Coverage of each estimator on each law](coverage.svg)",
    ]
    for n in frame["n"].unique(maintain_order=True):
        laws, lines = _grid(frame, n, width=True)
        parts.append(f"## n = {n:,}")
        head = f"| estimator | told | {' | '.join(laws)} |\n|---|---|{'---:|' * len(laws)}"
        parts.append(head + "".join(f"\n| {' | '.join(line)} |" for line in lines))
    text = "\n\n".join(parts) + "\n"
    write_atomically(folder / "coverage.md", lambda file: file.write(text.encode()))
    figure = _figure(frame)
    write_atomically(folder / "coverage.svg", lambda file: file.write(figure.encode()))
    csv = frame.write_csv()
    write_atomically(folder / "coverage.csv", lambda file: file.write(csv.encode()))


def _figure(frame: pl.DataFrame) -> str:
    import vl_convert

    values = [
        {"law": r["law"], "n": f"n = {r['n']:,}", "estimator": r["estimator"], "percent": 100 * r["coverage"]}
        | {"label": _cell(r, width=False)}
        for r in frame.iter_rows(named=True)
        if r["coverage"] is not None
    ]
    axes = {
        "y": {
            "field": "estimator",
            "type": "nominal",
            "sort": frame["estimator"].unique(maintain_order=True).to_list(),
            "title": None,
            "axis": {"labelLimit": 220},
        },
        "x": {
            "field": "law",
            "type": "nominal",
            "sort": frame["law"].unique(maintain_order=True).to_list(),
            "title": None,
            "axis": {"labelAngle": -40, "labelLimit": 220},
        },
    }
    colour = {
        "field": "percent",
        "type": "quantitative",
        "scale": {"domain": [0, 50, 100], "range": ["#f0803c", "#fdd9b5", "#ffffff"]},  # black text reads on all
        "title": "coverage, %",
    }
    spec = {
        "data": {"values": values},
        "facet": {
            "row": {
                "field": "n",
                "title": None,
                "sort": [f"n = {n:,}" for n in frame["n"].unique(maintain_order=True)],
            }
        },
        "spec": {
            "width": 420,
            "layer": [
                {"mark": "rect", "encoding": axes | {"color": colour}},
                {"mark": {"type": "text", "fontSize": 9}, "encoding": axes | {"text": {"field": "label"}}},
            ],
        },
        "background": "white",
    }
    return vl_convert.vegalite_to_svg(json.dumps(spec))
