"""The HTML page of the checks of the paper, with a figure per statement, and the JSON file beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence

from robandit.files import write_atomically
from robandit.report.pieces import escaped, versions
from robandit.report.style import STYLE
from robandit.report.verify_figures import svg
from robandit.verify import Effort, Outcome
from robandit.wording import counted

__all__ = ["summary", "write_findings"]

FORMAT_VERSION = 2
"""1 had figures as Vega-Lite specifications; 2 has their rows."""

OWN_STYLE = """
.verdict { font-weight: 600; white-space: nowrap; border: 1px solid currentColor; border-radius: 4px; padding: 0 .4rem; }
.holds { color: light-dark(#14692f, #6fd08c); } .fails { color: light-dark(#b3261e, #ff8a80); }
.inconclusive { color: light-dark(#7a5200, #f0c060); }
.note { font-size: .9rem; opacity: .85; }
td, th { text-align: left; vertical-align: top; white-space: normal; }
td.number { white-space: nowrap; text-align: right; }
.head-measured, .head-predicted, .head-seconds { text-align: right; }
td.words { min-width: 7rem; overflow-wrap: anywhere; }
svg { display: block; margin: 0 auto .5rem; }
@media (max-width: 40rem) {
  th, td { padding: .3rem .35rem; } td.number { white-space: normal; }
  .verdict { padding: 0 .2rem; font-size: .85rem; } .seconds, .head-seconds { display: none; }
}
"""


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return one line with the number of statements of each verdict."""
    counts = {verdict: sum(o.verdict == verdict for o in outcomes) for verdict in ("holds", "inconclusive", "fails")}
    verdicts = (
        f"{_times(counts['holds'], 'hold')}, {counts['inconclusive']} inconclusive, {_times(counts['fails'], 'fail')}"
    )
    return f"{counted(len(outcomes), 'statement')}: {verdicts} ({sum(o.seconds for o in outcomes):.0f} s)"


def _times(n: int, verb: str) -> str:
    return f"{n} {verb}{'s' if n == 1 else ''}"


def write_findings(
    outcomes: Sequence[Outcome],
    page: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    command: str,
    effort: Effort,
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
    text = json.dumps(record, indent=1, allow_nan=False).encode()
    write_atomically(data, text)
    document = _page(outcomes, command, packages).encode()
    write_atomically(page, document)


def _page(outcomes: Sequence[Outcome], command: str, packages: dict[str, str]) -> str:
    rows = "".join(
        f"<tr><td><a href='#{o.statement.key}'>{escaped(o.statement.name)}</a></td><td>{_badge(o.verdict)}</td>"
        f"<td class=words>{escaped(o.statement.says)}{_note(o.headline)}</td>"
        f"<td class='number seconds'>{o.seconds:.1f}</td></tr>\n"
        for o in outcomes
    )
    used = ", ".join(f"{name} {number}" for name, number in packages.items())
    style = STYLE + OWN_STYLE
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Robandit: the paper's statements, checked</title>
<style>{style}</style>
<h1>{escaped(summary(outcomes))}</h1>
<p>Statements of Genalti, Marsigli, Gatti, Metelli, (eps, u)-adaptive regret minimization in heavy-tailed bandits (COLT 2024),
each split into claims with a number. A claim holds if the confidence interval of the measured number lies in the
predicted range, fails if it lies outside, and is inconclusive otherwise. Intervals of probabilities and quantiles are exact.
Intervals of means and exponents are nominal (Student's), and cover a little less than stated where replications are few and skewed.
A finite run may support a claim about a limit, but not refute it.</p>
<table>{_head("statement", "verdict", "what it says", "seconds")}<tbody>
{rows}</tbody></table>
{"".join(_section(o) for o in outcomes)}
<h2>Reproduce this page</h2>
<p><code>{escaped(command)}</code>, with {escaped(used)}.</p>
</html>
"""  # noqa: E501


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
<figure role="img" aria-label="{escaped(ran.caption)}">
{svg(ran.figure, statement.key)}
<figcaption>{escaped(ran.caption)}</figcaption></figure>
"""


def _head(*columns: str) -> str:
    return f"<thead><tr>{''.join(f'<th scope=col class=head-{column.split()[0]}>{column}</th>' for column in columns)}</tr></thead>"


def _note(text: str) -> str:
    return f"<br><span class=note>{escaped(text)}</span>" if text else ""


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict}">{verdict}</span>'
