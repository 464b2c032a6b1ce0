"""The end of a comparison: the report is written, the tables are printed."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.terminal.leaderboard import leaderboards, remarks
from robandit.experiments.results import Results
from robandit.experiments.statistics import Findings
from robandit.report.figures import write_figures
from robandit.report.page import write_page


def conclude(results: Results, page: Path, *, command: str, figures: Path | None = None) -> int:
    """Write the page and the figures, print tables, remarks and the verdict, and return the exit code: 3 if a unit failed."""
    from rich.console import Console

    findings = Findings(results)
    write_page(findings, page, command=command)
    drawn = [] if figures is None else write_figures(findings, figures)
    console = Console()
    for table in leaderboards(findings):
        console.print(table)
    for line in remarks(findings):
        print(line)
    print(findings.verdict)
    if figures is not None:
        print(f"figures: {len(drawn)} files in {figures}")
    print(f"report: {page}")
    return 3 if results.failures else 0
