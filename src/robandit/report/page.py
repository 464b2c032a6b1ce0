"""The report of a comparison, one self-contained HTML file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

from robandit.experiments.plan import Plan
from robandit.experiments.results import Failure, Results
from robandit.experiments.runner import RunOutcome
from robandit.experiments.statistics import Findings, Standing
from robandit.experiments.store import Store
from robandit.files import write_atomically
from robandit.problems import Changing, Delayed, InOrder
from robandit.report import pieces
from robandit.report.chart_data import chart_data
from robandit.report.pieces import Markup, cell, escaped, more, table, words_cell
from robandit.report.problem_section import interval, policy_name, problem_section
from robandit.simulate.result import Result
from robandit.validation import invalid
from robandit.wording import counted, number, percent, rounded

TRACEBACKS = 20  # the maximal number of failed units that are shown


def write(
    results: RunOutcome | Store | Results | Result, path: str | os.PathLike[str], *, name: str = "simulation"
) -> None:
    """Write the report of an experiment or a simulation: one HTML file, which needs no other file and no network.

    Parameters
    ----------
    results
        What `robandit.experiments.run` returns, a run folder (`Store`), its `Results`, or what `robandit.simulate` returns.
    path
        The HTML file to write.
    name
        The name of the problem of a simulation, which has none.

    Examples
    --------
    >>> import robandit as rb
    >>> result = rb.simulate([rb.UCB1(), rb.EpsilonGreedy()], rb.problems.gaussian(means=[1.0, 0.0]), 100, 5, seed=1)
    >>> rb.report.write(result, "page.html")  # doctest: +SKIP
    """
    if isinstance(results, RunOutcome):
        results = results.store
    if isinstance(results, Store):
        results = results.results()
    if isinstance(results, Result):
        results = Results.of_simulation(results, name)
    if not isinstance(results, Results):
        rule = "results of robandit.experiments.run or robandit.simulate"
        raise invalid("results", results, rule, hint="for a folder, pass robandit.experiments.Store.open(folder)")
    write_page(Findings(results), path, command=str(results.about.get("command", "")))


def write_page(findings: Findings, path: str | os.PathLike[str], *, command: str) -> None:
    """Write the report; ``command`` is the command that reproduces it."""
    results, standings = findings.results, findings.standings
    many = len(results.plan.problems) > 1
    ranked = [row["policy"] for row in findings.ranking]
    labels = dict.fromkeys(ranked + [label for standing in standings for label in standing.measured])
    styles = {label: i for i, label in enumerate(labels)}
    sections = [problem_section(standing, i, styles, many=many) for i, standing in enumerate(standings)]
    title = _title(results)
    # The first sentence of the verdict stands out.
    sentences = [*findings.worth, *findings.costs, *re.split(r"(?<=\.) (?=[A-Z])", findings.verdict, maxsplit=1)]
    verdict = "".join(f"<p>{escaped(each)}</p>" for each in sentences)
    items = "".join(f"<li>{escaped(note)}</li>" for note in results.plan.notes)
    notes = pieces.warning(f"<p><strong>About the data</strong></p><ul>{items}</ul>") if items else ""
    header = f"""<h1>{escaped(title)}</h1>
{pieces.warnings(results.plan.cautions)}<div class="verdict">{verdict}</div>
{notes}{_facts(results)}"""
    main = f"""{_overview(findings, styles) if many else ""}
{"".join(sections)}
{_failures(results)}{_reproduce(results, command)}"""
    data = chart_data(standings, styles)
    page = pieces.document(title, header, main, styles=("report.css",), scripts=("charts.js", "report.js"), data=data)
    write_atomically(path, page.encode())


def _title(results: Results) -> str:
    problems = results.plan.problems
    policies = counted(len({cell.label for cell in results.plan.cells}), "policy", "policies")
    where = problems[0].name if len(problems) == 1 else f"{len(problems)} problems"
    name = results.about.get("name")
    return f"{f'{name}: ' if name else ''}{policies} on {where}"


def _facts(results: Results) -> str:
    horizons = sorted({played.horizon for played in results.plan.problems})
    figures = {
        "pulls per replication": f"{horizons[0]:,}" + (f" to {horizons[-1]:,}" if len(horizons) > 1 else ""),
        "replications": f"{results.plan.replications:,}",
        "seed": str(results.plan.seed),
    }
    if len(results.plan.problems) == 1 and results.problems:
        figures["regret of choosing arms at random"] = number(results.problems[0].uniform_regret)
    named = [(results.plan.called(p), p.problem) for p in results.plan.problems]
    late = [name for name, problem in named if isinstance(problem, Delayed)]
    named = [(name, problem.problem if isinstance(problem, Delayed) else problem) for name, problem in named]
    in_order = [name for name, problem in named if isinstance(problem, InOrder)]
    realised = (
        f"On {escaped(', '.join(in_order))} it is realised regret: how much better the arm with the best mean did than the "
        "policy at the same times. It can be negative. What an arm gives depends on the time there, not on the pulls. "
        if in_order
        else ""
    )
    changing = [name for name, problem in named if isinstance(problem, Changing)]
    dynamic = (
        f"On {escaped(', '.join(changing))} laws change. Regret is dynamic there: it compares each pull with the arm that is "
        "the best at that time. The laws, means and gaps shown are those at the start. "
        if changing
        else ""
    )
    delays = f"On {escaped(', '.join(late))} rewards come late. " if late else ""
    return (
        f'{pieces.facts(figures)}<p class="muted">Regret is pseudo-regret: the sum of the gaps of the pulled arms. '
        f"{realised}{dynamic}{delays}"
        "Intervals have 95 % confidence. Within a replication, an arm gives all policies the same rewards in the same order. Each "
        "policy is given exactly the parameters it must know.</p>"
    )


def _overview(findings: Findings, styles: dict[str, int]) -> str:
    """Return the ranking over problems, and the table of regret on each problem."""
    rows, reasons = [], []
    for row in findings.ranking:
        cells = [cell(None)] * 3
        if row["verdict"] == "not ranked":
            reasons.append(f"<li><strong>{escaped(row['policy'])}</strong>: {escaped(row['reason'])}</li>")
        else:
            cells = [
                cell(row["mean_rank"], f"{row['mean_rank']:.2f}", interval(row["rank_low"], row["rank_high"], ".2f")),
                cell(row["share_of_uniform"], percent(row["share_of_uniform"])),
                cell(row["wins"], f"{row['wins']} of {row['problems']}"),
            ]
        rows.append(
            {
                "policy": policy_name(row["policy"], styles, _failing(row["policy"], findings.standings)),
                **dict(zip(("mean rank", "regret, % of random", "lowest on"), cells, strict=True)),
                "mean rank against the first": words_cell(escaped(row["verdict"])),
            }
        )
    unranked = f'<p>Not ranked:</p><ul class="reasons">{"".join(reasons)}</ul>' if reasons else ""
    return f"""<h2 id="ranking">Ranking over problems</h2>
