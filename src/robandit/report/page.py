"""The report: one HTML file that needs nothing else, made from what an experiment measured."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from robandit.experiments.plan import Played
from robandit.experiments.results import Results
from robandit.experiments.statistics import Findings, Standing, curves, worst_replications
from robandit.files import write_atomically
from robandit.laws import Empirical, Law, Weighted
from robandit.laws.median import law_median
from robandit.problems import InOrder, Problem
from robandit.report.chart_data import chart_data, shares
from robandit.report.pieces import (
    Markup,
    Words,
    cell,
    document,
    escaped,
    facts,
    figure,
    more,
    pairs,
    swatch,
    table,
    versions,
    warning,
)
from robandit.wording import counted, number, percent, rounded

__all__ = ["write_page"]

FEW_ARMS = 12  # whose table is open at first, and fits on paper
DECADES = 5  # columns of the table of regret over time
TRACEBACKS = 20  # shown in full


def write_page(findings: Findings, path: str | os.PathLike[str], *, command: str) -> None:
    """Write the report; ``command`` is what a reader types to get it again."""
    page = _page(findings, command).encode()
    write_atomically(path, lambda file: file.write(page))


def _page(findings: Findings, command: str) -> str:
    results, standings = findings.results, findings.standings
    many = len(results.plan.problems) > 1
    ranked = [row["policy"] for row in findings.ranking]
    labels = dict.fromkeys(ranked + [label for standing in standings for label in standing.measured])
    styles = {label: i for i, label in enumerate(labels)}
    data = chart_data(standings, styles)
    parts = [_problem(standing, i, styles, many=many) for i, standing in enumerate(standings)]
    title = _title(results)
    header = f"""<h1>{escaped(title)}</h1>
<div class="verdict">{_verdict(findings.verdict)}</div>
{_notes(results)}{_facts(results)}"""
    main = f"""{_over_all(findings, styles) if many else ""}
{"".join(parts)}
{_failures(results)}{_reproduce(results, command)}"""
    return document(title, header, main, styles=("report.css",), scripts=("charts.js", "report.js"), data=data)


# --- the top ---------------------------------------------------------------------------------------------------------


def _title(results: Results) -> str:
    problems = results.plan.problems
    policies = counted(len({cell.label for cell in results.plan.cells}), "policy", "policies")
    title = f"{policies} on {problems[0].name if len(problems) == 1 else f'{len(problems)} problems'}"
    name = results.about.get("name")
    return f"{name}: {title}" if name else title


def _verdict(said: str) -> str:
    """The first sentence stands out."""
    first, *rest = re.split(r"(?<=\.) (?=[A-Z])", said, maxsplit=1)
    return f"<p>{escaped(first)}</p>" + "".join(f"<p>{escaped(each)}</p>" for each in rest)


def _notes(results: Results) -> str:
    """What was remarked about the data."""
    items = "".join(f"<li>{escaped(note)}</li>" for note in results.plan.notes)
    return warning(f"<p><strong>About the data</strong></p><ul>{items}</ul>") if items else ""


def _facts(results: Results) -> str:
    horizons = sorted({played.horizon for played in results.plan.problems})
    pulls = f"{horizons[0]:,}" + (f" to {horizons[-1]:,}" if len(horizons) > 1 else "")
    told = {
        "pulls in a replication": pulls,
        "replications": f"{results.plan.replications:,}",
        "seed": str(results.plan.seed),
    }
    if len(results.plan.problems) == 1 and results.problems:
        told["regret of choosing arms at random"] = number(results.problems[0].uniform_regret)
    in_order = [results.plan.called(p) for p in results.plan.problems if isinstance(p.problem, InOrder)]
    realised = (
        f"On {escaped(', '.join(in_order))} it is realised regret: what the arm with the greatest mean gave at those times, minus "
        "what the policy got, which can be negative; there a reward depends on the time, and not on how often the arm was pulled. "
        if in_order
        else ""
    )
    return (
        f'{facts(told)}<p class="muted">Regret is pseudo-regret: the gaps of the arms pulled, added up. {realised}'
        "Intervals are for 95 %. In a replication, an arm gives all policies the same rewards in the same order. Each policy was "
        "told exactly what it must know.</p>"
    )


def _over_all(findings: Findings, styles: dict[str, int]) -> str:
    """The ranking over problems, and regret on each beside the baseline."""
    body, reasons = [], []
    for row in findings.ranking:
        name = _name(row["policy"], styles, _broken(row["policy"], findings.standings))
        if row["verdict"] == "not ranked":
            body.append([name, *[cell(None)] * 3, '<td class="words">not ranked</td>'])
            reasons.append(f"<li><strong>{escaped(row['policy'])}</strong>: {escaped(row['reason'])}</li>")
            continue
        body.append(
            [
                name,
                cell(row["mean_rank"], f"{row['mean_rank']:.2f}", _range(row["rank_low"], row["rank_high"], ".2f")),
                cell(row["share_of_uniform"], percent(row["share_of_uniform"])),
                cell(row["wins"], f"{row['wins']} of {row['problems']}"),
                f'<td class="words">{escaped(row["verdict"])}</td>',
            ]
        )
    head = ["policy", "mean rank", "regret, % of random", "lowest on", Words("mean rank against the first")]
    why = f'<p>Not ranked:</p><ul class="reasons">{"".join(reasons)}</ul>' if reasons else ""
    return f"""<h2 id="ranking">Ranking over problems</h2>
