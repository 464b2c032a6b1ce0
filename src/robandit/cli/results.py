"""``robandit results``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Flag

__all__ = ["export", "show"]


def show(folder: Path, *, problem: list[str] | None = None) -> None:
    """Show the results of a run: the best policy and whether its lead is significant, leaderboards, and the overall ranking.

    It also works while the run goes on; missing replications are reported.

    Parameters
    ----------
    folder
        The run folder, made by `robandit run` or `robandit replay`.
    problem
        Show only the leaderboard of this problem; repeat the option for more.
    """
    from rich.console import Console
    from rich.text import Text

    from robandit.cli.terminal.leaderboard import leaderboard, leaderboards, remarks
    from robandit.experiments.statistics import Findings
    from robandit.experiments.store import Store
    from robandit.validation import choice

    findings = Findings(Store.open(folder).results())
    console = Console()
    if problem:
        known = dict.fromkeys(played.name for played in findings.results.problems)
        for name in problem:
            choice(name, "--problem", known, hint=f"{folder} has no results on others")
        boards = [leaderboard(each) for each in findings.standings if each.played.name in problem]
    else:
        console.print(Text(findings.verdict))
        console.print()
        boards = leaderboards(findings)
    for board in boards:
        console.print(board)
    for line in remarks(findings):
        console.print(Text(line))


def export(folder: Path, *, out: Path, raw: Flag = False) -> None:
    """Write the results of a run to a CSV file, one row per problem and policy; docs/reference/results.md describes the columns.

    Parameters
    ----------
    folder
        The run folder, made by `robandit run` or `robandit replay`.
    out
        The CSV file.
    raw
        Write the regret itself instead: one row per problem, policy, replication and checkpoint.
    """
    from robandit.experiments import statistics
    from robandit.experiments.store import Store
    from robandit.files import check_writable, write_atomically

    check_writable(out)
    results = Store.open(folder).results()
    text = (statistics.raw(results) if raw else statistics.summary(results)).write_csv().encode()
    write_atomically(out, text)
    print(f"written: {out}")
