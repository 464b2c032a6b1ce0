"""The figure and the table of a live bandit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robandit.diagnostics.diagnosis import KeptRewards
from robandit.diagnostics.plot import Row, estimates_figure, short
from robandit.diagnostics.study import Mean, mean_of
from robandit.diagnostics.words import words
from robandit.notebook import block, paragraph, table
from robandit.objectives import ObjectiveValue
from robandit.wording import compact, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 30  # arms in a figure


def bandit_figure(
    kept: Sequence[KeptRewards],
    estimates: Sequence[Mapping[str, Any]],
    title: str,
    minimize: bool,
    values: Sequence[ObjectiveValue] = (),
) -> Figure:
    """Return the figure of `Bandit.plot`: the arms with the most rewards first. ``values`` are of another objective."""
    rows = []
    order = sorted(range(len(kept)), key=lambda i: -kept[i].received)[:MOST]
    for i in order:
        arm, estimate = kept[i], estimates[i]
        name = f"{short(arm.arm)} ({arm.received:,}{'' if arm.state == 'active' else f', {arm.state}'})"
        plain = float(arm.sample.mean()) if len(arm.sample) and not values else math.nan
        mean = Mean.of(values[i]) if values else mean_of(arm, minimize=minimize)
        rows.append(Row(name, mean, plain, estimate.get("index", math.nan)))
    few = f", the {MOST} arms with the most {words(minimize).many} of {len(kept):,}" if len(kept) > MOST else ""
    return estimates_figure(rows, f"{words(minimize).one} (in brackets: their number)", f"{title}{few}")


def bandit_html(summary: str, estimates: Sequence[Mapping[str, Any]], minimize: bool) -> str:
    """Return the table of a `Bandit` in a notebook: its estimates."""
    head = list(estimates[0])
    rows = [[_cell(value) for value in row.values()] for row in estimates]
    sign = ", minimised" if minimize else ""
    pulls = sum(row["pulls"] for row in estimates)
    return block(
        paragraph(f"{counted(pulls, words(minimize).one)}{sign}.", strong=f"{summary}:"), table(head, rows, text=2)
    )


def _cell(value: Any) -> str:
    return compact(value) if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