<p>On each problem, rank 1 is the lowest mean regret. % of random: the regret in % of the regret of choosing arms at random
(geometric mean).</p>
{table(rows, label="Ranking over problems", sort=1)}{unranked}
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
    shares = {}
    for i, each in enumerate(findings.standings):
        link = Markup(f'<a href="#p{i}">{escaped(called(each.played))}</a>')
        shares[link] = {row["policy"]: row["share_of_uniform"] for row in each.rows}
    rows = [
        {"policy": policy_name(label, styles)} | {link: _heat_cell(share.get(label)) for link, share in shares.items()}
        for label in styles
    ]
    return table(rows, label="Mean regret of each policy on each problem", kind="heat")


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
        unit, error = map(escaped, failure_text(results.plan, each))
        traceback = more("Traceback", f"<pre>{escaped(each.traceback)}</pre>")
        items.append(f"<p>{unit}: <code>{error}</code></p>{traceback}")
    if len(results.failures) > TRACEBACKS:
        items.append(f"<p>And {len(results.failures) - TRACEBACKS} more.</p>")
    return f"<h2>Failed units</h2>{pieces.warning(''.join(items))}"


def failure_text(plan: Plan, failure: Failure) -> tuple[str, str]:
    """Return a description of the failed unit, and the last line of its traceback."""
    unit = failure.unit
    last = unit.first + unit.count - 1
    numbers = f"replication {last}" if unit.count == 1 else f"replications {unit.first} to {last}"
    where, tries = plan.called(unit.cell.played), counted(failure.tries, "time")
    error = (failure.traceback.strip().splitlines() or ["no traceback"])[-1]
    return f"{unit.cell.label} failed on {where}, {numbers}, tried {tries}", error


def _reproduce(results: Results, command: str) -> str:
    about = results.about or {"versions": pieces.versions("numpy", "numba", "scipy")}
    details = {
        str(key): _text(value)
        for key, value in about.items()
        if value and value != command and key not in ("name", "spec", "modules")  # these are elsewhere on the page
    }
    text = results.about.get("spec")
    texts = ({"The spec": text} if text else {}) | {
        f"The module {name}": source for name, source in results.about.get("modules", {}).items()
    }
    spec = "".join(more(title, f"<pre><code>{escaped(each)}</code></pre>") for title, each in texts.items())
    remark = f"""{spec}
<p>With the same versions on a similar machine, the same seed gives the same regret for any number of threads. Times differ.</p>"""
    return pieces.reproduction("report", command, remark, details, label="Versions and machine")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(each) for each in value)
    return str(value)
