"""The section of one problem in a report."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from robandit.diagnostics.words import words
from robandit.experiments.statistics import Standing, curves
from robandit.experiments.verdicts import ENOUGH
from robandit.laws import Empirical, Law, Weighted
from robandit.laws.median import law_median
from robandit.problems import Problem
from robandit.problems.objectives import OfQuantile
from robandit.report.chart_data import shares
from robandit.report.pieces import cell, escaped, figure, more, number_cell, swatch, table, warning, words_cell
from robandit.wording import counted, number, percent

FEW_ARMS = 12  # tables of more arms are closed at first and not printed on paper
DECADES = 5  # the maximal number of times in the table of regret over time


def problem_section(section: Standing, place: int, styles: dict[str, int], *, many: bool) -> str:
    """Return the section number ``place`` as HTML; with ``many`` problems, readers can close it."""
    charts = (draw(section, place) for draw in (_curves, _distribution, _pulls))
    tables = (make(section) for make in (_arms, _parameters, _left_out))
    parts = [_warnings(section), "<h3>Leaderboard</h3>", _leaderboard(section, styles), *charts, *tables]
    content = "\n".join(part for part in parts if part)
    if not many:
        return f'<section id="p{place}">{content}</section>'
    played = section.played
    best = next(row for row in section.rows if row["policy"] == section.best)
    minimize = played.problem.minimize
    recorded = f"recorded {words(minimize).many}"
    tail = f"tail index {number(played.problem.tail_index)}{', costs' * minimize}"
    facts = (
        f"{counted(played.horizon, 'pull')}, {counted(played.problem.arms, 'arm')}, "
        f"{recorded if _recorded(*played.problem.laws) else tail}; "
        f"lowest mean regret: {best['policy']} ({percent(best['share_of_uniform'])} of random)"
    )
    opened = " open" if place == 0 else ""
    return f"""<details class="problem" id="p{place}"{opened}>
<summary><h2>{escaped(played.name)}</h2><p class="muted">{escaped(facts)}</p></summary>
{content}
</details>
"""


def _warnings(section: Standing) -> str:
    failing: dict[str, list[str]] = {}
    for row in section.rows:
        if row["assumption_met"] is False:
            failing.setdefault(row["assumption"], []).append(row["policy"])
    if not failing:
        return ""
    items = "".join(f"<li>{escaped(each)}: {escaped(', '.join(policies))}</li>" for each, policies in failing.items())
    return warning(
        "<p><strong>An assumption fails here.</strong> These policies play, but their guarantees do not apply to this problem. "
        f"Each line has an assumption and the policies that need it:</p><ul>{items}</ul>"
    )


def _leaderboard(section: Standing, styles: dict[str, int]) -> str:
    best = section.best
    against = {row["policy"]: row for row in section.pairs}
    best_arms = list(section.played.problem.best_arms)
    rows = []
    for row in section.rows:
        label = row["policy"]
        fails = ' <span class="badge">⚠ assumption fails</span>' if row["assumption_met"] is False else ""
        pair = against.get(label)
        doubt = "" if pair is None or pair["verdict"] == "worse" else pair["verdict"]
        best_share = float(shares(section.measured[label])[best_arms].sum())
        rows.append(
            {
                "policy": policy_name(label, styles, fails),
                **_against_record(section, row),
                "mean regret": _estimate(row, "mean"),
                "above the best": _estimate(pair, "difference", doubt) if pair else cell(0.0, "–"),
                "median": _estimate(row, "median"),
                "95 % quantile": _estimate(row, "q95"),
                "worst": number_cell(row["worst"], f"no. {row['worst_replication']}"),
                "% of random": cell(row["share_of_uniform"], percent(row["share_of_uniform"])),
                "best arm pulled": cell(best_share, percent(best_share)),
                "ns per pull": number_cell(row["ns_per_pull"]),
                "must know": words_cell(escaped(row["knows"])),
            }
        )
    sort = list(rows[0]).index("mean regret")
    if section.played.reference is not None:
        before = sum(row["mean"] <= section.reference[2] for row in section.rows)
        rows.insert(before, _reference(section, list(rows[0])))
    listed = table(rows, label=f"Leaderboard on {section.played.name}", sort=sort)
    return (
        f"{listed}<p class='muted'><small>{_about_record(section)}Below each number is its 95 % interval (≥: too few replications "
        "for an upper end). "
        "Below the worst regret is the number of its replication, which <code>simulate(policy, problem, "
        f"{section.played.horizon}, 1, seed={section.results.plan.seed}, first=number)</code> repeats. "
        f"Above the best: the mean difference to {escaped(best)} in the same replications. A note marks differences that are not "
        f"significant: the interval contains 0, a sign test of wins against losses does not agree, or fewer than {ENOUGH} "
        "replications were played.</small></p>"
    )


def _against_record(section: Standing, row: dict[str, Any]) -> dict[str, str]:
    """Return the cells of a replayed record: the policy's total, and its advantage over the record."""
    if section.played.reference is None:
        return {}
    doubt = row["versus"] if row["versus"] == "not significant" else ""
    cost, saves = _paid(section)
    return {cost: number_cell(row["total"]), saves: _estimate(row, "better_by", doubt)}


