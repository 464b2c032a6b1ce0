"""What the checks of the paper found: for the terminal, as JSON, and as one HTML page with a figure per statement."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robandit.files import write_atomically
from robandit.report.pieces import escaped, versions
from robandit.report.style import STYLE
from robandit.verify import Effort, Finding, Outcome
from robandit.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["block", "recap", "summary", "write_findings"]

FORMAT_VERSION = 1
COLOURS = {"holds": "green", "fails": "bold red", "inconclusive": "yellow"}
OWN_STYLE = """
.verdict { font-weight: 600; white-space: nowrap; border: 1px solid currentColor; border-radius: 4px; padding: 0 .4rem; }
.holds { color: light-dark(#14692f, #6fd08c); } .fails { color: light-dark(#b3261e, #ff8a80); }
.inconclusive { color: light-dark(#7a5200, #f0c060); }
.note { font-size: .9rem; opacity: .85; }
td, th { text-align: left; vertical-align: top; white-space: normal; }
td.number { white-space: nowrap; text-align: right; }
td.words { min-width: 7rem; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  th, td { padding: .3rem .35rem; } td.number { white-space: normal; }
  .verdict { padding: 0 .2rem; font-size: .85rem; } .seconds, .head-seconds { display: none; }
}
"""


def block(outcome: Outcome) -> Table:
    """One statement for the terminal: its verdict, what it says, what was run, and a line per claim."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    verdict = outcome.verdict
    table.add_row(Text(verdict, COLOURS[verdict]), Text(f"{outcome.statement.name} ({outcome.seconds:.1f} s)", "bold"))
    if outcome.headline:
        table.add_row("", Text(outcome.headline, "italic"))
    table.add_row("  says", Text(outcome.statement.says))
    table.add_row("  ran", Text(outcome.ran.ran))
    for finding in outcome.ran.findings:
        words = f"{finding.claim}: {finding.seen}; predicted {finding.predicted}{_aside(finding)}"
        table.add_row(Text(f"  {finding.verdict}", COLOURS[finding.verdict] if finding.must else "dim"), Text(words))
    table.add_row()
    return table


def _aside(finding: Finding) -> str:
    """What a reader must know besides: whether it had to hold, and what it demonstrates."""
    said = [finding.note] if finding.note else []
    if not finding.must and not finding.claim.startswith("arithmetic:"):  # which is what it is
        said.append("shown, need not hold")
    if finding.misprints:
        said.append(f"misprint {', '.join(finding.misprints)}")
    return f" [{'; '.join(said)}]" if said else ""


def recap(outcomes: Sequence[Outcome]) -> Table:
    """All verdicts at a glance."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for outcome in outcomes:
        verdict = Text(outcome.verdict, COLOURS[outcome.verdict])
        table.add_row(verdict, outcome.statement.name, Text(outcome.headline))
    return table


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many hold, in one line."""
    counts = {verdict: sum(o.verdict == verdict for o in outcomes) for verdict in COLOURS}
    told = f"{_of(counts['holds'], 'hold')}, {counts['inconclusive']} inconclusive, {_of(counts['fails'], 'fail')}"
    return f"{counted(len(outcomes), 'statement')}: {told} ({sum(o.seconds for o in outcomes):.0f} s)"


def _of(n: int, verb: str) -> str:
    return f"{n} {verb}{'s' if n == 1 else ''}"


def write_findings(
    outcomes: Sequence[Outcome],
    page: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    command: str,
    effort: Effort,
) -> None:
    """Write the page and the JSON file; ``command`` is what a reader types to get them again."""
    used = versions("numpy", "numba", "scipy")
    record = {
        "format": FORMAT_VERSION,
        "command": command,
        "quick": effort.quick,
        "seed": effort.seed,
        "versions": used,
        "statements": [outcome.to_dict() for outcome in outcomes],
    }
    text = json.dumps(record, indent=1, allow_nan=False).encode()
    write_atomically(data, lambda file: file.write(text))
    written = _page(outcomes, command, used).encode()
    write_atomically(page, lambda file: file.write(written))


def _page(outcomes: Sequence[Outcome], command: str, used: dict[str, str]) -> str:
    rows = "".join(
        f"<tr><td><a href='#{o.statement.key}'>{escaped(o.statement.name)}</a></td><td>{_badge(o.verdict)}</td>"
        f"<td class=words>{escaped(o.statement.says)}{_small(o.headline)}</td>"
        f"<td class='number seconds'>{o.seconds:.1f}</td></tr>\n"
        for o in outcomes
    )
    told = ", ".join(f"{name} {number}" for name, number in used.items())
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Robandit: the paper's statements, checked</title>
<style>{STYLE}{OWN_STYLE}</style>
<h1>{escaped(summary(outcomes))}</h1>
<p>Statements of Genalti, Marsigli, Gatti, Metelli, (eps, u)-adaptive regret minimization in heavy-tailed bandits (COLT 2024),
each broken into claims with a number. A claim holds if the confidence interval of what was measured lies in the
predicted range, fails if it lies outside, and is inconclusive otherwise. Intervals of probabilities and quantiles are exact;
those of means and exponents are nominal, Student's, and cover a little less than they say where replications are few and skewed.
A finite run may support a claim about a limit, but not refute it.</p>
<table>{_head("statement", "verdict", "what it says", "seconds")}<tbody>
{rows}</tbody></table>
{"".join(_section(o) for o in outcomes)}
<h2>To get this again</h2>
<p><code>{escaped(command)}</code>, with {escaped(told)}.</p>
</html>
"""


def _section(outcome: Outcome) -> str:
    statement, ran = outcome.statement, outcome.ran
    rows = "".join(
        f"<tr><td class=words>{escaped(f.claim)}{_note(f)}</td><td class=number>{escaped(f.seen)}</td>"
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
{_svg(ran.figure)}
<figcaption>{escaped(ran.caption)}</figcaption></figure>
"""


def _head(*columns: str) -> str:
    return f"<thead><tr>{''.join(f'<th scope=col class=head-{column.split()[0]}>{column}</th>' for column in columns)}</tr></thead>"


def _note(finding: Finding) -> str:
    return _small(_aside(finding).strip(" []"))


def _small(text: str) -> str:
    return f"<br><span class=note>{escaped(text)}</span>" if text else ""


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict}">{verdict}</span>'


def _svg(figure: dict[str, Any]) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(figure))
