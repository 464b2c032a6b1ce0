"""What a replayed record cost or earned, what each policy would have, and the difference with its interval, in the record's unit.

The total of a policy over T pulls is T times the best mean, minus its regret (costs: plus its regret). In order, the policy's own
rewards are summed. The reference is T times the mean of the record (`robandit.diagnostics.reference`), or, in order, the mean of
all arms at the same times.

The interval of the difference has two parts, which are added as independent errors:

- the spread of the mean over replications: the hull of the bootstrap's and Student's, as for all differences;
- the error of the record: the sum over the arms of the policy's pulls times the limit of "arm minus reference". The limits hold for
  all arms at once, so it does not matter that the policy learned from the rows by which it is judged. The shares of the arms are
  taken as they are, and in order also as the same at all times.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.experiments.plan import Played
from robandit.experiments.results import Measured
from robandit.experiments.verdicts import ENOUGH, Row
from robandit.intervals import Interval, difference_intervals
from robandit.kernel.types import Floats, Ints
from robandit.problems import Contextual, InOrder, Problem
from robandit.wording import counted, number, share


class Against(NamedTuple):
    """A policy compared with the record, in its sign and unit; ``better_by`` is positive if the policy is better."""

    reference: str
    """"log" or "random", the kind of the reference; empty if the problem is not a replay."""
    reference_total: float
    total: float
    better_by: float
    better_by_low: float
    better_by_high: float
    versus: str
    """"better", "worse" or "not significant"."""


TINY = 0.0005
LEVEL = 0.05  # of the test whether features matter
NOT_RECORDED = Against("", math.nan, math.nan, math.nan, math.nan, math.nan, "")


def against_record(measured: Measured, seed: int) -> Against:
    """Compare a policy with the record that it was replayed on; ``seed`` is the seed of the plan."""
    played, reference = measured.cell.played, measured.cell.played.reference
    if reference is None or not len(measured.final):
        return NOT_RECORDED
    problem, horizon = played.problem, played.horizon
    sign = -1.0 if problem.minimize else 1.0
    if isinstance(problem, InOrder):
        starts = problem.starts(seed, measured.replications)
        best = _windows(problem.rewards[:, problem.best_arm], starts, horizon)
        paid = _windows(problem.rewards.mean(axis=1), starts, horizon)
    else:
        best, paid = (np.full(len(measured.final), horizon * mean) for mean in (_best(problem), reference.mean))
    totals = best - sign * measured.final
    better = _with_error(difference_intervals([sign * (totals - paid)])[0], _record_error(measured))
    n = len(totals)
    versus = "better" if n >= ENOUGH and better.low > 0.0 else "worse" if n >= ENOUGH and better.high < 0.0 else ""
    return Against(reference.kind, float(paid.mean()), float(totals.mean()), *better, versus or "not significant")


def cost_sentences(measured: Measured, against: Against) -> str:
    """Return what the record cost or earned, what the policy would have, and whether the difference is significant."""
    played, reference = measured.cell.played, measured.cell.played.reference
    assert reference is not None
    minimize, pulls = played.problem.minimize, counted(played.horizon, "pull")
    cost = "cost" if minimize else "earned"
    unit = f" (in the unit of {reference.column!r})" if reference.column else ""
    mean, total = number(reference.mean), number(against.reference_total)
    if reference.kind == "log":
        rows = f"{counted(reference.rows, 'row')}, {number(reference.mean * reference.rows)} in total"
        here = f", or {total} for {pulls}" if reference.rows != played.horizon else ""
        without = f", without {reference.without}," if reference.without else ""
        text = f"On {played.name}, the log{without} {cost} {mean} per row{unit}: {rows}{here}."
    else:
        random = "costs" if minimize else "earns"
        text = f"On {played.name}, choosing arms at random {random} {mean} per pull{unit}, or {total} for {pulls}."
    text += f" {measured.cell.label} would have {cost} {number(against.total)}: {_difference(against, minimize)}"
    if math.isnan(against.better_by_low):
        few = reference.why or "one replication is too few"
        return f"{text}. The difference has no interval, since {few}; so it is not significant."
    ends = (against.better_by_low, against.better_by_high)
    if against.better_by < 0.0 and not _same(against):  # the sentence tells how much worse it is
        ends = (-ends[1], -ends[0])
    interval = f"95 % interval {number(ends[0])} to {number(ends[1])}"
    if against.versus != "not significant":
        return f"{text} ({interval})."
    n = len(measured.final)
    reason = f", since {counted(n, 'replication')} are too few" if n < ENOUGH else ""
    if _same(against):
        return f"{text} (the difference is not significant{reason}; {interval})."
    return f"{text}, but this is not significant{reason} ({interval})."


def _difference(against: Against, minimize: bool) -> str:
    if _same(against):
        return "it costs about the same" if minimize else "it earns about the same"
    size = number(abs(against.better_by))
    saves, loses = ("it saves {}", "it costs {} more") if minimize else ("it earns {} more", "it earns {} less")
    part = ""
    if minimize and against.reference_total > 0.0:
        part = f", {share(abs(against.better_by) / against.reference_total)}"
    return (saves if against.better_by >= 0.0 else loses).format(size) + part


def _same(against: Against) -> bool:
    """Return whether the difference is not significant, and would be shown as 0.0 % of the total."""
    tiny = abs(against.better_by) < TINY * abs(against.reference_total)
    return tiny and against.versus == "not significant"


def worth_sentences(played: Played, with_it: Row, without: Row, difference: Row) -> list[str]:
    """Answer in three lines whether the context is worth it.

    The rows are those of the best policies with and without contexts in the summary, and the paired comparison of the first with
    the second.
    """
    assert played.reference is not None
    worth, pulls, minimize = played.reference.worth, played.horizon, played.problem.minimize
    assert worth is not None
    matters = worth.p_value <= LEVEL
    answers = {"better": "Yes" if matters else "Not shown, it may be chance", "worse": "No"}
    costs, saves, saving = ("costs", "saves", "Saving") if minimize else ("earns", "gains", "Gain")
    per_decision = [number(row["total"] / pulls) for row in (with_it, without)]
    part = f" ({share(-difference['difference'] / without['total'])})" if minimize and without["total"] > 0.0 else ""
    saved, low, high = (-difference[key] / pulls for key in ("difference", "difference_high", "difference_low"))
    n = counted(difference["replications"], "replication")
    interval = f"; 95 % interval {number(low)} to {number(high)}" if not math.isnan(low) else ""
    return [
        f"Is the context worth it? {answers.get(difference['verdict'], 'Not shown')}. The best policy with contexts, "
        f"{with_it['policy']}, {costs} {per_decision[0]} per decision; the best without, {without['policy']}, {per_decision[1]}.",
        f"{saving} with contexts: {number(saved)} per decision{part}{interval}, paired, {n} of {counted(pulls, 'decision')} drawn "
        "from this record.",
        f"Chance? A linear rule fitted to the record {saves} {number(worth.saved)} per decision there. If the features changed "
        f"all arms alike, it would be up to {number(worth.by_chance)} in 95 % of cases (p = {worth.p_value:.2f}): "
        f"{'the features matter' if matters else 'the effect may be noise'}.",
    ]


def reference_row(played: Played, against: Against, regret: float) -> tuple[str, float, float]:
    """Return the name of the reference in a leaderboard, its total and its regret.

    ``against`` and ``regret`` (the mean) are of any policy. Both regrets are against the same pulls of the best arm, so they differ
    as the totals do.
    """
    assert played.reference is not None
    without = f" without {played.reference.without}" if played.reference.without else ""
    name = f"(the log{without})" if played.reference.kind == "log" else "(random arms)"
    sign = -1.0 if played.problem.minimize else 1.0
    return name, against.reference_total, regret + sign * (against.total - against.reference_total)


def _best(problem: Problem) -> float:
    if isinstance(problem, Contextual):
        return -problem.best_mean if problem.minimize else problem.best_mean
    return float(problem.means[problem.best_arm])


def _windows(values: Floats, starts: Ints, length: int) -> Floats:
    """Return the sums of ``length`` values from each start on; after the last value they continue with the first."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = starts + length
    wrapped = np.maximum(ends - len(values), 0)
    return np.asarray(sums[np.minimum(ends, len(values))] - sums[starts] + sums[wrapped])


def _record_error(measured: Measured) -> tuple[float, float]:
    """Return how much less and more the advantage of the policy may be on other records."""
    played, reference = measured.cell.played, measured.cell.played.reference
    assert reference is not None
    if reference.below is None or reference.above is None:
        return math.nan, math.nan
    pulls = measured.pulls.mean(axis=0)
    below, above = float(pulls @ np.array(reference.below)), float(pulls @ np.array(reference.above))
    return (above, below) if played.problem.minimize else (below, above)


def _with_error(interval: Interval, error: tuple[float, float]) -> Interval:
    mean, low, high = interval
    return Interval(mean, mean - math.hypot(mean - low, error[0]), mean + math.hypot(high - mean, error[1]))