def _reference(section: Standing, columns: list[str]) -> dict[str, str]:
    name, total, regret = section.reference
    cells = {"policy": f'<th scope="row">{escaped(name)}</th>', _paid(section)[0]: number_cell(total)}
    cells["mean regret"] = number_cell(regret)
    return {column: cells.get(column, cell(None)) for column in columns}


def _paid(section: Standing) -> tuple[str, str]:
    return ("mean cost", "saves") if section.played.problem.minimize else ("mean reward", "gains")


def _about_record(section: Standing) -> str:
    if section.played.reference is None:
        return ""
    cost, saves = _paid(section)
    name = escaped(section.reference[0])
    covers = "includes" if section.played.reference.worth is None else "does not include"
    return (
        f"{cost.capitalize()}: the mean total of {counted(section.played.horizon, 'pull')}. {saves.capitalize()}: how much better "
        f"than {name}. Its interval {covers} the error of the record; a note marks differences whose interval contains 0. "
    )


def _estimate(row: dict[str, Any], name: str, note: str = "") -> str:
    return number_cell(row[name], interval(row[f"{name}_low"], row[f"{name}_high"]), note)


def _curves(section: Standing, place: int) -> str:
    measured = section.measured
    times = next(iter(measured.values())).checkpoints
    powers = [10.0**j for j in range(1, 16) if 10.0**j < times[-1]][-(DECADES - 1) :]
    columns = sorted({int(np.abs(times - t).argmin()) for t in powers} | {len(times) - 1})
    rows = []
    for label, each in measured.items():
        row = {"policy": policy_name(label)}
        for t, median, low, high in curves(each)[columns].select("t", "median", "q05", "q95").iter_rows():
            row[counted(t, "pull")] = number_cell(median, interval(low, high))
        rows.append(row)
    listed = table(rows, label="Median regret over time")
    first, last = section.rows[0], section.rows[-1]
    alt = (
        f"Line chart of regret over {counted(section.played.horizon, 'pull')} for {len(rows)} policies. At the end "
        f"{first['policy']} has a mean of {number(first['mean'])}, {last['policy']} {number(last['mean'])}. "
        "Left and right arrow keys read out values."
    )
    caption = (
        "Regret over time: one line per policy, with bands from the 5 % to the 95 % quantile over replications. At first the best "
        "8 are shown; click on names for others. Dashed: a proved, repaired, derived or asymptotic bound on the mean regret, if "
        "its assumption holds and it is below the number of pulls times the largest gap."
    )
    plot = figure("curves", place, alt, caption)
    return f"<h3>Regret over time</h3>{plot}{more('Regret over time as a table', listed)}"


