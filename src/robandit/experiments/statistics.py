"""Tables of regret: means, medians and quantiles, paired comparisons and ranks. `Findings` computes each table once.

Regret is skewed, and a few bad replications contribute much of its mean. So mean +- standard deviation says little about it.

- Means have percentile bootstrap intervals. Quantiles have exact intervals between two order statistics (`robandit.intervals`).
- Policies are compared in the same replications, on the same rewards. The interval of a difference is the hull of the bootstrap's
  and Student's. A difference is significant if its interval excludes 0 and a sign test of wins against losses agrees.

All intervals are for 95 %. With fewer than ``ENOUGH`` replications nothing is significant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.errors import InvalidInput
from robandit.experiments import verdicts
from robandit.experiments.against_record import Against, against_record, cost_sentences, reference_row, worth_sentences
from robandit.experiments.plan import Played
from robandit.experiments.results import Measured, Results, check_results
from robandit.experiments.verdicts import ENOUGH, Row
from robandit.intervals import (
    CONFIDENCE,
    RESAMPLES,
    bootstrap_intervals,
    difference_intervals,
    percentile_interval,
    quantile_interval,
    resampled_means,
)
from robandit.kernel.types import Floats, Ints
from robandit.policies.assumptions import assumption_met
from robandit.validation import instance, invalid, text
from robandit.wording import counted

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Findings", "Standing", "curves", "paired", "ranking", "summary", "verdict"]

SUMMARY = (
    *("problem", "horizon", "policy", "replications", "mean", "mean_low", "mean_high"),
    *("median", "median_low", "median_high", "q95", "q95_low", "q95_high", "worst", "worst_replication"),
    *("uniform", "share_of_uniform", "ns_per_pull", "told", "knows", "assumption", "assumption_met", "bound_name"),
    *Against._fields,
)


@dataclass(frozen=True, eq=False)
class Findings:
    """The tables and the verdict of an experiment. Each is computed when it is first used, and cached."""

    results: Results

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Findings: {self.results!r}>"

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """One `Standing` per problem, in the plan's order."""
        rows: dict[tuple[str, int], list[Row]] = {}
        for row in summary(self.results).iter_rows(named=True):
            rows.setdefault((row["problem"], row["horizon"]), []).append(row)
        return tuple(Standing(self.results, p, rows[p.name, p.horizon]) for p in self.results.problems)

    @cached_property
    def ranking(self) -> list[Row]:
        """The rows of `ranking`; empty if the plan has only one problem."""
        return ranking(self.results).to_dicts() if len(self.results.plan.problems) > 1 else []

    @property
    def ranked(self) -> list[Row]:
        """The rows of policies that have a rank."""
        return [row for row in self.ranking if row["verdict"] != "not ranked"]

    @property
    def unranked(self) -> list[Row]:
        """The rows of policies without a rank. Each has a reason."""
        return [row for row in self.ranking if row["verdict"] == "not ranked"]

    @cached_property
    def costs(self) -> list[str]:
        """For each replayed record, what it cost or earned, what the best policy would have, and the difference."""
        replays = [
            each for each in self.standings if (known := each.played.reference) is not None and known.worth is None
        ]
        return [cost_sentences(each.measured[each.best], each.against[each.best]) for each in replays]

    @property
    def worth(self) -> list[str]:
        """For each replay with contexts, whether they are worth it."""
        return [line for standing in self.standings for line in standing.worth]

    @cached_property
    def verdict(self) -> str:
        """The verdict in a few sentences: the winner, whether its lead is significant, its parameters and its assumption.

        Policies that do not learn from rewards are baselines. They win only if no other policy plays.
        """
        results = self.results
        if not results.measured:
            sentences = "Nothing has been measured yet."
        elif len(results.plan.problems) > 1:
            sentences = verdicts.over_all_problems(results, self.ranked)
        else:
            standing = self.standings[0]
            sentences = verdicts.on_one_problem(standing.measured, standing.best, standing.pairs)
        return sentences + verdicts.missing_replications(results)


