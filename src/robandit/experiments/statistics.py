"""Numbers for heavy tails: medians and quantiles beside means, intervals without standard errors, paired comparisons, ranks.

Regret is skewed, and its worst replications carry much of its mean: mean +- standard deviation says little about it. So

- a mean has a percentile bootstrap interval: replications are drawn again with replacement, from a fixed seed;
- a median or quantile has the exact interval between two order statistics, which holds for every law, and an end that so few
  replications cannot give is NaN;
- policies are compared in the same replications, that is on the same rewards; the interval of a difference holds both the
  bootstrap interval and Student's, and wins and losses must tell the same, so that no single replication decides.

All intervals are for 95 %. Nothing is called resolved on fewer than ``ENOUGH`` replications.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.errors import InvalidInput
from robandit.experiments.plan import Played
from robandit.experiments.results import Measured, Results
from robandit.experiments.words import counted
from robandit.kernel.types import Floats, Ints
from robandit.policies.assumptions import assumption_met
from robandit.policies.facts import Facts

if TYPE_CHECKING:
    import polars as pl

__all__ = ["curves", "paired", "ranking", "raw", "summary", "verdict", "worst_replications"]

CONFIDENCE = 0.95
RESAMPLES = 2000
ENOUGH = 6  # five differences have the same sign by chance in 1 of 16 cases, six in 1 of 32: below 5 %
MANY = 50  # with fewer replications, intervals of skewed numbers are much too narrow
WEIGHTS = 2_000_000  # held at a time: 16 MB


def summary(results: Results) -> pl.DataFrame:
    """Final regret: a row per problem, horizon and policy, the lowest mean first within a problem.

    ``replications`` were played; ``worst_replication`` is the number of the one with the largest regret. ``uniform`` is the regret
    of choosing arms at random. ``told`` is the policy as it played, ``knows`` what it had to be told, ``assumption_met`` whether
    the problem satisfies what its bound assumes (null: cannot say). Docs: docs/reference/results.md.
    """
    import polars as pl

    intervals = _mean_intervals([m.final for m in results.measured])
    rows: dict[Played, list[dict[str, Any]]] = {}
    for measured, (low, high) in zip(results.measured, intervals, strict=True):
        played, policy, final = measured.cell.played, measured.cell.policy, measured.final
        mean, uniform = float(final.mean()), _uniform(played)
        median_low, median_high = _quantile_interval(final, 0.5)
        q95_low, q95_high = _quantile_interval(final, 0.95)
        row = {
            "problem": played.name,
            "horizon": played.horizon,
            "policy": measured.cell.label,
            "replications": len(final),
            "mean": mean,
            "mean_low": low,
            "mean_high": high,
            "median": float(np.median(final)),
            "median_low": median_low,
            "median_high": median_high,
            "q95": float(np.quantile(final, 0.95)),
            "q95_low": q95_low,
            "q95_high": q95_high,
            "worst": float(final.max()),
            "worst_replication": int(measured.replications[final.argmax()]),
            "uniform": uniform,
            "share_of_uniform": mean / uniform if uniform > 0.0 else math.nan,
            "ns_per_pull": measured.ns_per_pull,
            "told": repr(policy.prepared(played.horizon)),
            "knows": ", ".join(policy.facts.knows) or "nothing",
            "assumption": policy.facts.assumption.text,
            "assumption_met": assumption_met(policy, played.problem),
            "bound_name": policy.facts.bound,
        }
        rows.setdefault(played, []).append(row)
    ordered = [row for each in rows.values() for row in sorted(each, key=lambda row: (row["mean"], row["policy"]))]
    text, whole = pl.String(), pl.Int64()
    schema: dict[str, Any] = dict.fromkeys(SUMMARY, pl.Float64())
    schema |= dict.fromkeys(("problem", "policy", "told", "knows", "assumption", "bound_name"), text)
    schema |= dict.fromkeys(("horizon", "replications", "worst_replication"), whole)
    return pl.DataFrame(ordered, schema=schema | {"assumption_met": pl.Boolean()})


SUMMARY = (
    *("problem", "horizon", "policy", "replications", "mean", "mean_low", "mean_high"),
    *("median", "median_low", "median_high", "q95", "q95_low", "q95_high", "worst", "worst_replication"),
    *("uniform", "share_of_uniform", "ns_per_pull", "told", "knows", "assumption", "assumption_met", "bound_name"),
)


def raw(results: Results) -> pl.DataFrame:
    """Regret itself: a row per problem, horizon, policy, replication and checkpoint ``t``."""
    from robandit.experiments.store import regret_table

    return regret_table(results.measured)


def curves(measured: Measured) -> pl.DataFrame:
    """Regret of one policy on one problem over time, a row per checkpoint: t, mean, median, q05, q25, q75, q95, worst."""
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
    """Every other policy against ``best`` (the one with the lowest mean, unless given), in the replications that both played.

    ``difference`` is the other's mean regret minus that of ``best``. ``wins`` is the share of replications in which the other has
    less regret, ``ties`` that in which both have the same. ``verdict``: "worse" or "better" where the interval of the difference
    lies on one side of 0 and a sign test of wins against losses tells the same at 5 %, else "not resolved".
    """
    import polars as pl

    cells = {m.cell.label: m for m in _on(results, played)}
    if best is None:
        best = min(cells, key=lambda label: (float(cells[label].final.mean()), label))
    elif best not in cells:
        raise InvalidInput(f"best = {best!r} has no results on {played.name}: there are {', '.join(sorted(cells))}")
    others = [label for label in cells if label != best]
    pairs = [_common([cells[best], cells[label]]) for label in others]
    differences = [other - own for own, other in pairs]
    rows: list[dict[str, Any]] = []
    for label, difference, (low, high) in zip(others, differences, _mean_intervals(differences), strict=True):
        n = len(difference)
        low, high = _with_student(difference, low, high)
        rows.append(
            {
                "policy": label,
                "best": best,
                "replications": n,
                "difference": float(difference.mean()) if n else math.nan,
                "difference_low": low,
                "difference_high": high,
                "wins": float((difference < 0.0).mean()) if n else math.nan,
                "ties": float((difference == 0.0).mean()) if n else math.nan,
                "verdict": _agreed(difference, _resolved(n, low, high)),
            }
        )
    rows.sort(key=lambda row: (math.isnan(row["difference"]), row["difference"], row["policy"]))
    numbers = ("difference", "difference_low", "difference_high", "wins", "ties")
    schema: dict[str, Any] = {"policy": pl.String(), "best": pl.String(), "replications": pl.Int64()}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(numbers, pl.Float64()) | {"verdict": pl.String()})


def worst_replications(results: Results, played: Played, count: int = 5) -> pl.DataFrame:
    """The ``count`` replications of each policy with the most regret: policy, replication, regret.

    Policies come by their mean, the lowest first. A replication can be played again alone: ``simulate(..., 1, first=replication)``.
    """
    import polars as pl

    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InvalidInput(f"count = {count!r} must be a whole number >= 1")
    rows = []
    for m in sorted(_on(results, played), key=lambda m: (float(m.final.mean()), m.cell.label)):
        order = np.lexsort((m.replications, -m.final))[:count]
        rows += [
            {"policy": m.cell.label, "replication": int(m.replications[i]), "regret": float(m.final[i])} for i in order
        ]
    return pl.DataFrame(rows, schema={"policy": pl.String(), "replication": pl.Int64(), "regret": pl.Float64()})


def ranking(results: Results) -> pl.DataFrame:
    """Policies by their mean rank over all problems of the plan, the best first.

    On each problem the policy with the lowest mean regret has rank 1; equal means share the mean of their ranks. The interval of
    the mean rank comes from drawing replications again, on each problem, the same ones for all policies. ``wins`` counts problems
    where nobody's mean is lower, ``share_of_uniform`` is the geometric mean. Ranked are the policies that learn from rewards and
    played every replication of every problem; the others come last, with the ``reason``. ``verdict`` compares mean ranks with the
    first one: "first", "worse", "not resolved", or "not ranked".
    """
    import polars as pl

    labels, reasons = _rankable(results)
    problems = results.plan.problems
    cells = {(m.cell.label, m.cell.played): m for m in results.measured}
    n = results.plan.replications
    ranks, wins, shares = np.zeros((len(labels), 1)), np.zeros(len(labels), dtype=int), np.zeros(len(labels))
    resampled = np.zeros((len(labels), RESAMPLES))
    for number, played in enumerate(problems if labels else ()):
        finals = [cells[label, played].final for label in labels]
        means = np.array([[float(final.mean())] for final in finals])
        ranks += _ranks(means)
        wins += (means == means.min())[:, 0]
        uniform = _uniform(played)
        with np.errstate(divide="ignore", invalid="ignore"):  # the logarithm of no regret at all, or of less
            shares += np.log(means[:, 0] / uniform) if uniform > 0.0 else math.nan
        resampled += _ranks(_resampled_means(finals, key=number))
    order = sorted(range(len(labels)), key=lambda i: (ranks[i, 0], shares[i], labels[i]))
    rows: list[dict[str, Any]] = []
    for i in order:
        low, high = _ends(resampled[i] / len(problems), float(ranks[i, 0]) / len(problems), n)
        behind = resampled[i] - resampled[order[0]]
        lead = _ends(behind, float(ranks[i, 0] - ranks[order[0], 0]), n)
        rows.append(
            {
                "policy": labels[i],
                "mean_rank": float(ranks[i, 0]) / len(problems),
                "rank_low": low,
                "rank_high": high,
                "problems": len(problems),
                "wins": int(wins[i]),
                "share_of_uniform": math.exp(shares[i] / len(problems)),
                "verdict": "first" if i == order[0] else _resolved(n, *lead),
                "reason": "",
            }
        )
    for label, (count, reason) in reasons.items():
        rows.append({"policy": label, "problems": count, "verdict": "not ranked", "reason": reason})
    schema: dict[str, Any] = {"policy": pl.String()} | dict.fromkeys(
        ("mean_rank", "rank_low", "rank_high"), pl.Float64()
    )
    schema |= {"problems": pl.Int64(), "wins": pl.Int64(), "share_of_uniform": pl.Float64()}
    return pl.DataFrame(rows, schema=schema | {"verdict": pl.String(), "reason": pl.String()})


def verdict(results: Results) -> str:
    """A few sentences for the top of a report: who has the lowest regret, whether that is resolved, what it was told and assumes.

    Policies that do not learn from rewards are yardsticks and do not win, unless there is nobody else.
    """
    if not results.measured:
        return "Nothing has been measured yet." + _shortfall(results)
    if len(results.plan.problems) == 1:
        said = _on_one(results, results.problems[0])
    else:
        said = _over_all(results)
    return said + _shortfall(results)


def _on_one(results: Results, played: Played) -> str:
    cells = {m.cell.label: m for m in results.on(played)}
    learners = [label for label, m in cells.items() if m.cell.policy.uses_rewards] or list(cells)
    best = min(learners, key=lambda label: (float(cells[label].final.mean()), label))
    mean, uniform = float(cells[best].final.mean()), _uniform(played)
    share = f", {_percent(mean / uniform)} of choosing arms at random" if uniform > 0.0 else ""
    said = f"On {played.name}, {best} has the lowest mean regret after {counted(played.horizon, 'pull')}: {_short(mean)}{share}"
    rivals = [row for row in paired(results, played, best).to_dicts() if row["policy"] in learners]
    if not rivals:
        said += "; no other policy was compared with it."
    else:
        open_ones = [row for row in rivals if row["verdict"] != "worse"]
        shown = open_ones[0] if open_ones else min(rivals, key=lambda row: row["difference_low"])
        n = shown["replications"]
        ends = f"{_short(shown['difference_low'])} to {_short(shown['difference_high'])}"
        of = counted(n, "replication")
        if not open_ones:
            said += f". That is resolved: the closest, {shown['policy']}, has more by {ends} (95 %, paired, {of}{_narrow(n)})."
        elif shown["ties"] == 1.0:
            said += f". {shown['policy']} has the same in every one of {of}."
        elif n < ENOUGH:
            said += f". That is not resolved: {of} {'are' if n != 1 else 'is'} too few to tell."
        else:
            said += f". That is not resolved: {_listed([row['policy'] for row in open_ones])} may be as good"
            said += f" (difference {ends}, 95 %, paired, {of}{_narrow(n)})."
        medians = {label: float(np.median(cells[label].final)) for label in learners}
        typical = min(rivals, key=lambda row: (medians[row["policy"]], row["policy"]))
        if typical["replications"] and medians[typical["policy"]] < medians[best]:
            name, wins = typical["policy"], typical["wins"]
            said += f" But {name} has the lowest median: {name} has less regret in {100.0 * wins:.0f} % of the replications."
    return f"{said} {_told(cells[best])}"


def _over_all(results: Results) -> str:
    problems = results.plan.problems
    rows = ranking(results).to_dicts()
    ranked = [row for row in rows if row["verdict"] != "not ranked"]
    if not ranked:
        return f"No policy has played all of the {len(problems)} problems in full, so none is ranked over all of them."
    first = ranked[0]
    n = results.plan.replications
    tied = [row["policy"] for row in ranked[1:] if row["mean_rank"] == first["mean_rank"]]
    of = f"{len(ranked)} {'policy' if len(ranked) == 1 else 'policies'}"
    said = (
        f"Over {len(problems)} problems, {first['policy']} {'shares' if tied else 'has'} the lowest mean rank of {of}"
    )
    said += f"{f' with {_listed(tied)}' if tied else ''}: {first['mean_rank']:.2f}"
    if not math.isnan(first["rank_low"]):
        said += f" (95 %: {first['rank_low']:.2f} to {first['rank_high']:.2f}{_narrow(n)})"
    open_ones = [row["policy"] for row in ranked[1:] if row["verdict"] != "worse"]
    if len(ranked) == 1:
        said += ", as the only one that is ranked."
    elif not open_ones:
        said += ", resolved from all others."
    elif n < ENOUGH:
        said += f". That is not resolved: {counted(n, 'replication')} {'are' if n != 1 else 'is'} too few to tell."
    else:
        said += f", not resolved from {_listed(open_ones)}."
    said += f" Its mean regret is the lowest on {first['wins']} of them"
    cells = [m for m in results.measured if m.cell.label == first["policy"]]
    facts = cells[0].cell.policy.facts
    said += f"; it had to be told {_words(facts.knows)}"
    met = {m.cell.played: assumption_met(m.cell.policy, m.cell.played.problem) for m in cells}
    broken = [results.plan.called(played) for played, holds in met.items() if holds is False]
    if not facts.assumption:
        return f"{said} and {_no_assumption(facts)}."
    if broken:
        return f"{said}, and what it assumes ({facts.assumption}) fails on {_listed(broken)}."
    holds = "may or may not hold" if None in met.values() else "holds on all"
    return f"{said}, and what it assumes ({facts.assumption}) {holds}."


def _told(measured: Measured) -> str:
    """What a policy was told, and whether what it assumes holds."""
    policy = measured.cell.policy.prepared(measured.cell.played.horizon)
    facts = policy.facts
    values = [f"{name} = {_short(getattr(policy, name))}" for name in facts.knows]
    said = f"It was told {_words(values)}"
    if not facts.assumption:
        return f"{said} and {_no_assumption(facts)}."
    met = {True: "holds here", False: "FAILS here", None: "may or may not hold here"}
    return f"{said}; it assumes {facts.assumption}, which {met[assumption_met(policy, measured.cell.played.problem)]}."


def _no_assumption(facts: Facts) -> str:
    return "assumes nothing more" if facts.bound else "has no proved bound on its regret"


def _shortfall(results: Results) -> str:
    """What is missing, in words; empty if nothing is."""
    if results.complete:
        return ""
    wanted = len(results.plan.cells) * results.plan.replications
    got = sum(len(m.replications) for m in results.measured)
    failed = sum(failure.unit.count for failure in results.failures)
    parts = [f"{failed:,} failed"] if failed else []
    missing = wanted - got - failed
    if missing > 0:
        parts.append(f"{missing:,} {'is' if missing == 1 else 'are'} still to come, when it is run again")
    return f" Incomplete: of {counted(wanted, 'replication')} {' and '.join(parts)}."


def _narrow(n: int) -> str:
    return "; intervals are too narrow with so few replications" if n < MANY else ""


def _short(value: Any) -> str:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.{0 if share >= 0.1 else 1}f} %"


def _words(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts) or "nothing"


def _listed(names: Sequence[str], most: int = 3) -> str:
    """A few names, and how many more there are."""
    if len(names) <= most:
        return _words(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


# --- intervals -------------------------------------------------------------------------------------------------------


def _resamples(n: int, key: int) -> Iterator[Floats]:
    """How often each of n replications is drawn, a row per resample, in blocks; the same on every call."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(key,)))
    rows = max(1, WEIGHTS // n)
    for start in range(0, RESAMPLES, rows):
        yield rng.multinomial(n, np.full(n, 1.0 / n), size=min(rows, RESAMPLES - start)).astype(np.float64)


def _resampled_means(values: Sequence[Floats], key: int = 0) -> Floats:
    """Means of the resamples, a row for each of the values, which are all of one length and share the resamples."""
    n = len(values[0])
    means = [float(each.mean()) for each in values]
    # Resampled about the mean: equal values then have exactly their own mean. One product for each of the values, since the last
    # bits of a joint one depend on who else is there.
    centred = [(each - mean) / n for each, mean in zip(values, means, strict=True)]
    parts = [np.stack([block @ each for each in centred]) for block in _resamples(n, key)]
    resampled: Floats = np.concatenate(parts, axis=1) + np.array(means)[:, None]
    return resampled


def _mean_intervals(values: Sequence[Floats]) -> list[tuple[float, float]]:
    """The bootstrap interval of the mean of each; NaN for fewer than two values."""
    intervals = [(math.nan, math.nan)] * len(values)
    by_size: dict[int, list[int]] = {}
    for i, each in enumerate(values):
        by_size.setdefault(len(each), []).append(i)
    for n, members in by_size.items():
        if n >= 2:
            for i, resampled in zip(members, _resampled_means([values[i] for i in members]), strict=True):
                intervals[i] = _ends(resampled, float(values[i].mean()), n)
    return intervals


def _with_student(values: Floats, low: float, high: float) -> tuple[float, float]:
    """An interval of the mean, widened to hold Student's; both are too narrow for few skewed values, each on its own side."""
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return low, high
    mean = float(values.mean())
    half = float(stdtrit(n - 1, (1.0 + CONFIDENCE) / 2.0) * values.std(ddof=1) / math.sqrt(n))
    return min(low, mean - half), max(high, mean + half)


def _ends(resampled: Floats, measured: float, n: int) -> tuple[float, float]:
    """The middle 95 % of the resamples, wide enough to hold what was measured: resampled ranks are drawn to the middle."""
    if n < 2:
        return math.nan, math.nan
    low, high = np.quantile(resampled, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
    return min(float(low), measured), max(float(high), measured)


def _quantile_interval(values: Floats, q: float) -> tuple[float, float]:
    """Order statistics that the q-quantile lies between with 95 % confidence, for any law; NaN where there are too few values.

    The number of values below the quantile is binomial. Each end fails with a probability of 2.5 % at most.
    """
    from scipy.special import bdtr

    n, tail = len(values), (1.0 - CONFIDENCE) / 2.0
    below = bdtr(np.arange(n), n, q)  # P(B <= k) for k = 0 .. n - 1
    first = int(np.searchsorted(below, tail, side="right"))  # so many order statistics are safely below
    last = int(np.searchsorted(below, 1.0 - tail, side="left"))  # this one, counted from 0, is safely above
    ordered = np.sort(values)
    return (float(ordered[first - 1]) if first else math.nan, float(ordered[last]) if last < n else math.nan)


def _resolved(n: int, low: float, high: float) -> str:
    if n >= ENOUGH and low > 0.0:
        return "worse"
    if n >= ENOUGH and high < 0.0:
        return "better"
    return "not resolved"


def _agreed(difference: Floats, word: str) -> str:
    """The verdict, if a two-sided sign test at 5 % says it too; ties tell nothing."""
    from scipy.special import bdtr

    more, less = int((difference > 0.0).sum()), int((difference < 0.0).sum())
    likely = more > less if word == "worse" else less > more
    clear = 2.0 * bdtr(min(more, less), more + less, 0.5) <= 1.0 - CONFIDENCE
    return word if word == "not resolved" or (likely and clear) else "not resolved"


# --- who is compared -------------------------------------------------------------------------------------------------


def _uniform(played: Played) -> float:
    return float(played.horizon * played.problem.gaps.mean())


def _on(results: Results, played: Played) -> tuple[Measured, ...]:
    measured = results.on(played)
    if not measured:
        known = ", ".join(f"{each.name} (horizon {each.horizon})" for each in results.problems) or "none yet"
        raise InvalidInput(f"nothing was measured on {played.name} with horizon {played.horizon}: there is {known}")
    return measured


def _common(cells: Iterable[Measured]) -> list[Floats]:
    """Final regret in the replications that all of them played, in the same order."""
    cells = list(cells)
    shared: Ints = cells[0].replications
    for m in cells[1:]:
        shared = np.intersect1d(shared, m.replications)
    found = []
    for m in cells:
        order = np.argsort(m.replications)
        found.append(m.final[order[np.searchsorted(m.replications, shared, sorter=order)]])
    return found


def _ranks(means: Floats) -> Floats:
    """Ranks from 1 within each column; equal numbers share the mean of their ranks. (scipy.stats takes 2 s to import.)"""
    ranks = np.empty_like(means)
    for i, row in enumerate(means):
        ranks[i] = (means < row).sum(axis=0) + 0.5 * (1.0 + (means == row).sum(axis=0))
    return ranks


def _rankable(results: Results) -> tuple[list[str], dict[str, tuple[int, str]]]:
    """Labels that can be ranked, and for the others how many problems they played in full, and why they are not ranked."""
    plan = results.plan
    labels = dict.fromkeys([cell.label for cell in plan.cells] + [each.label for each in plan.left_out])
    learns = {cell.label: cell.policy.uses_rewards for cell in plan.cells}
    left_out = {(each.label, each.played): each.reason for each in plan.left_out}
    counts = {(m.cell.label, m.cell.played): len(m.replications) for m in results.measured}
    failed = {(failure.unit.cell.label, failure.unit.cell.played) for failure in results.failures}
    everywhere = dict.fromkeys([*plan.problems, *(each.played for each in plan.left_out)])
    chosen, reasons = [], {}
    for label in labels:
        why = []
        full = 0
        for played in everywhere:
            count = counts.get((label, played), 0)
            if (label, played) in left_out:
                why.append(f"left out on {plan.called(played)}: {left_out[label, played]}")
            elif count < plan.replications:
                word = "failed" if (label, played) in failed else "to come"
                of = f"{plan.replications - count} of {counted(plan.replications, 'replication')}"
                why.append(f"{of} on {plan.called(played)} {word}")
            else:
                full += 1
        if why:
            reasons[label] = (full, why[0] + (f"; and on {len(why) - 1} more" if len(why) > 1 else ""))
        elif not learns[label] and any(learns.values()):
            reasons[label] = (full, "does not learn from rewards: a yardstick")
        else:
            chosen.append(label)
    return chosen, reasons
