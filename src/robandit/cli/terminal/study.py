"""The tables of `robandit diagnose`, for a terminal of 80 columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robandit.cli.terminal.guard import shown
from robandit.cli.terminal.tables import new_table
from robandit.diagnostics.assumption import Nonpositivity
from robandit.diagnostics.study import ArmStudy, Study
from robandit.diagnostics.tails import TailIndex
from robandit.diagnostics.words import Words, words
from robandit.report.pieces import named
from robandit.report.study_text import advice_lines, arm_name, limits, sampling_lines, share
from robandit.wording import compact, counted

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

LISTED = 30  # arms in the tables
VARIANCE = {"finite": "likely finite", "infinite": "likely infinite", "undecided": "may be infinite"}


def study_table(study: Study, *, remarks: Sequence[str] = ()) -> Group:
    """Return tables of means, tails and skewness, and the conclusions; ``remarks`` are notes about the file."""
    from rich.console import Group
    from rich.padding import Padding

    largest = sorted(study.arms, key=lambda arm: -arm.n)[:LISTED]
    arms = [arm for arm in study.arms if arm in largest]
    recorded = study.recorded
    kind = words(study.minimize)
    sign = ", minimised" * study.minimize
    size = f"{counted(recorded.rows, kind.one)} of {counted(len(study.arms), 'arm')}{sign}"
    parts: list[Any] = [shown(f"{named(recorded.source, 200)}: {size}")]
    if recorded.bad.count:
        parts.append(shown(str(recorded.bad), "yellow"))
    parts += [_note(line) for line in (*study.first_lines, *remarks)]
    if len(arms) < len(study.arms):
        few = (
            f"The tables show the {len(arms)} arms with the most {kind.many}, of {len(study.arms)}. The page shows all."
        )
        parts.append(shown(few))
    for make in (_means, _robust_means, _tails, _skewness):
        parts += ["", make(arms, kind)]
    parts += ["", *(shown(line, "dim") for line in sampling_lines(study)), shown(study.headline, "bold"), ""]
    parts.append(shown(f"Use {study.advice.policy.name} ({study.advice.case}):", "bold"))
    parts += [Padding(shown(f"- {line}"), (0, 0, 0, 2)) for line in advice_lines(study)]
    style = "bold" if study.verdict.settled else "bold yellow"
    verdict = shown(str(study.verdict))
    head, colon, rest = verdict.plain.partition(": ")
    if rest and len(study.arms) > 1:
        verdict.stylize(style, 0, len(head + colon))
    return Group(*parts, "", verdict)


def _note(line: str) -> Text:
    """Return a line in yellow. A line with an option to copy is not broken, because a break may be inside of a name."""
    note = shown(line, "yellow")
    if "--where " in line:
        note.no_wrap, note.overflow = True, "ignore"
    return note


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str, align: Any = "right") -> Table:
    """Return a table with names in the first column; ``align`` applies to the other columns."""
    table = new_table(title, note, title_style="bold", note_style="dim", edge=False)
    table.add_column(head[0], overflow="fold", min_width=14, max_width=22)
    for name in head[1:]:
        table.add_column(name, justify=align, no_wrap=True)
    for row in rows:
        table.add_row(*map(shown, row))
    return table


def _means(arms: Sequence[ArmStudy], kind: Words) -> Table:
    rows = []
    for arm in arms:
        mean, median = arm.means[0], arm.means[3]
        counts = (f"{arm.n:,}", share(arm.zeros))
        rows.append([arm_name(arm.arm, 40), *counts, compact(mean.value), limits(mean), compact(median.value)])
    head = ("arm", kind.many, "zeros", "mean", "95 % limits", "median")
    note = "If a tail is heavy, the limits of the mean are wider, because larger values may not have been observed yet."
    return _table("Means", head, rows, note)


def _robust_means(arms: Sequence[ArmStudy], kind: Words) -> Table:
    rows = []
    for arm in arms:
        trimmed, blocks, top = arm.means[1], arm.means[2], arm.concentration
        shares = (share(each) for each in (top.first, top.ten, top.percent))
        rows.append([arm_name(arm.arm, 40), compact(trimmed.value), limits(trimmed), compact(blocks.value), *shares])
    head = ("arm", "trimmed", "95 % limits", "median of\nmeans", "largest\n1", "\n10", "\n1 %")
    largest = f"Largest: the share of the largest in the sum of |{kind.one}|."
    note = f"Trimmed: AdaR-UCB's mean, without a limit on the skewed side. {largest}"
    return _table(f"Robust means, and the largest {kind.many}", head, rows, note)


def _tails(arms: Sequence[ArmStudy], kind: Words) -> Table:
    rows = []
    for arm in arms:
        for tail in (arm.left, arm.right):
            points = (_point(each) for each in (tail.hill, tail.moment))
            name = arm_name(arm.arm, 40) if tail is arm.left else ""
            rows.append([name, tail.side, _index(tail.stated), *points, VARIANCE.get(tail.variance, tail.variance)])
    head = ("arm", "", "index, 95 %", "Hill", "moment", "variance")
    note = (
        "The index has a 95 % interval that allows for bias; > means that the tail may be light. The variance is finite if the "
        "index is above 2. Light: no heavy tail is visible. Hill, moment: estimates for one k, without an interval; "
        "Hill's assumes a heavy tail."
    )
    return _table("Tail indices, left and right of the median", head, rows, note)


def _skewness(arms: Sequence[ArmStudy], kind: Words) -> Table:
    rows = [[arm_name(arm.arm, 40), _verdict(arm.about_zero), _verdict(arm.about_median)] for arm in arms]
    note = (
        f"Policies that trim {kind.many} assume it of the best arm: about 0 (AdaR-UCB), or about the median, that is, no "
        f"{kind.skewed} skewness (AdaR-UCB with a centre). AdaKL-UCB does not."
    )
    return _table(kind.assumption.capitalize(), ("arm", "about 0", "about the median"), rows, note, align="left")


def _index(index: TailIndex) -> str:
    """Format the index and its interval in a few characters."""
    if math.isnan(index.index):
        return "unknown"
    if math.isinf(index.high):
        return "light" if index.low >= 100.0 else f"> {index.low:.2g}"
    if index.low >= 100.0:
        return "> 100"
    value, low, high = (f"{end:.2f}" if end < 10.0 else f"{end:.3g}" for end in (index.index, index.low, index.high))
    return f"{value} {low}–{high}"


def _point(index: TailIndex) -> str:
    """Format the index alone."""
    if math.isnan(index.index):
        return "–"
    return "light" if math.isinf(index.index) else "> 100" if index.index >= 100.0 else f"{index.index:.3g}"


def _verdict(result: Nonpositivity) -> str:
    verdict = result.verdict.upper() if result.verdict == "contradicted" else result.verdict
    return verdict if math.isnan(result.statistic) else f"{verdict} (z {result.statistic:.3g})"
