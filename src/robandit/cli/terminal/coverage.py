"""The coverage study, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robandit.report.coverage import grid, legend

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

# With these, eight laws fit into 80 columns.
ABBREVIATIONS = {"Pareto": "Par.", "negated": "neg.", "Student t": "t", "log-normal": "log- norm.", "Gaussian": "Gauss"}


def tables(frame: pl.DataFrame, delta: float) -> list[Table]:
    """Return the coverage in percent, one table per sample size."""
    from rich import box
    from rich.table import Table

    result = []
    for n in frame["n"].unique(maintain_order=True):
        laws, lines = grid(frame, n, width=False)
        table = Table(caption=legend(delta), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.title = f"coverage in %, n = {n:,}"
        table.add_column("estimator", no_wrap=True)
        for law in laws:
            for long, short in ABBREVIATIONS.items():
                law = law.replace(long, short)
            table.add_column(law, justify="right", max_width=6)
        for estimator, _, *cells in lines:
            table.add_row(estimator, *cells)
        result.append(table)
    return result
