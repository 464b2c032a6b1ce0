"""The output of ``robandit verify``: one block per statement, and a table of all verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from robandit.verify import Outcome

if TYPE_CHECKING:
    from rich.table import Table

COLOURS = {"holds": "green", "fails": "bold red", "inconclusive": "yellow"}


def block(outcome: Outcome) -> Table:
    """Return the block of one statement: its verdict, its text, the runs, and one line per claim."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    name = Text(f"{outcome.statement.name} ({outcome.seconds:.1f} s)", "bold")
    table.add_row(Text(outcome.verdict, COLOURS[outcome.verdict]), name)
    if outcome.headline:
        table.add_row("", Text(outcome.headline, "italic"))
    table.add_row("  says", Text(outcome.statement.says))
    table.add_row("  ran", Text(outcome.ran.ran))
    for finding in outcome.ran.findings:
        remarks = f" [{finding.remarks}]" if finding.remarks else ""
        line = f"{finding.claim}: {finding.seen}; predicted {finding.predicted}{remarks}"
        table.add_row(Text(f"  {finding.verdict}", COLOURS[finding.verdict] if finding.must else "dim"), Text(line))
    table.add_row()
    return table


def recap(outcomes: Sequence[Outcome]) -> Table:
    """Return a table with one line per verdict."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for outcome in outcomes:
        verdict = Text(outcome.verdict, COLOURS[outcome.verdict])
        table.add_row(verdict, outcome.statement.name, Text(outcome.headline))
    return table
