"""The figure and the table of a simulation's result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robandit.drawing import LINES, NOTEBOOK, Curve, draw_regret, folded, laid_out, new_figure, settings
from robandit.notebook import block, paragraph, table
from robandit.wording import counted, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from robandit.simulate.result import Result


def regret_figure(result: Result) -> Figure:
    """Return the figure of `Result.plot`."""
    order = np.argsort(result.regret[:, :, -1].mean(axis=1), kind="stable")[:LINES]
    few = f", the {LINES} lowest means of {len(result.policies)}" if len(result.policies) > LINES else ""
    lines = []
    for i in order.tolist():
        low, median, high = np.quantile(result.regret[i], [0.05, 0.5, 0.95], axis=0)
        lines.append(Curve(result.policies[i].name, result.checkpoints, median, low, high))
    with settings(NOTEBOOK):
        figure, axes = new_figure(7.0, 4.2)
        draw_regret(figure, axes, lines, folded(f"Regret, {_size(result)}{few}", 90))
        return laid_out(figure)


def result_html(result: Result) -> str:
    """Return the table of `Result` in a notebook: the final regret of each policy, the lowest mean first."""
    rows = [
        (row["policy"], *(number(row[name]) for name in ("mean", "mean_low", "mean_high", "median", "q95", "worst")))
        for row in result.summary().sort("mean", maintain_order=True).iter_rows(named=True)
    ]
    head = ("policy", "mean regret", "95 % interval from", "to", "median", "95 % quantile", "worst")
    uniform = number(result.problem.uniform_regret(result.horizon))
    note = f"{_size(result)}; choosing arms at random loses {uniform}."
    return block(table(head, rows), paragraph(note))


def _size(result: Result) -> str:
    replications = counted(result.regret.shape[1], "replication")
    return f"{replications} of {counted(result.horizon, 'pull')}, {counted(result.problem.arms, 'arm')}, seed {result.seed}"
