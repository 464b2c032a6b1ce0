"""The report of a comparison: one self-contained HTML file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

from robandit.experiments.results import Results
from robandit.experiments.statistics import Findings, Standing
from robandit.files import write_atomically
from robandit.problems import InOrder
from robandit.report.chart_data import chart_data
from robandit.report.failures import last_line, replications
from robandit.report.pieces import (
    Markup,
    Words,
    cell,
    document,
    escaped,
    facts,
    more,
    pairs,
    table,
    versions,
    warning,
)
from robandit.report.problem_section import interval, policy_name, problem_section
from robandit.wording import counted, number, percent, rounded

__all__ = ["write_page"]

TRACEBACKS = 20  # failed units that are shown


def write_page(findings: Findings, path: str | os.PathLike[str], *, command: str) -> None:
    """Write the report; ``command`` reproduces it."""
    page = _page(findings, command).encode()
    write_atomically(path, page)


def _page(findings: Findings, command: str) -> str:
    results, standings = findings.results, findings.standings
    many = len(results.plan.problems) > 1
    ranked = [row["policy"] for row in findings.ranking]
    labels = dict.fromkeys(ranked + [label for standing in standings for label in standing.measured])
    styles = {label: i for i, label in enumerate(labels)}
    parts = [problem_section(standing, i, styles, many=many) for i, standing in enumerate(standings)]
    title = _title(results)
    header = f"""<h1>{escaped(title)}</h1>
<div class="verdict">{_verdict(findings.verdict)}</div>
{_notes(results)}{_facts(results)}"""
    main = f"""{_overview(findings, styles) if many else ""}
{"".join(parts)}
{_failures(results)}{_reproduce(results, command)}"""
    data = chart_data(standings, styles)
    return document(title, header, main, styles=("report.css",), scripts=("charts.js", "report.js"), data=data)


def _title(results: Results) -> str:
    problems = results.plan.problems
    policies = counted(len({cell.label for cell in results.plan.cells}), "policy", "policies")
    where = problems[0].name if len(problems) == 1 else f"{len(problems)} problems"
    name = results.about.get("name")
    return f"{f'{name}: ' if name else ''}{policies} on {where}"


def _verdict(text: str) -> str:
    """Put the first sentence, which stands out, and the rest in paragraphs."""
    first, *rest = re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)
    return f"<p>{escaped(first)}</p>" + "".join(f"<p>{escaped(each)}</p>" for each in rest)


def _notes(results: Results) -> str:
    items = "".join(f"<li>{escaped(note)}</li>" for note in results.plan.notes)
    return warning(f"<p><strong>About the data</strong></p><ul>{items}</ul>") if items else ""


def _facts(results: Results) -> str:
    horizons = sorted({played.horizon for played in results.plan.problems})
    figures = {
        "pulls per replication": f"{horizons[0]:,}" + (f" to {horizons[-1]:,}" if len(horizons) > 1 else ""),
        "replications": f"{results.plan.replications:,}",
        "seed": str(results.plan.seed),
    }
    if len(results.plan.problems) == 1 and results.problems:
        played = results.problems[0]
        figures["regret of choosing arms at random"] = number(played.uniform_regret)
    in_order = [results.plan.called(p) for p in results.plan.problems if isinstance(p.problem, InOrder)]
    realised = (
        f"On {escaped(', '.join(in_order))} it is realised regret: the rewards of the arm with the greatest mean at those times, "
        "minus the rewards of the policy. It can be negative. There, a reward depends on the time, not on the number of pulls. "
        if in_order
        else ""
    )
    return (
        f'{facts(figures)}<p class="muted">Regret is pseudo-regret: the sum of the gaps of the pulled arms. {realised}'
        "Intervals have 95 % confidence. Within a replication, an arm gives all policies the same rewards in the same order. Each "
        "policy was given exactly the parameters it must know.</p>"
    )


def _overview(findings: Findings, styles: dict[str, int]) -> str:
    """Return the ranking over problems, and the regret on each problem."""
    body, reasons = [], []
    for row in findings.ranking:
        name = policy_name(row["policy"], styles, _failing(row["policy"], findings.standings))
        if row["verdict"] == "not ranked":
            body.append([name, *[cell(None)] * 3, '<td class="words">not ranked</td>'])
            reasons.append(f"<li><strong>{escaped(row['policy'])}</strong>: {escaped(row['reason'])}</li>")
            continue
        body.append(
            [
                name,
                cell(row["mean_rank"], f"{row['mean_rank']:.2f}", interval(row["rank_low"], row["rank_high"], ".2f")),
                cell(row["share_of_uniform"], percent(row["share_of_uniform"])),
                cell(row["wins"], f"{row['wins']} of {row['problems']}"),
                f'<td class="words">{escaped(row["verdict"])}</td>',
            ]
        )
    head = ["policy", "mean rank", "regret, % of random", "lowest on", Words("mean rank against the first")]
    unranked = f'<p>Not ranked:</p><ul class="reasons">{"".join(reasons)}</ul>' if reasons else ""
    return f"""<h2 id="ranking">Ranking over problems</h2>
