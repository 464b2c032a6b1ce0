"""The verdict of an experiment in sentences: the winner, whether its lead is significant, its parameters and its assumption."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from robandit.experiments.results import Measured, Results
from robandit.policies.assumptions import assumption_met
from robandit.policies.facts import Facts
from robandit.wording import counted, joined, listed, number, share

ENOUGH = 6  # six differences have the same sign by chance in 1 of 32 cases, which is below 5 %; five in 1 of 16
MANY = 50  # with fewer replications, intervals of skewed numbers are much too narrow

Row: TypeAlias = dict[str, Any]


def on_one_problem(measured: Mapping[str, Measured], best: str, pairs: Sequence[Row]) -> str:
    """Return the verdict on one problem. ``pairs`` are the rows of `robandit.experiments.paired` for the best policy."""
    played = measured[best].cell.played
    mean, uniform = float(measured[best].final.mean()), played.uniform_regret
    of_uniform = f", {share(mean / uniform)} of choosing arms at random" if uniform > 0.0 else ""
    pulls = counted(played.horizon, "pull")
    learners = [label for label, m in measured.items() if m.cell.policy.uses_rewards] or list(measured)
    behind_baseline = any(float(m.final.mean()) < mean for label, m in measured.items() if label not in learners)
    among = " among the policies that learn," if behind_baseline else ""
    text = f"On {played.name},{among} {best} has the lowest mean regret after {pulls}: {number(mean)}{of_uniform}"
    rivals = [row for row in pairs if row["policy"] in learners]
    if not rivals:
        return f"{text}; no other policy was compared with it. {_knowledge(measured[best])}"
    medians = {label: float(np.median(measured[label].final)) for label in learners}
    typical = min(rivals, key=lambda row: (medians[row["policy"]], row["policy"]))
    return f"{text}. {_significance(best, rivals)}{_median(best, typical, medians)} {_knowledge(measured[best])}"


def _significance(best: str, rivals: Sequence[Row]) -> str:
    close = [row for row in rivals if row["verdict"] != "worse"]
    closest = close[0] if close else min(rivals, key=lambda row: row["difference_low"])
    n, name, low, high = (closest[key] for key in ("replications", "policy", "difference_low", "difference_high"))
    interval = _range(low, high)
    basis = f"95 %, paired, {counted(n, 'replication')}{_too_narrow(n)}"
    if not close:
        return f"The difference is significant: the closest, {name}, has more by {interval} ({basis})."
    if closest["ties"] == 1.0:
        return f"{name} has the same regret in each of {counted(n, 'replication')}."
    if n < ENOUGH:
        return _too_few(n)
    others = [row["policy"] for row in close[1:]]
    nor = f" Nor is the difference from {listed(others)}." if others else ""
    if high < 0.0:  # one of the two lacks replications, so that their means are of others, too
        return f"But {name} has less by {_range(-high, -low)} in the replications that both played ({basis}): complete the run."
    if low > 0.0:
        losses = 100.0 * (1.0 - closest["wins"] - closest["ties"])
        return (
            f"The mean of {name} is higher by {interval} ({basis}), but {name} has more regret in only {losses:.0f} % of the "
            f"replications. A sign test does not confirm that {best} is better, so the difference is not significant.{nor}"
        )
    names = listed([name, *others])
    of_first = f" from {name}" if others else ""
    return f"The difference is not significant: {names} may be as good (difference{of_first} {interval}, {basis})."


def _range(low: float, high: float) -> str:
    """Return an interval, or one number if its ends look the same."""
    return number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"


def _median(best: str, typical: Row, medians: Mapping[str, float]) -> str:
    """Return a sentence if another policy has the lowest median; ``typical`` is the row of the lowest of the others."""
    name = typical["policy"]
    low, other = number(medians[name]), number(medians[best])
    if not typical["replications"] or medians[name] >= medians[best] or low == other:
        return ""
    wins, losses = typical["wins"], 1.0 - typical["wins"] - typical["ties"]
    often, only = ("and", "") if wins > losses else ("but", "only ")
    text = f" {name} has the lowest median, {low} against {other}, {often} less regret than {best} in {only}"
    return f"{text}{100.0 * wins:.0f} % of the replications."


def over_all_problems(results: Results, ranked: Sequence[Row]) -> str:
    """Return the verdict over several problems. ``ranked`` are the rows of policies with a rank."""
    problems = len(results.plan.problems)
    if not ranked:
        return f"No policy has played all of the {problems} problems in full, so none is ranked over all of them."
    first, n = ranked[0], results.plan.replications
    tied = [row["policy"] for row in ranked[1:] if row["mean_rank"] == first["mean_rank"]]
    verb, partners = ("shares", f" with {listed(tied)}") if tied else ("has", "")
    policies = counted(len(ranked), "policy", "policies")
    text = f"Over {problems} problems, {first['policy']} {verb} the lowest mean rank of {policies}{partners}"
    text += f": {first['mean_rank']:.2f}"
    if not math.isnan(first["rank_low"]):
        text += f" (95 %: {first['rank_low']:.2f} to {first['rank_high']:.2f}{_too_narrow(n)})"
    close = [row["policy"] for row in ranked[1:] if row["verdict"] != "worse"]
    if len(ranked) == 1:
        text += ", as the only one that is ranked."
    elif not close:
        text += ", significantly better than all others."
    elif n < ENOUGH:
        text += f". {_too_few(n)}"
    else:
        text += f", not significantly better than {listed(close)}."
    text += f" The mean regret of {first['policy']} is the lowest on {first['wins']} of them"
    cells = [m.cell for m in results.measured if m.cell.label == first["policy"]]
    facts = cells[0].policy.facts
    text += f"; it needs {joined(facts.knows) or 'no parameters'}"
    if not facts.assumption:
        return f"{text} and {_no_assumption(facts)}."
    met = {cell.played: assumption_met(cell.policy, cell.played.problem) for cell in cells}
    broken = [results.plan.called(played) for played, holds in met.items() if holds is False]
    if broken:
        return f"{text}, and its assumption ({facts.assumption}) fails on {listed(broken)}."
    holds = "may or may not hold" if None in met.values() else "holds on all"
    return f"{text}, and its assumption ({facts.assumption}) {holds}."


def missing_replications(results: Results) -> str:
    """Return a sentence about replications that failed or were not played yet; empty if all were played."""
    if results.complete:
        return ""
    planned = len(results.plan.cells) * results.plan.replications
    failed = sum(failure.unit.count for failure in results.failures)
    missing = planned - sum(len(m.replications) for m in results.measured) - failed
    parts = [f"{failed:,} failed"] if failed else []
    if missing > 0:
        parts.append(f"{missing:,} {'is' if missing == 1 else 'are'} not played yet (run again to continue)")
    return f" Incomplete: of {counted(planned, 'replication')} {' and '.join(parts)}."


def _knowledge(measured: Measured) -> str:
    """Return a sentence with the policy's parameters and whether its assumption holds."""
    policy = measured.cell.policy.prepared(measured.cell.played.horizon)
    facts = policy.facts
    values = [(name, getattr(policy, name)) for name in facts.knows]
    parameters = [f"{name} = {number(value) if isinstance(value, (int, float)) else value}" for name, value in values]
    text = f"It was given {joined(parameters) or 'no parameters'}"
    if not facts.assumption:
        return f"{text} and {_no_assumption(facts)}."
    met = {True: "holds here", False: "FAILS here", None: "may or may not hold here"}
    return f"{text}; it assumes {facts.assumption}, which {met[assumption_met(policy, measured.cell.played.problem)]}."


def _no_assumption(facts: Facts) -> str:
    return "assumes nothing more" if facts.bound else "has no proved bound on its regret"


def _too_few(n: int) -> str:
    return f"The difference is not significant: {counted(n, 'replication')} {'are' if n != 1 else 'is'} too few."


def _too_narrow(n: int) -> str:
    return "; intervals are too narrow with so few replications" if n < MANY else ""