@dataclass(frozen=True, eq=False)
class Standing:
    """The policies on one problem, sorted by mean regret."""

    results: Results
    played: Played
    rows: list[Row]
    """The problem's rows of `summary`."""

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """The measured cells by the policy's label, in the order of the rows."""
        by_label = {m.cell.label: m for m in self.results.on(self.played)}
        return {row["policy"]: by_label[row["policy"]] for row in self.rows}

    @property
    def best(self) -> str:
        """The policy with the lowest mean regret among those that learn from rewards, or among all if none does."""
        learners = [label for label, m in self.measured.items() if m.cell.policy.uses_rewards]
        return (learners or list(self.measured))[0]

    @cached_property
    def against(self) -> dict[str, Against]:
        """The comparison of each policy with the record that it was replayed on, by the policy's label."""
        return {row["policy"]: Against(*(row[name] for name in Against._fields)) for row in self.rows}

    @property
    def reference(self) -> tuple[str, float, float]:
        """The name of the record in a leaderboard, its total and its regret."""
        regret = next(row["mean"] for row in self.rows if row["policy"] == self.best)
        return reference_row(self.played, self.against[self.best], regret)

    @cached_property
    def worth(self) -> list[str]:
        """Whether contexts are worth it, if the problem replays a record with features and policies of both kinds were played."""
        if self.played.reference is None or self.played.reference.worth is None:
            return []
        kinds: dict[bool, Row] = {}
        for row in self.rows:
            policy = self.measured[row["policy"]].cell.policy
            if policy.uses_rewards:
                kinds.setdefault(bool(policy.contextual), row)
        if len(kinds) < 2:
            return []
        pairs = paired(self.results, self.played, kinds[False]["policy"]).to_dicts()
        difference = next(row for row in pairs if row["policy"] == kinds[True]["policy"])
        return worth_sentences(self.played, kinds[True], kinds[False], difference)

    @cached_property
    def pairs(self) -> list[Row]:
        """The rows of `paired`, which compare all other policies with the best."""
        return paired(self.results, self.played, self.best).to_dicts()


def verdict(results: Results) -> str:
    """Return `Findings.verdict`, a few sentences for the top of a report."""
    check_results(results)
    return Findings(results).verdict


def summary(results: Results) -> pl.DataFrame:
    """Return the final regret with one row per problem, horizon and policy. Rows of a problem are sorted by their mean.

    ``replications`` is the number of replications that were played, ``worst_replication`` the index of the one with the largest
    regret. ``uniform`` is the regret of choosing arms at random. ``told`` is the policy with all its parameters; ``knows`` lists
    those that it must know. ``assumption_met`` is false if the assumption of its bound fails, and null if this is unknown.

    The last columns compare a policy that was replayed on a record with what the record cost or earned: see
    `robandit.experiments.against_record.Against`. They are empty for other problems.
    """
    import polars as pl

    check_results(results)
    of_means = bootstrap_intervals([m.final for m in results.measured])
    rows: dict[Played, list[Row]] = {}
    for measured, interval in zip(results.measured, of_means, strict=True):
        played, policy, final = measured.cell.played, measured.cell.policy, measured.final
        facts, uniform = policy.facts, played.uniform_regret
        values = (  # in the order of SUMMARY
            *(played.name, played.horizon, measured.cell.label, len(final), *interval),
            *(float(np.median(final)), *quantile_interval(final, 0.5)),
            *(float(np.quantile(final, 0.95)), *quantile_interval(final, 0.95)),
            *(float(final.max()), int(measured.replications[final.argmax()])),
            *(uniform, interval.measured / uniform if uniform > 0.0 else math.nan, measured.ns_per_pull),
            *(repr(policy.prepared(played.horizon)), ", ".join(facts.knows) or "nothing"),
            *(facts.assumption.text, assumption_met(policy, played.problem), facts.bound),
            *against_record(measured, results.plan.seed),
        )
        rows.setdefault(played, []).append(dict(zip(SUMMARY, values, strict=True)))
    ordered = [row for each in rows.values() for row in sorted(each, key=lambda row: (row["mean"], row["policy"]))]
    schema: dict[str, Any] = dict.fromkeys(SUMMARY, pl.Float64())
    schema |= dict.fromkeys(("problem", "policy", "told", "knows", "assumption", "bound_name"), pl.String())
    schema |= dict.fromkeys(("reference", "versus"), pl.String())
    schema |= dict.fromkeys(("horizon", "replications", "worst_replication"), pl.Int64())
    return pl.DataFrame(ordered, schema=schema | {"assumption_met": pl.Boolean()})