def _distribution(section: Standing, place: int) -> str:
    quantiles = {"5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "worst": 1.0}
    rows = []
    for label, m in section.measured.items():
        cells = map(number_cell, np.quantile(m.final, list(quantiles.values())).tolist())
        rows.append({"policy": policy_name(label), **dict(zip(quantiles, cells, strict=True))})
    first, last = section.rows[0], section.rows[-1]
    alt = (
        f"Distribution of the final regret of {len(rows)} policies, lowest mean first, from {first['policy']} (median "
        f"{number(first['median'])}) to {last['policy']} (median {number(last['median'])})."
    )
    caption = (
        "Final regret: dots are replications (at most 100), boxes the middle half, and lines go from the 5 % to the 95 % quantile. "
        "The vertical stroke is the median, the diamond the worst. On the log scale, regret of 0 or less is at the left edge."
    )
    listed = table(rows, label="Quantiles of the final regret")
    plot = figure("distribution", place, alt, caption)
    return f"<h3>Distribution of regret</h3>{plot}{more('Quantiles as a table', listed)}"


def _pulls(section: Standing, place: int) -> str:
    problem = section.played.problem
    order = np.argsort(problem.gaps, kind="stable").tolist()
    rows = []
    for label, m in section.measured.items():
        parts = {f"arm {problem.names[i]}": float(shares(m)[i]) for i in order}
        rows.append({"policy": policy_name(label)} | {arm: cell(x, percent(x)) for arm, x in parts.items()})
    listed = table(rows, label="Share of pulls of each arm")
    first = section.rows[0]["policy"]
    best = float(shares(section.measured[first])[list(problem.best_arms)].sum())
    alt = f"Share of pulls of each arm. {first} pulled a best arm in {percent(best)} of all pulls."
    caption = "Share of pulls: the best arm is first, then the others by their gap. A darker orange means a larger gap."
    plot = figure("pulls", place, alt, caption)
    return f"<h3>Pulls per arm</h3>{plot}{more('Shares as a table', listed, wide=problem.arms > FEW_ARMS)}"


def _arms(section: Standing) -> str:
    problem = section.played.problem
    aim = problem.objective.text if isinstance(problem, OfQuantile) else ""
    values = problem.quantiles if isinstance(problem, OfQuantile) else problem.means
    rows: list[dict[str, str]] = []
    for i, law in enumerate(problem.laws):
        reward = problem.reward_laws[i]
        gap = float(problem.gaps[i])
        verdicts = ["", ""]
        if gap == 0.0:  # the assumption concerns only the best arm
            about = (reward.truncated_nonpositivity(), reward.truncated_nonpositivity(law_median(reward)))
            verdicts = ["holds" if each.holds else "fails" for each in about]
        index = "recorded" if _recorded(law) else f"{law.tail_index:.6g}".replace("inf", "∞")
        best = " <small>(best)</small>" if gap == 0.0 else ""
        rows.append(
            {
                "arm": f'<th scope="row">{escaped(problem.names[i])}{best}</th>',
                "law": words_cell(f"<code>{escaped(_shortened(repr(law)))}</code>"),
                "mean": cell(law.mean, f"{law.mean:.6g}"),
                **({aim: cell(float(values[i]), f"{values[i]:.6g}")} if aim else {}),
                "gap": cell(gap, f"{gap:.6g}"),
                "tail index": cell(law.tail_index, index),
                "P(X ≠ 0)": cell(law.nonzero_probability, f"{law.nonzero_probability:.6g}"),
                "assumption about 0": words_cell(verdicts[0]),
                "about its median": words_cell(verdicts[1]),
            }
        )
    listed = table(rows, label=f"The arms of {section.played.name}")
    assumption = problem.assumption()
    sign, relation, of = ("Costs, minimised. ", "≥", "for minus the cost, ") if problem.minimize else ("", "≤", "")
    name = words(problem.minimize).assumption.capitalize()
    text = f"""<p>{sign}{_tails(problem)} {name} (E[X 1{{|X| &gt; M}}] {relation} 0 for every M) of the best arm
{"holds" if assumption.holds else "<strong>fails</strong>"}: {of}{escaped(_shortened(assumption.reason))}.</p>"""
    if problem.arms > FEW_ARMS:
        listed = more(f"All {problem.arms} arms", listed)
    return f"<h3>The problem and its tails</h3>{text}{listed}"


def _recorded(*laws: Law) -> bool:
    return any(isinstance(law, (Empirical, Weighted)) for law in laws)


def _tails(problem: Problem) -> str:
    index = problem.tail_index
    if _recorded(*problem.laws):
        many = words(problem.minimize).many
        return f"Recorded {many} are finite, so all moments exist. <code>robandit diagnose</code> studies their tails."
    if math.isinf(index):
        return "Tail index ∞: all moments are finite."
    variance = "infinite variance" if index <= 2.0 else "a finite variance"
    return f"Tail index {index:.6g}, so {variance}: only moments of lower order than the index are finite."


def _parameters(section: Standing) -> str:
    verdicts = {True: "holds", False: '<span class="badge">⚠ fails here</span>', None: "unknown"}
    rows = []
    for row in section.rows:
        words = {
            "parameters": f"<code>{escaped(_shortened(row['told']))}</code>",
            "must know": escaped(row["knows"]),
            "other assumption": escaped(row["assumption"] or "none"),
            "on this problem": verdicts[row["assumption_met"]] if row["assumption"] else "–",
            "regret bound": escaped(row["bound_name"] or "none proved"),
        }
        rows.append({"policy": policy_name(row["policy"])} | {name: words_cell(text) for name, text in words.items()})
    listed = table(rows, label=f"Parameters and assumptions on {section.played.name}")
    return f"<h3>Parameters and assumptions</h3>{listed}"


def _left_out(section: Standing) -> str:
    left_out = [each for each in section.results.plan.left_out if each.played == section.played]
    if not left_out:
        return ""
    rows = [
        {"policy": policy_name(each.label), "reason": words_cell(escaped(each.reason), "words long")}
        for each in left_out
    ]
    return f"<h3>Skipped policies</h3>{table(rows, label='Skipped policies')}"


def policy_name(label: str, styles: dict[str, int] | None = None, badge: str = "") -> str:
    """Return the head of a policy's table row, with the mark of its line if ``styles`` are given."""
    mark = swatch(styles[label]) if styles else ""
    name = re.sub(r"(?=\()|(?<=[,=_])", "<wbr>", escaped(label))  # a long name may break here
    return f'<th scope="row">{mark}{name}{badge}</th>'


def interval(low: float, high: float, form: str = "") -> str:
    """Format an interval; return an empty text if neither end is known."""
    low_end, high_end = (format(end, form) if form else number(end) for end in (low, high))
    if math.isnan(low) or math.isnan(high):
        return "" if math.isnan(low) and math.isnan(high) else f"≥ {low_end}" if math.isnan(high) else f"≤ {high_end}"
    return f"{low_end} to {high_end}"


def _shortened(text: str) -> str:
    """Shorten numbers with many digits."""
    return re.sub(r"\d+\.\d{6,}(e[+-]?\d+)?", lambda match: f"{float(match.group()):.6g}", text)
