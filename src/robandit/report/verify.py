"""The HTML page of the checks, and the JSON file of its data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from robandit.files import write_atomically
from robandit.report.pieces import document, escaped, versions
from robandit.verify import Effort, Outcome
from robandit.verify.statement import Evidence, Row, number
from robandit.wording import counted

FORMAT_VERSION = 3
"""Format 1 had figures as Vega-Lite specifications, and format 2 their rows; format 3 has the rows of a table."""


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return one line with the number of statements of each verdict."""
    counts = {verdict: sum(o.verdict == verdict for o in outcomes) for verdict in ("holds", "inconclusive", "fails")}
    hold, fail = counted(counts["holds"], "holds", "hold"), counted(counts["fails"], "fails", "fail")
    verdicts = f"{hold}, {counts['inconclusive']} inconclusive, {fail}"
    return f"{counted(len(outcomes), 'statement')}: {verdicts} ({sum(o.seconds for o in outcomes):.0f} s)"


def write_findings(
    outcomes: Sequence[Outcome], page: str | Path, data: str | Path, *, command: str, effort: Effort
) -> None:
    """Write the page and the JSON file; ``command`` reproduces them."""
    packages = versions("numpy", "numba", "scipy")
    record = {
        "format": FORMAT_VERSION,
        "command": command,
        "quick": effort.quick,
        "seed": effort.seed,
        "versions": packages,
        "statements": [outcome.to_dict() for outcome in outcomes],
    }
    write_atomically(data, json.dumps(record, indent=1, allow_nan=False).encode())
    write_atomically(page, _page(outcomes, command, packages).encode())


def _page(outcomes: Sequence[Outcome], command: str, packages: dict[str, str]) -> str:
    rows = "".join(
        f"<tr><td><a href='#{o.statement.key}'>{escaped(o.statement.name)}</a></td><td>{_badge(o.verdict)}</td>"
        f"<td class=words>{escaped(o.statement.says)}{_note(o.headline)}</td>"
        f"<td class='number seconds'>{o.seconds:.1f}</td></tr>\n"
        for o in outcomes
    )
    used = ", ".join(f"{name} {number}" for name, number in packages.items())
    header = f"""<h1>{escaped(summary(outcomes))}</h1>
<p>Statements of Genalti, Marsigli, Gatti, Metelli, (eps, u)-adaptive regret minimization in heavy-tailed bandits (COLT 2024),
and our own statements about AdaKL-UCB, marked (ours). Each is split into claims about a number. A claim holds if the confidence
interval of the measured number lies in the predicted range. It fails if the interval lies outside, and is inconclusive
otherwise. Intervals of probabilities and quantiles are exact. Intervals of means and exponents are nominal (Student's): with
few, skewed replications, their coverage is slightly lower than stated. A finite run may support a claim about a limit, but
cannot refute it.</p>"""
    main = f"""<table>{_head("statement", "verdict", "what it says", "seconds")}<tbody>
{rows}</tbody></table>
{"".join(_section(o) for o in outcomes)}
<h2>Reproduce this page</h2>
<p><code>{escaped(command)}</code>, with {escaped(used)}.</p>"""
    return document("Statements, checked", header, main, styles=("verify.css",))


def _section(outcome: Outcome) -> str:
    statement, ran = outcome.statement, outcome.ran
    rows = "".join(
        f"<tr><td class=words>{escaped(f.claim)}{_note(f.remarks)}</td><td class=number>{escaped(f.seen)}</td>"
        f"<td class=number>{escaped(f.predicted)}</td><td>{_badge(f.verdict)}</td></tr>\n"
        for f in ran.findings
    )
    return f"""<h2 id="{statement.key}">{escaped(statement.name)} {_badge(outcome.verdict)}</h2>
{f"<p><strong>{escaped(outcome.headline)}</strong></p>" if outcome.headline else ""}
<p>{escaped(statement.says)}</p>
<p>Run: {escaped(ran.ran)}</p>
<table>{_head("claim", "measured", "predicted", "verdict")}<tbody>
{rows}</tbody></table>
{_cases(ran)}
"""


def _cases(ran: Evidence) -> str:
    """Return the measured cases as a table that a reader can open."""
    if not ran.rows:
        return ""
    columns = [name for name in ("case", "series", "x", "limit") if any(name in row for row in ran.rows)]
    rows = "".join(f"<tr>{''.join(_cell(row, name) for name in columns)}</tr>\n" for row in ran.rows)
    return f"""<details><summary>All cases: {escaped(ran.title)}</summary>
<p>{escaped(ran.caption)}</p>
<table>{_head(*("measured" if name == "x" else name for name in columns))}<tbody>
{rows}</tbody></table></details>"""


def _cell(row: Row, name: str) -> str:
    value = row.get(name)
    if name in ("case", "series"):
        return f"<td class=words>{escaped(value or '')}</td>"
    text = "–" if value is None else number(value)
    if name == "x" and value is not None and row["low"] < row["high"]:
        text += f" ({number(row['low'])} to {number(row['high'])})"
    return f"<td class=number>{text}</td>"


def _head(*columns: str) -> str:
    return f"<thead><tr>{''.join(f'<th scope=col class=head-{column.split()[0]}>{column}</th>' for column in columns)}</tr></thead>"


def _note(text: str) -> str:
    return f"<br><span class=note>{escaped(text)}</span>" if text else ""


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict}">{verdict}</span>'
