"""Figures and tables of recorded rewards: the tails of a study, and estimates with their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from robandit.diagnostics.study import Mean, Study
from robandit.diagnostics.survival import survival
from robandit.diagnostics.words import words
from robandit.drawing import (
    COLOURS,
    DASHES,
    LINES,
    NOTEBOOK,
    empty_figure,
    laid_out,
    logarithmic,
    new_figure,
    plain_text,
    settings,
)
from robandit.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDE = 22  # characters of an arm's name in a figure


def tails_figure(study: Study) -> Figure:
    """Return the figure of `Study.plot`."""
    arms, many = study.arms[:LINES], words(study.minimize).many
    with settings(NOTEBOOK):
        figure = empty_figure(7.5, 3.3 + 0.2 * len(arms) / 3)
        for axes, side, sign in zip(figure.subplots(1, 2), ("below", "above"), (-1.0, 1.0), strict=True):
            for i, arm in enumerate(arms):
                x, share = survival(arm.record, arm.median, sign)
                axes.plot(x, share, color=COLOURS[i], linestyle=DASHES[i], label=short(arm.arm))
            logarithmic(axes)
            axes.set_xlabel(f"distance {side} the median")
            axes.set_ylabel(f"share of {many} at least that far {side}")
        figure.axes[1].set_title("a straight line is a heavy tail", fontsize="medium", loc="left")
        few = f"the first {len(arms)} of {counted(len(study.arms), 'arm')}" if len(study.arms) > len(arms) else None
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=3, handlelength=3.2, title=few, alignment="left")
        return laid_out(figure)


class Row(NamedTuple):
    """An arm of `estimates_figure`."""

    name: str
    mean: Mean
    """An estimate with limits; NaN if there are too few values."""
    plain: float
    """The sample mean, which is drawn if there is no estimate."""
    policy_index: float
    """The index of the policy; infinite or NaN if there is none."""


def estimates_figure(rows: Sequence[Row], noun: str, title: str) -> Figure:
    """Return a figure with one row per arm: the mean with its limits, and the index of the policy."""
    with settings(NOTEBOOK):
        figure, axes = new_figure(6.5, 1.3 + 0.3 * len(rows))
        numbers = (
            x for row in rows for x in (row.mean.value, row.mean.low, row.mean.high, row.plain, row.policy_index)
        )
        ends = [x for x in numbers if math.isfinite(x)]
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        margin = 0.05 * (high - low) or 1.0
        axes.set_xlim(low - margin, high + margin)
        for i, row in enumerate(rows):
            _draw_limits(axes, i, row.mean)
            if math.isnan(row.mean.value):
                hollow: dict[str, Any] = {"color": "white", "markeredgecolor": COLOURS[0]}
                axes.plot([row.plain], [i], "o", label="mean, too few values for limits", **hollow)
            else:
                axes.plot([row.mean.value], [i], "o", color=COLOURS[0], label=f"{row.mean.name}, 95 % limits")
            if math.isfinite(row.policy_index):
                axes.plot(
                    [row.policy_index],
                    [i],
                    "|",
                    color=COLOURS[1],
                    markersize=11,
                    markeredgewidth=2,
                    label="index of the policy",
                )
        axes.set_yticks(range(len(rows)), [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(noun)
        axes.set_title(title, fontsize="medium", loc="left")
        handles, labels = axes.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        figure.legend(once.values(), once.keys(), loc="outside lower left", ncols=3)
        return laid_out(figure)


def _draw_limits(axes: Axes, i: int, mean: Mean) -> None:
    """Draw the limits; an arrow at the edge is a limit that does not exist."""
    if not (math.isfinite(mean.low) or math.isfinite(mean.high)):
        return
    left, right = axes.get_xlim()
    ends = (mean.low if math.isfinite(mean.low) else left, mean.high if math.isfinite(mean.high) else right)
    axes.plot(ends, [i, i], color=COLOURS[0], linewidth=1.8)
    for limit, edge, arrow in ((mean.low, left, "<"), (mean.high, right, ">")):
        if not math.isfinite(limit):
            axes.plot([edge], [i], arrow, color=COLOURS[0], markersize=5, clip_on=False)


def short(arm: Any) -> str:
    """Return the name of an arm for a figure."""
    name = str(arm)
    return plain_text(name if len(name) <= WIDE else f"{name[: WIDE - 1]}…")