<p>On each problem the lowest mean regret has rank 1. The share of the regret of choosing arms at random is a geometric mean.</p>
{table(head, body, label="Ranking over problems", sort=1)}{why}
<h3>Mean regret on each problem, in % of choosing arms at random</h3>
{_heat(findings, styles)}
<h2>Problem by problem</h2>"""


def _broken(label: str, standings: Sequence[Standing]) -> str:
    """On how many problems a policy's assumption fails, as a mark."""
    met = [row["assumption_met"] for standing in standings for row in standing.rows if row["policy"] == label]
    broken = met.count(False)
    return f' <span class="badge">⚠ assumption fails on {broken} of {len(met)}</span>' if broken else ""


def _heat(findings: Findings, styles: dict[str, int]) -> str:
    called = findings.results.plan.called
    links = (f'<a href="#p{i}">{escaped(called(s.played))}</a>' for i, s in enumerate(findings.standings))
    body = []
    shown = [{row["policy"]: row["share_of_uniform"] for row in s.rows} for s in findings.standings]
    for label in styles:
        cells = [_heat_cell(each.get(label)) for each in shown]
        body.append([_name(label, styles), *cells])
    return table(["policy", *map(Markup, links)], body, label="Mean regret of each policy on each problem", kind="heat")


def _heat_cell(share: float | None) -> str:
    if share is None or math.isnan(share):
        return cell(None)
    levels = ((0.05, "h1"), (0.15, "h2"), (0.4, "h3"), (0.8, "h4"), (1.05, "h5"))
    level = next((name for most, name in levels if share < most), "h6")
    return f'<td class="{level}" data-v="{rounded(share)}">{percent(share).removesuffix(" %")}</td>'


# --- a problem -------------------------------------------------------------------------------------------------------


def _problem(section: Standing, place: int, styles: dict[str, int], *, many: bool) -> str:
    results, played = section.results, section.played
    best = next(row for row in section.rows if row["policy"] == section.best)
    parts = [
        _warnings(section),
        "<h3>Leaderboard</h3>",
        _leaderboard(section, styles),
        _curves(section, place),
        _distribution(section, place),
        _pulls(section, place),
        _speed(section, place),
        _arms(section),
        _told(section),
        _worst(section),
        _left_out(results, played),
    ]
    content = "\n".join(part for part in parts if part)
    if not many:
        return f'<section id="p{place}">{content}</section>'
    words = f"{counted(played.horizon, 'pull')}, {counted(played.problem.arms, 'arm')}, "
    words += "recorded rewards; " if _recorded(played.problem) else f"tail index {number(played.problem.tail_index)}; "
    words += f"lowest mean regret: {best['policy']} ({percent(best['share_of_uniform'])} of random)"
    opened = " open" if place == 0 else ""
    return f"""<details class="problem" id="p{place}"{opened}>
<summary><h2>{escaped(played.name)}</h2><p class="muted">{escaped(words)}</p></summary>
{content}
</details>
"""


def _warnings(section: Standing) -> str:
    """Which policies play outside of what their bounds assume."""
    broken: dict[str, list[str]] = {}
    for row in section.rows:
        if row["assumption_met"] is False:
            broken.setdefault(row["assumption"], []).append(row["policy"])
    if not broken:
        return ""
    items = "".join(f"<li>{escaped(what)}: {escaped(', '.join(who))}</li>" for what, who in broken.items())
    return warning(
        "<p><strong>An assumption fails here.</strong> These policies play, but no guarantee of theirs applies to this problem. "
        f"What they assume:</p><ul>{items}</ul>"
    )


