"""Leaderboards in the terminal, as wide as it is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from robandit.experiments.statistics import Findings, Standing
from robandit.wording import counted, number, share

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

__all__ = ["Board", "leaderboard", "leaderboards", "ranks", "remarks"]


@dataclass(frozen=True)
class Board:
    """A table that leaves out columns where the terminal is too narrow, and says which."""

    title: str
    note: str
    columns: dict[str, list[str]]
    words: tuple[str, ...] = ("policy",)
    """Columns that are words, which may be folded."""
    spare: tuple[str, ...] = field(default=())
    """Columns that may be left out, the first one first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rich asks for this."""
        from rich.measure import Measurement

        left_out: list[str] = []

        def width(words: int) -> int:
            return Measurement.get(console, options.update(width=10_000), self._table(left_out, words)).maximum

        for name in (*self.spare, None):
            spare = options.max_width - width(NARROWEST)
            if spare >= 0 or name is None:
                break
            left_out.append(name)
        words = max(NARROWEST, min(WIDEST, NARROWEST + spare))
        while words > NARROWEST and width(words) > options.max_width:  # two columns of words have become wider
            words -= 1
        yield self._table(left_out, words)
        yield ""

    def _table(self, left_out: list[str], widest: int) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        note = self.note + (f" Left out, for want of room: {', '.join(left_out)}." if left_out else "")
        table = Table(
            title=Text(self.title),
            title_justify="left",
            caption=Text(note),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        shown = {name: cells for name, cells in self.columns.items() if name not in left_out}
        for name, cells in shown.items():
            head = name.replace(" ", "\n").replace("95\n%", "95 %")
            if name in self.words:
                table.add_column(head, overflow="fold", max_width=widest)
                shown[name] = [folded(cell, widest) for cell in cells]
            else:
                table.add_column(head, justify="right", no_wrap=True)
        for row in zip(*shown.values(), strict=True):
            table.add_row(*(Text(cell) for cell in row))  # a name may have brackets, which are markup otherwise
        return table


NARROWEST, WIDEST = 14, 26  # of a column of words; longer ones are folded


def folded(name: str, width: int) -> str:
    """A name in lines of ``width`` letters, broken before "(" and after spaces and commas; if need be after "=", "_" and "-"."""
    parts = re.split(r"(?=\()|(?<=[ ,])", name)
    lines = [""]
    for part in (each for long in parts for each in (re.split(r"(?<=[=_-])", long) if len(long) > width else [long])):
        if len((lines[-1] + part).rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def leaderboards(findings: Findings) -> list[Board]:
    """A leaderboard for each problem and, if there are several and somebody is ranked, the ranking over all of them."""
    boards = [leaderboard(standing) for standing in findings.standings]
    return [*boards, ranks(findings)] if findings.ranked else boards


def ranks(findings: Findings) -> Board:
    """Policies by their mean rank over all problems."""
    results, ranked = findings.results, findings.ranked
    others = [row["policy"] for row in findings.unranked]
    note = (
        f"Rank 1: the lowest mean regret. First: of {len(results.plan.problems)} problems; of random: geometric mean."
    )
    if others:
        note += f" Not ranked: {', '.join(others)}."
    return Board(
        title=f"mean rank over {len(results.plan.problems)} problems, {counted(results.plan.replications, 'replication')} each",
        note=note,
        columns={
            "policy": [row["policy"] for row in ranked],
            "mean rank": [f"{row['mean_rank']:.2f}" for row in ranked],
            "95 % interval": [_interval(row["rank_low"], row["rank_high"], "{:.2f}".format) for row in ranked],
            "first": [str(row["wins"]) for row in ranked],
            "of random": [share(row["share_of_uniform"]) for row in ranked],
            "against first": ["–" if row["verdict"] == "first" else row["verdict"] for row in ranked],
        },
        spare=("95 % interval", "of random"),
    )


def remarks(findings: Findings) -> list[str]:
    """What is not in the tables, a line each: the plan's notes, policies left out, not ranked (if others are), units that failed.

    How many replications are still to come is in the verdict.
    """
    plan = findings.results.plan
    lines = list(plan.notes)
    for label in dict.fromkeys(each.label for each in plan.left_out):
        why = {plan.called(each.played): each.reason for each in plan.left_out if each.label == label}
        first = next(iter(why.values()))
        joint = ":" if len(set(why.values())) == 1 else "; of the first because"
        lines.append(f"{label} is left out of {', '.join(why)}{joint} {first}")
    left_out = {each.label for each in plan.left_out}  # which have a line already
    lines += [
        f"{row['policy']} is not ranked: {row['reason']}"
        for row in (findings.unranked if findings.ranked else ())
        if row["policy"] not in left_out
    ]
    for failure in findings.results.failures:
        unit = failure.unit
        last = unit.first + unit.count - 1
        which = f"replication {unit.first}" if unit.count == 1 else f"replications {unit.first} to {last}"
        reason = (failure.traceback.strip().splitlines() or ["no traceback"])[-1]
        where = plan.called(unit.cell.played)
        lines.append(f"{unit.cell.label} failed on {where}, {which}, {counted(failure.tries, 'time')}: {reason}")
    return lines


def leaderboard(standing: Standing) -> Board:
    """Final regret of each policy on one problem, the lowest mean first."""
    plan, played, rows = standing.results.plan, standing.played, standing.rows
    planned = plan.replications
    title = f"{played.name}: regret after {counted(played.horizon, 'pull')}, {counted(planned, 'replication')}"
    notes = [
        f"Of random: in per cent of the regret of choosing arms at random, {number(rows[0]['uniform']) if rows else '–'}."
    ]
    if any(row["assumption_met"] is False for row in rows):
        notes.append("* What its bound assumes fails here.")
    if any("horizon" in row["knows"] for row in rows):
        notes.append("T: the horizon.")
    if any(row["replications"] < planned for row in rows):
        notes.append("(n): so many replications only.")
    return Board(
        title=f"{title}, seed {plan.seed}",
        note=" ".join(notes),
        columns={
            "policy": [_name(row, planned) for row in rows],
            "mean": [number(row["mean"]) for row in rows],
            "95 % interval": [_interval(row["mean_low"], row["mean_high"], number) for row in rows],
            "median": [number(row["median"]) for row in rows],
            "95 % quantile": [number(row["q95"]) for row in rows],
            "worst": [number(row["worst"]) for row in rows],
            "of random": [share(row["share_of_uniform"]) for row in rows],
            "must know": [row["knows"].replace("horizon", "T").replace(", ", ",") for row in rows],
            "ns/pull": ["–" if math.isnan(row["ns_per_pull"]) else f"{row['ns_per_pull']:,.0f}" for row in rows],
        },
        words=("policy", "must know"),
        spare=("95 % interval", "ns/pull", "must know", "of random"),
    )


def _name(row: dict[str, Any], planned: int) -> str:
    few = f" ({row['replications']})" if row["replications"] < planned else ""
    return f"{row['policy']}{few}{' *' if row['assumption_met'] is False else ''}"


def _interval(low: float, high: float, written: Any) -> str:
    return "–" if math.isnan(low) else f"{written(low)} to {written(high)}"
