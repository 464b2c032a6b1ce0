"""Leaderboards and remarks on a comparison, in the terminal."""

from __future__ import annotations

import math
from typing import Any

from robandit.cli.terminal.tables import Board
from robandit.experiments.plan import Played
from robandit.experiments.results import Results
from robandit.experiments.statistics import ranking, summary
from robandit.experiments.words import counted
from robandit.report.numbers import last_line, number, replications

__all__ = ["leaderboard", "leaderboards", "ranks", "remarks"]


def leaderboard(results: Results, played: Played) -> Board:
    """Return the final regret of each policy on one problem, the lowest mean first."""
    return _board(results, played, _rows(results, played))


def leaderboards(results: Results) -> list[Board]:
    """Return a leaderboard for each problem and, if there are several and a policy is ranked, the overall ranking."""
    rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in summary(results).iter_rows(named=True):
        rows.setdefault((row["problem"], row["horizon"]), []).append(row)
    boards = [_board(results, played, rows[played.name, played.horizon]) for played in results.problems]
    if len(results.plan.problems) > 1:
        ranking_ = ranks(results)
        boards += [ranking_] if ranking_.columns["policy"] else []
    return boards


def ranks(results: Results) -> Board:
    """Return the policies by their mean rank over all problems."""
    frame = ranking(results)
    ranked = frame.filter(frame["verdict"] != "not ranked").to_dicts()
    others = frame.filter(frame["verdict"] == "not ranked")["policy"].to_list()
    note = f"Rank 1: lowest mean regret. First: on how many of {len(results.plan.problems)} problems. Of random: geometric mean."
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
            "of random": [_share(row["share_of_uniform"]) for row in ranked],
            "against first": ["–" if row["verdict"] == "first" else row["verdict"] for row in ranked],
        },
        spare=("95 % interval", "of random"),
    )


def remarks(results: Results) -> list[str]:
    """Return what the tables lack, a line each: the plan's notes, policies left out or not ranked, and failed units.

    The verdict counts the missing replications.
    """
    plan = results.plan
    lines = list(plan.notes)
    for label in dict.fromkeys(each.label for each in plan.left_out):
        reasons = {plan.called(each.played): each.reason for each in plan.left_out if each.label == label}
        first, reason = next(iter(reasons.items()))
        joint = ":" if len(set(reasons.values())) == 1 else f"; of {first} because"
        lines.append(f"{label} is left out of {', '.join(reasons)}{joint} {reason}")
    if len(plan.problems) > 1:
        left_out = {each.label for each in plan.left_out}
        rows = ranking(results).to_dicts()
        if any(row["verdict"] != "not ranked" for row in rows):
            lines += [
                f"{row['policy']} is not ranked: {row['reason']}"
                for row in rows
                if row["verdict"] == "not ranked" and row["policy"] not in left_out  # which has a line above
            ]
    for failure in results.failures:
        unit = failure.unit
        where, tries = plan.called(unit.cell.played), counted(failure.tries, "time")
        reason = last_line(failure.traceback)
        lines.append(f"{unit.cell.label} failed on {where}, {replications(unit)}, {tries}: {reason}")
    return lines


def _rows(results: Results, played: Played) -> list[dict[str, Any]]:
    only = Results(results.plan, results.on(played))
    return summary(only).to_dicts()


def _board(results: Results, played: Played, rows: list[dict[str, Any]]) -> Board:
    planned = results.plan.replications
    title = f"{played.name}: regret after {counted(played.horizon, 'pull')}, {counted(planned, 'replication')}"
    notes = [
        f"Of random: in % of the regret of choosing arms at random, {number(rows[0]['uniform']) if rows else '–'}."
    ]
    if any(row["assumption_met"] is False for row in rows):
        notes.append("* Its assumption fails here.")
    if any("horizon" in row["knows"] for row in rows):
        notes.append("T: the horizon.")
    if any(row["replications"] < planned for row in rows):
        notes.append("(n): only n replications.")
    return Board(
        title=f"{title}, seed {results.plan.seed}",
        note=" ".join(notes),
        columns={
            "policy": [_name(row, planned) for row in rows],
            "mean": [number(row["mean"]) for row in rows],
            "95 % interval": [_interval(row["mean_low"], row["mean_high"], number) for row in rows],
            "median": [number(row["median"]) for row in rows],
            "95 % quantile": [number(row["q95"]) for row in rows],
            "worst": [number(row["worst"]) for row in rows],
            "of random": [_share(row["share_of_uniform"]) for row in rows],
            "must know": [row["knows"].replace("horizon", "T").replace(", ", ",") for row in rows],
            "ns/pull": ["–" if math.isnan(row["ns_per_pull"]) else f"{row['ns_per_pull']:,.0f}" for row in rows],
        },
        words=("policy", "must know"),
        spare=("95 % interval", "ns/pull", "must know", "of random"),
    )


def _name(row: dict[str, Any], planned: int) -> str:
    few = f" ({row['replications']})" if row["replications"] < planned else ""
    return f"{row['policy']}{few}{' *' if row['assumption_met'] is False else ''}"


def _interval(low: float, high: float, form: Any) -> str:
    return "–" if math.isnan(low) else f"{form(low)} to {form(high)}"


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{100.0 * value:.{0 if value >= 0.1 else 1}f} %"