def _leaderboard(section: Standing, styles: dict[str, int]) -> str:
    best = section.best
    against = {row["policy"]: row for row in section.pairs}
    bests = list(section.played.problem.best_arms)
    body = []
    for row in section.rows:
        label = row["policy"]
        fails = ' <span class="badge">⚠ assumption fails</span>' if row["assumption_met"] is False else ""
        best_share = float(shares(section.measured[label])[bests].sum())
        body.append(
            [
                _name(label, styles, fails),
                cell(row["mean"], number(row["mean"]), _range(row["mean_low"], row["mean_high"])),
                _difference(against.get(label)),
                cell(row["median"], number(row["median"]), _range(row["median_low"], row["median_high"])),
                cell(row["q95"], number(row["q95"]), _range(row["q95_low"], row["q95_high"])),
                cell(row["worst"], number(row["worst"]), f"no. {row['worst_replication']}"),
                cell(row["share_of_uniform"], percent(row["share_of_uniform"])),
                cell(best_share, percent(best_share)),
                cell(row["ns_per_pull"], number(row["ns_per_pull"])),
                f'<td class="words">{escaped(row["knows"])}</td>',
            ]
        )
    head = [
        *("policy", "mean regret", "more than the best", "median", "95 % quantile", "worst"),
        *("% of random", "best arm pulled", "ns per pull", Words("had to be told")),
    ]
    listed = table(head, body, label=f"Leaderboard on {section.played.name}", sort=1)
    return (
        f"{listed}<p class='muted'><small>Below each number is its 95 % interval (≥ where so few replications give one end only), "
        "and below the worst regret the number of its replication. "
        f"More than the best: the mean difference to {escaped(best)} in the same replications; “not significant” where its "
        "interval holds 0, or wins and losses do not agree.</small></p>"
    )


def _difference(row: dict[str, Any] | None) -> str:
    if row is None:
        return cell(0.0, "–")
    ends = _range(row["difference_low"], row["difference_high"])
    open_ = "" if row["verdict"] == "worse" else row["verdict"]
    return cell(row["difference"], number(row["difference"]), ends, open_)


def _curves(section: Standing, place: int) -> str:
    measured = section.measured
    times = next(iter(measured.values())).checkpoints
    wanted = [10.0**j for j in range(1, 16) if 10.0**j < times[-1]][-(DECADES - 1) :]
    at = sorted({int(np.abs(times - t).argmin()) for t in wanted} | {len(times) - 1})
    body = []
    for label, each in measured.items():
        over_time = curves(each)
        shown = zip(*(over_time[name].to_numpy()[at].tolist() for name in ("median", "q05", "q95")), strict=True)
        body.append([_name(label), *(cell(m, number(m), _range(low, high)) for m, low, high in shown)])
    listed = table(["policy", *(counted(int(times[i]), "pull") for i in at)], body, label="Median regret over time")
    first, last = next(iter(section.rows)), section.rows[-1]
    alt = (
        f"Line chart of regret over {counted(section.played.horizon, 'pull')} for {len(body)} policies. At the end "
        f"{first['policy']} has a mean of {number(first['mean'])}, {last['policy']} {number(last['mean'])}. "
        "Left and right arrow keys read out values."
    )
    caption = (
        "Regret over time: a line per policy (the best 8 at first; click on names), bands from the 5 % to the 95 % quantile over "
        "replications. Dashed: a proved, repaired, derived or asymptotic bound on the mean regret, where its assumption holds and "
        "it says more than the number of pulls times the largest gap."
    )
    return (
        f"<h3>Regret over time</h3>{figure('curves', place, alt, caption)}{more('Regret over time as a table', listed)}"
    )