def curves(measured: Measured) -> pl.DataFrame:
    """Return the regret of one cell over time, one row per checkpoint: t, mean, median, q05, q25, q75, q95, worst."""
    import polars as pl

    quantiles = np.quantile(measured.regret, [0.5, 0.05, 0.25, 0.75, 0.95], axis=0)
    return pl.DataFrame(
        {
            "t": measured.checkpoints,
            "mean": measured.regret.mean(axis=0),
            **dict(zip(("median", "q05", "q25", "q75", "q95"), quantiles, strict=True)),
            "worst": measured.regret.max(axis=0),
        }
    )


def paired(results: Results, played: Played, best: str | None = None) -> pl.DataFrame:
    """Compare every other policy with ``best`` (default: the lowest mean) in the replications that both played.

    ``difference`` is the other policy's mean regret minus the mean regret of ``best``. ``wins`` is the share of replications in
    which the other policy has less regret, and ``ties`` the share in which both have the same. ``verdict`` is "worse" or "better"
    if the interval of the difference excludes 0 and a sign test of wins against losses agrees at 5 %, else "not significant".
    """
    import polars as pl

    cells = {m.cell.label: m for m in _measured_on(results, played)}
    if best is None:
        best = min(cells.values(), key=_mean_and_label).cell.label
    elif text(best, "best", "the name of a policy") not in cells:
        rule = f"a policy with results on {played.name}: one of {', '.join(sorted(cells))}"
        raise invalid("best", best, rule)
    others = [label for label in cells if label != best]
    differences = [_differences(cells[best], cells[label]) for label in others]
    rows: list[Row] = []
    for label, difference, (mean, low, high) in zip(
        others, differences, difference_intervals(differences), strict=True
    ):
        n = len(difference)
        rows.append(
            {
                "policy": label,
                "best": best,
                "replications": n,
                "difference": mean,
                "difference_low": low,
                "difference_high": high,
                "wins": float((difference < 0.0).mean()) if n else math.nan,
                "ties": float((difference == 0.0).mean()) if n else math.nan,
                "verdict": _agreed(difference, _side(n, low, high)),
            }
        )
    rows.sort(key=lambda row: (math.isnan(row["difference"]), row["difference"], row["policy"]))
    numbers = ("difference", "difference_low", "difference_high", "wins", "ties")
    schema: dict[str, Any] = {"policy": pl.String(), "best": pl.String(), "replications": pl.Int64()}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(numbers, pl.Float64()) | {"verdict": pl.String()})


def _measured_on(results: Results, played: Played) -> tuple[Measured, ...]:
    check_results(results)
    instance(played, Played, "played", "a problem of the plan, one of results.problems")
    measured = results.on(played)
    if not measured:
        known = ", ".join(f"{each.name} (horizon {each.horizon})" for each in results.problems) or "none yet"
        raise InvalidInput(
            f"nothing was measured on {played.name} with horizon {played.horizon}: choose one of {known}"
        )
    return measured


def _mean_and_label(measured: Measured) -> tuple[float, str]:
    return float(measured.final.mean()), measured.cell.label


def _differences(best: Measured, other: Measured) -> Floats:
    """Return the other policy's final regret minus the best policy's, in the replications that both played."""
    shared: Ints = np.intersect1d(best.replications, other.replications)

    def finals(measured: Measured) -> Floats:
        order = np.argsort(measured.replications)
        return measured.final[order[np.searchsorted(measured.replications, shared, sorter=order)]]

    return finals(other) - finals(best)


def _side(n: int, low: float, high: float) -> str:
    """Return the verdict that follows from the interval of a difference."""
    if n >= ENOUGH and low > 0.0:
        return "worse"
    if n >= ENOUGH and high < 0.0:
        return "better"
    return "not significant"


def _agreed(difference: Floats, side: str) -> str:
    """Return the verdict if a two-sided sign test at 5 % agrees, else "not significant". Ties do not count."""
    from scipy.special import bdtr

    more, less = int((difference > 0.0).sum()), int((difference < 0.0).sum())
    likely = more > less if side == "worse" else less > more
    clear = 2.0 * bdtr(min(more, less), more + less, 0.5) <= 1.0 - CONFIDENCE
    return side if likely and clear else "not significant"


