"""Leaderboards and remarks on a comparison, in the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from robandit.cli.terminal.tables import Board
from robandit.experiments.statistics import Findings, Standing
from robandit.report.page import failure_text
from robandit.wording import counted, number, share


def print_boards(boards: Sequence[Board]) -> None:
    """Print tables on standard output."""
    from rich.console import Console

    for board in boards:
        Console().print(board)
    sys.stdout.flush()  # a reader of a pipe sees each table at once


def leaderboards(findings: Findings) -> list[Board]:
    """Return one leaderboard per problem and, if any policy is ranked over several problems, the overall ranking."""
    boards = [leaderboard(standing) for standing in findings.standings]
    return [*boards, ranks(findings)] if findings.ranked else boards


def ranks(findings: Findings) -> Board:
    """Return the policies by their mean rank over all problems."""
    plan, ranked = findings.results.plan, findings.ranked
    problems = f"{len(plan.problems)} problems"
    note = "Rank 1 is the lowest mean regret on a problem. First: the number of problems with rank 1. "
    note += "Of random: regret divided by the regret of choosing arms at random (geometric mean)."
    if findings.unranked:
        note += f" Not ranked: {', '.join(row['policy'] for row in findings.unranked)}."
    return Board(
        title=f"mean rank over {problems}, {counted(plan.replications, 'replication')} each",
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
    """Return one line per note, skipped or unranked policy, and failed unit. The verdict counts missing replications."""
    plan = findings.results.plan
    lines = list(plan.notes)
    for label in dict.fromkeys(each.label for each in plan.left_out):
        reasons = {plan.called(each.played): each.reason for each in plan.left_out if each.label == label}
        first, reason = next(iter(reasons.items()))
        joint = ":" if len(set(reasons.values())) == 1 else f"; on {first} because"
        lines.append(f"{label} is skipped on {', '.join(reasons)}{joint} {reason}")
    left_out = {each.label for each in plan.left_out}  # these already have a line
    unranked = [row for row in findings.unranked if findings.ranked and row["policy"] not in left_out]
    lines += [f"{row['policy']} is not ranked: {row['reason']}" for row in unranked]
    return lines + [": ".join(failure_text(plan, failure)) for failure in findings.results.failures]


def leaderboard(standing: Standing) -> Board:
    """Return the table of final regret per policy on one problem, with the lowest mean first; on a record, also of costs."""
    if standing.played.reference is not None:
        return _replayed(standing)
    plan, played, rows = standing.results.plan, standing.played, standing.rows
    planned = plan.replications
    title = f"{played.name}: regret after {counted(played.horizon, 'pull')}, {counted(planned, 'replication')}"
    uniform = number(rows[0]["uniform"]) if rows else "–"
    notes = [f"Of random: mean regret divided by the regret of choosing arms at random ({uniform}).", *_marks(standing)]
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
            **_costs_of_playing(rows),
        },
        words=("policy", "must know"),
        spare=("95 % interval", "ns/pull", "must know", "of random"),
    )


def _replayed(standing: Standing) -> Board:
    """Return the table of a replayed record: the total of each policy, its advantage over the record, and its regret."""
    plan, played, rows = standing.results.plan, standing.played, standing.rows
    minimize = played.problem.minimize
    cost, saves = ("cost", "saves") if minimize else ("reward", "gains")
    name, total, regret = standing.reference
    before = [row for row in rows if row["mean"] <= regret]
    lines: list[dict[str, Any] | None] = [*before, None, *rows[len(before) :]]
    title = f"{played.name}: {cost} of {counted(played.horizon, 'pull')}, {counted(plan.replications, 'replication')}"
    notes = [
        f"{cost.capitalize()}: the mean total. {saves.capitalize()}: how much better than {name}; ~: not significant."
    ]

    def column(text: Callable[[dict[str, Any]], str], reference: str = "") -> list[str]:
        return [reference if row is None else text(row) for row in lines]

    return Board(
        title=f"{title}, seed {plan.seed}",
        note=" ".join([*notes, *_marks(standing)]),
        columns={
            "policy": column(lambda row: _name(row, plan.replications), name),
            cost: column(lambda row: number(row["total"]), number(total)),
            saves: column(_advantage, "–"),
            "95 % interval": column(lambda row: _interval(row["better_by_low"], row["better_by_high"], number)),
            "regret": column(lambda row: number(row["mean"]), number(regret)),
            "worst regret": column(lambda row: number(row["worst"])),
            **_costs_of_playing(lines),
        },
        words=("policy", "must know"),
        spare=("ns/pull", "must know", "of random", "worst regret"),
    )


def _advantage(row: dict[str, Any]) -> str:
    return f"{'~' if row['versus'] == 'not significant' else ''}{number(row['better_by'])}"


def _costs_of_playing(rows: Sequence[dict[str, Any] | None]) -> dict[str, list[str]]:
    """Return the columns of relative regret, knowledge and speed; they are empty for a row that is None."""
    return {
        "of random": ["" if row is None else share(row["share_of_uniform"]) for row in rows],
        "must know": ["" if row is None else row["knows"].replace("horizon", "T").replace(", ", ",") for row in rows],
        "ns/pull": ["" if row is None else _speed(row["ns_per_pull"]) for row in rows],
    }


def _speed(ns_per_pull: float) -> str:
    return "–" if math.isnan(ns_per_pull) else f"{ns_per_pull:,.0f}"


def _marks(standing: Standing) -> list[str]:
    """Return the explanations of the marks in a table."""
    rows, planned = standing.rows, standing.results.plan.replications
    notes = []
    if any(row["assumption_met"] is False for row in rows):
        notes.append("* marks policies whose assumption fails on this problem.")
    if any(row["replications"] < planned for row in rows):
        notes.append("(n) means that only n replications are done.")
    if any("horizon" in row["knows"] for row in rows):
        notes.append("T is the horizon.")
    return notes


def _name(row: dict[str, Any], planned: int) -> str:
    few = f" ({row['replications']})" if row["replications"] < planned else ""
    return f"{row['policy']}{few}{' *' if row['assumption_met'] is False else ''}"


def _interval(low: float, high: float, form: Any) -> str:
    return "–" if math.isnan(low) else f"{form(low)} to {form(high)}"