def _distribution(section: Standing, place: int) -> str:
    body = []
    for label, m in section.measured.items():
        numbers = [*np.quantile(m.final, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist(), float(m.final.max())]
        body.append([_name(label), *(cell(x, number(x)) for x in numbers)])
    head = ["policy", "5 %", "25 %", "median", "75 %", "95 %", "worst"]
    first, last = section.rows[0], section.rows[-1]
    alt = (
        f"Distribution of the regret at the horizon for {len(body)} policies, lowest mean first, from {first['policy']} (median "
        f"{number(first['median'])}) to {last['policy']} (median {number(last['median'])})."
    )
    caption = (
        "Regret at the horizon: dots are replications (at most 100), boxes hold the middle half, lines go from the 5 % to the 95 % "
        "quantile, the upright stroke is the median and the diamond the worst. On the log scale no regret "
        "at all, or less, stands at the left edge."
    )
    listed = table(head, body, label="Quantiles of the regret at the horizon")
    plot = figure("distribution", place, alt, caption)
    return f"<h3>Distribution of regret</h3>{plot}{more('Quantiles as a table', listed)}"


def _pulls(section: Standing, place: int) -> str:
    problem = section.played.problem
    order = np.argsort(problem.gaps, kind="stable").tolist()
    body = []
    for label, m in section.measured.items():
        share = shares(m)
        body.append([_name(label), *(cell(float(share[i]), percent(float(share[i]))) for i in order)])
    listed = table(["policy", *(f"arm {problem.names[i]}" for i in order)], body, label="Share of pulls of each arm")
    wide = problem.arms > FEW_ARMS
    first = section.rows[0]["policy"]
    best = float(shares(section.measured[first])[list(problem.best_arms)].sum())
    alt = f"Share of pulls that went to each arm. {first} pulled a best arm in {percent(best)} of all pulls."
    caption = "Share of pulls: the best arm first, then the others by their gap; the deeper the second colour, the larger the gap."
    return f"<h3>Pulls per arm</h3>{figure('pulls', place, alt, caption)}{more('Shares as a table', listed, wide=wide)}"


def _speed(section: Standing, place: int) -> str:
    known = [row for row in section.rows if math.isfinite(row["ns_per_pull"])]
    if not known:
        return ""
    fast, slow = (choose(known, key=lambda row: row["ns_per_pull"]) for choose in (min, max))
    alt = (
        f"Processor time of a pull, from {number(fast['ns_per_pull'])} ns ({fast['policy']}) to {number(slow['ns_per_pull'])} ns "
        f"({slow['policy']})."
    )
    caption = "Processor time of a pull, its reward included, compilation excluded; the fastest first. It varies between runs."
    return f"<h3>Speed</h3>{figure('speed', place, alt, caption)}"


def _arms(section: Standing) -> str:
    problem = section.played.problem
    body = []
    for i, law in enumerate(problem.laws):
        gap = float(problem.gaps[i])
        verdicts: list[str] = ["", ""]
        if gap == 0.0:  # policies assume it of the best arm only
            about = (law.truncated_nonpositivity(), law.truncated_nonpositivity(law_median(law)))
            verdicts = ["holds" if each.holds else "fails" for each in about]
        holds = [f'<td class="words">{each}</td>' for each in verdicts]
        body.append(
            [
                f'<th scope="row">{escaped(problem.names[i])}{" <small>(best)</small>" if gap == 0.0 else ""}</th>',
                f'<td class="words"><code>{escaped(_short(repr(law)))}</code></td>',
                cell(law.mean, _exact(law.mean)),
                cell(gap, _exact(gap)),
                cell(law.tail_index, _index(law)),
                cell(law.nonzero_probability, _exact(law.nonzero_probability)),
                *holds,
            ]
        )
    head = [
        *("arm", Words("law"), "mean", "gap", "tail index", "P(X ≠ 0)"),
        *(Words("assumption about 0"), Words("about its median")),
    ]
    listed = table(head, body, label=f"The arms of {section.played.name}")
    said = problem.assumption()
    words = f"""<p>{_tails(problem)} Truncated non-positivity (E[X 1{{|X| &gt; M}}] ≤ 0 for every M) of the best arm
{"holds" if said.holds else "<strong>fails</strong>"}: {escaped(_short(said.reason))}.</p>"""
    if problem.arms > FEW_ARMS:
        listed = more(f"All {problem.arms} arms", listed)
    return f"<h3>The problem and its tails</h3>{words}{listed}"


def _recorded(problem: Problem) -> bool:
    return any(isinstance(law, (Empirical, Weighted)) for law in problem.laws)


def _index(law: Law) -> str:
    if isinstance(law, (Empirical, Weighted)):
        return "recorded"
    return "∞" if math.isinf(law.tail_index) else _exact(law.tail_index)


def _tails(problem: Problem) -> str:
    index = problem.tail_index
    if _recorded(problem):
        return "Recorded rewards have all moments, whatever they come from: <code>robandit diagnose</code> looks at their tails."
    if math.isinf(index):
        return "Tail index ∞: all moments are finite."
    spread = "infinite variance" if index <= 2.0 else "a finite variance"
    return f"Tail index {_exact(index)}, so {spread}: moments of lower order are finite, others are not."


def _told(section: Standing) -> str:
    says = {True: "holds here", False: '<span class="badge">⚠ fails here</span>', None: "cannot say"}
    body = [
        [
            _name(row["policy"]),
            f'<td class="words"><code>{escaped(_short(row["told"]))}</code></td>',
            f'<td class="words">{escaped(row["knows"])}</td>',
            f'<td class="words">{escaped(row["assumption"] or "nothing")}</td>',
            f'<td class="words">{says[row["assumption_met"]] if row["assumption"] else "–"}</td>',
            f'<td class="words">{escaped(row["bound_name"] or "none is proved")}</td>',
        ]
        for row in section.rows
    ]
    head = [
        *("policy", Words("as it played"), Words("had to be told")),
        *(Words("assumes besides"), Words("which"), Words("regret bound")),
    ]
    listed = table(head, body, label=f"What each policy was told on {section.played.name}")
    return f"<h3>What each policy was told</h3>{listed}"


def _worst(section: Standing) -> str:
    worst: dict[str, list[dict[str, Any]]] = {}
    for row in worst_replications(section.results, section.played).to_dicts():
        worst.setdefault(row["policy"], []).append(row)
    most = max(len(rows) for rows in worst.values())
    body = []
    for label, rows in worst.items():
        cells = [cell(row["regret"], number(row["regret"]), f"replication {row['replication']}") for row in rows]
        body.append([_name(label), *cells, *[cell(None)] * (most - len(cells))])
    head = ["policy", *("worst" if i == 0 else f"no. {i + 1}" for i in range(most))]
    listed = table(head, body, label=f"The worst replications on {section.played.name}")
    words = (
        f"<p>To play one again, alone: <code>simulate(policy, problem, {section.played.horizon}, 1, "
        f"seed={section.results.plan.seed}, first=replication)</code>.</p>"
    )
    return more("The worst replications of each policy", words + listed)


def _left_out(results: Results, played: Played) -> str:
    left_out = [each for each in results.plan.left_out if each.played == played]
    if not left_out:
        return ""
    body = [[_name(each.label), f'<td class="words long">{escaped(each.reason)}</td>'] for each in left_out]
    return f"<h3>Left out</h3>{table(['policy', Words('why')], body, label='Policies that were left out')}"


# --- the end ---------------------------------------------------------------------------------------------------------


def _failures(results: Results) -> str:
    if not results.failures:
        return ""
    items = []
    for each in results.failures[:TRACEBACKS]:
        unit = each.unit
        last = (each.traceback.strip().splitlines() or ["no traceback"])[-1]
        which = f"s {unit.first} to {unit.first + unit.count - 1}" if unit.count > 1 else f" {unit.first}"
        words = f"{unit.cell.label} on {results.plan.called(unit.cell.played)}, replication{which}"
        items.append(
            f"<p>{escaped(words)}, tried {counted(each.tries, 'time')}: <code>{escaped(last)}</code></p>"
            + more("Traceback", f"<pre>{escaped(each.traceback)}</pre>")
        )
    if len(results.failures) > TRACEBACKS:
        items.append(f"<p>And {len(results.failures) - TRACEBACKS} more.</p>")
    return f"<h2>Failed</h2>{warning(''.join(items))}"


def _reproduce(results: Results, command: str) -> str:
    about = results.about or {"versions": versions("numpy", "numba", "scipy")}
    told = {
        str(key): _plain(value)
        for key, value in about.items()
        if value and value != command and key not in ("name", "spec")  # which have places of their own
    }
    text = results.about.get("spec")
    spec = more("The spec", f"<pre><code>{escaped(text)}</code></pre>") if text else ""
    return f"""<h2>To get this again</h2>
<pre><code>{escaped(command)}</code></pre>{spec}
<p>The same seed gives the same regret on any number of threads, with the same versions on such a machine. Times differ.</p>
{pairs(told, label="Versions and machine")}"""


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(each) for each in value)
    return str(value)


# --- words and numbers -----------------------------------------------------------------------------------------------


def _name(label: str, styles: dict[str, int] | None = None, badge: str = "") -> str:
    mark = swatch(styles[label]) if styles else ""
    name = re.sub(r"(?=\()|(?<=[,=_])", "<wbr>", escaped(label))  # where a long name may break
    return f'<th scope="row">{mark}{name}{badge}</th>'


def _exact(value: float) -> str:
    """A parameter of a problem, rather than a measurement."""
    return f"{value:.6g}"


def _range(low: float, high: float, form: str = "") -> str:
    """An interval in words; empty if neither end is known."""
    low_end, high_end = (format(end, form) if form else number(end) for end in (low, high))
    if math.isnan(low) or math.isnan(high):
        return "" if math.isnan(low) and math.isnan(high) else f"≥ {low_end}" if math.isnan(high) else f"≤ {high_end}"
    return f"{low_end} to {high_end}"


def _short(text: str) -> str:
    """Numbers with many digits as people want to read them."""
    return re.sub(r"\d+\.\d{6,}(e[+-]?\d+)?", lambda found: f"{float(found.group()):.6g}", text)