def ranking(results: Results) -> pl.DataFrame:
    """Return the policies sorted by their mean rank over all problems of the plan.

    On each problem the policy with the lowest mean regret has rank 1. Equal means share the mean of their ranks. The interval of
    the mean rank is a bootstrap over the replications of each problem, with the same resamples for all policies. ``wins`` counts
    the problems on which no mean is lower. ``share_of_uniform`` is the geometric mean over the problems. A policy is ranked if it
    learns from rewards and played every replication of every problem. The others come last, with the ``reason``. ``verdict``
    compares the mean rank with that of the first policy: "first", "worse", "not significant", or "not ranked".
    """
    import polars as pl

    check_results(results)
    labels, reasons = _rankable(results)
    problems = results.plan.problems
    cells = {(m.cell.label, m.cell.played): m for m in results.measured}
    n = results.plan.replications
    ranks, wins, shares = np.zeros((len(labels), 1)), np.zeros(len(labels), dtype=int), np.zeros(len(labels))
    resampled = np.zeros((len(labels), RESAMPLES))
    for key, played in enumerate(problems if labels else ()):
        finals = [cells[label, played].final for label in labels]
        means = np.array([[float(final.mean())] for final in finals])
        ranks += _ranks(means)
        wins += (means == means.min())[:, 0]
        uniform = played.uniform_regret
        with np.errstate(divide="ignore", invalid="ignore"):  # regret may be 0 or, in order, negative
            shares += np.log(means[:, 0] / uniform) if uniform > 0.0 else math.nan
        resampled += _ranks(resampled_means(finals, key))
    order = sorted(range(len(labels)), key=lambda i: (ranks[i, 0], shares[i], labels[i]))
    rows: list[tuple[Any, ...]] = []
    for i in order:
        rank = float(ranks[i, 0]) / len(problems)
        interval = percentile_interval(resampled[i] / len(problems), rank, n)
        behind = resampled[i] - resampled[order[0]]
        lead = percentile_interval(behind, float(ranks[i, 0] - ranks[order[0], 0]), n)
        share = math.exp(shares[i] / len(problems))
        decision = "first" if i == order[0] else _side(n, lead.low, lead.high)
        rows.append((labels[i], *interval, len(problems), int(wins[i]), share, decision, ""))
    for label, (count, reason) in reasons.items():
        rows.append((label, None, None, None, count, None, None, "not ranked", reason))
    schema: dict[str, Any] = {"policy": pl.String()}
    schema |= dict.fromkeys(("mean_rank", "rank_low", "rank_high"), pl.Float64())
    schema |= {"problems": pl.Int64(), "wins": pl.Int64(), "share_of_uniform": pl.Float64()}
    return pl.DataFrame(rows, schema=schema | {"verdict": pl.String(), "reason": pl.String()}, orient="row")


def _ranks(means: Floats) -> Floats:
    """Return the ranks within each column; equal numbers share their mean rank. (Importing scipy.stats would take 2 s.)"""
    ranks = np.empty_like(means)
    for i, row in enumerate(means):
        ranks[i] = (means < row).sum(axis=0) + 0.5 * (1.0 + (means == row).sum(axis=0))
    return ranks


def _rankable(results: Results) -> tuple[list[str], dict[str, tuple[int, str]]]:
    """Return the policies to rank and, for each other policy, the number of problems that it completed and the reason."""
    plan = results.plan
    labels = dict.fromkeys(each.label for each in plan.combinations)
    learns = {cell.label: cell.policy.uses_rewards for cell in plan.cells}
    left_out = {(each.label, each.played): each.reason for each in plan.left_out}
    counts = {(m.cell.label, m.cell.played): len(m.replications) for m in results.measured}
    failed = {(failure.unit.cell.label, failure.unit.cell.played) for failure in results.failures}
    everywhere = dict.fromkeys(each.played for each in plan.combinations)
    rankable, reasons = [], {}
    for label in labels:
        gaps = []
        for played in everywhere:
            count = counts.get((label, played), 0)
            if (label, played) in left_out:
                gaps.append(f"skipped on {plan.called(played)}: {left_out[label, played]}")
            elif count < plan.replications:
                word = "failed" if (label, played) in failed else "not played yet"
                of = f"{plan.replications - count} of {counted(plan.replications, 'replication')}"
                gaps.append(f"{of} on {plan.called(played)} {word}")
        complete = len(everywhere) - len(gaps)
        if gaps:
            reasons[label] = (complete, gaps[0] + (f"; and on {len(gaps) - 1} more" if len(gaps) > 1 else ""))
        elif not learns[label] and any(learns.values()):
            reasons[label] = (complete, "does not learn from rewards: a baseline")
        else:
            rankable.append(label)
    return rankable, reasons