<p>On each problem, rank 1 is the lowest mean regret. % of random: the regret in % of that of choosing arms at random, as a
geometric mean.</p>
{table(head, body, label="Ranking over problems", sort=1)}{unranked}
<h3>Mean regret on each problem, in % of choosing arms at random</h3>
{_heat_map(findings, styles)}
<h2>Problem by problem</h2>"""


def _failing(label: str, standings: Sequence[Standing]) -> str:
    """Return a badge that counts the problems on which the policy's assumption fails."""
    met = [row["assumption_met"] for standing in standings for row in standing.rows if row["policy"] == label]
    failing = met.count(False)
    return f' <span class="badge">⚠ assumption fails on {failing} of {len(met)}</span>' if failing else ""


def _heat_map(findings: Findings, styles: dict[str, int]) -> str:
    called = findings.results.plan.called
    links = (f'<a href="#p{i}">{escaped(called(each.played))}</a>' for i, each in enumerate(findings.standings))
    shares = [{row["policy"]: row["share_of_uniform"] for row in each.rows} for each in findings.standings]
    body = [[policy_name(label, styles), *(_heat_cell(each.get(label)) for each in shares)] for label in styles]
    return table(["policy", *map(Markup, links)], body, label="Mean regret of each policy on each problem", kind="heat")


def _heat_cell(share: float | None) -> str:
    if share is None or math.isnan(share):
        return cell(None)
    levels = ((0.05, "h1"), (0.15, "h2"), (0.4, "h3"), (0.8, "h4"), (1.05, "h5"))
    level = next((name for most, name in levels if share < most), "h6")
    return f'<td class="{level}" data-v="{rounded(share)}">{percent(share).removesuffix(" %")}</td>'


def _failures(results: Results) -> str:
    if not results.failures:
        return ""
    items = []
    for each in results.failures[:TRACEBACKS]:
        unit = each.unit
        words = f"{unit.cell.label} on {results.plan.called(unit.cell.played)}, {replications(unit)}"
        items.append(
            f"<p>{escaped(words)}, tried {counted(each.tries, 'time')}: <code>{escaped(last_line(each.traceback))}</code></p>"
            + more("Traceback", f"<pre>{escaped(each.traceback)}</pre>")
        )
    if len(results.failures) > TRACEBACKS:
        items.append(f"<p>And {len(results.failures) - TRACEBACKS} more.</p>")
    return f"<h2>Failed units</h2>{warning(''.join(items))}"


def _reproduce(results: Results, command: str) -> str:
    about = results.about or {"versions": versions("numpy", "numba", "scipy")}
    details = {
        str(key): _text(value)
        for key, value in about.items()
        if value and value != command and key not in ("name", "spec")  # which are elsewhere on the page
    }
    text = results.about.get("spec")
    spec = more("The spec", f"<pre><code>{escaped(text)}</code></pre>") if text else ""
    return f"""<h2>How to reproduce this report</h2>
<pre><code>{escaped(command)}</code></pre>{spec}
<p>The same seed gives the same regret for any number of threads, with the same versions on a similar machine. Times differ.</p>
{pairs(details, label="Versions and machine")}"""


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(each) for each in value)
    return str(value)
