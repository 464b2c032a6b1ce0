"""``robandit results``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Imports, import_given


def show(folder: Path, *, problem: list[str] | None = None, imports: Imports = None) -> None:
    """Show the best policy of a run, whether its lead is significant, the leaderboards, and the overall ranking.

    The command also works during the run. It then reports the number of missing replications.

    Parameters
    ----------
    folder
        The run folder, made by `robandit run` or `robandit replay`.
    problem
        Show only the leaderboard of this problem; repeat the option for more.
    """
    from rich.console import Console

    from robandit.cli.terminal.guard import shown
    from robandit.cli.terminal.leaderboard import leaderboard, leaderboards, remarks
    from robandit.experiments.statistics import Findings
    from robandit.experiments.store import Store
    from robandit.validation import choice

    import_given(imports)
    store = Store.open(folder)
    findings = Findings(store.results())
    console = Console()
    for caution in findings.results.plan.cautions:
        console.print(shown(caution))
    if problem:
        known = dict.fromkeys(played.name for played in findings.results.problems)
        for name in problem:
            choice(name, "--problem", known, hint=f"{folder} has no results on others")
        boards = [leaderboard(each) for each in findings.standings if each.played.name in problem]
    else:
        for line in (*findings.worth, *findings.costs, findings.verdict):
            console.print(shown(line))
        console.print()
        boards = leaderboards(findings)
    changes = [f"The numbers are those of the code of the run, but {change}." for change in store.changed_modules()]
    for part in (*boards, *map(shown, (*remarks(findings), *changes))):
        console.print(part)


def export(folder: Path, *, out: Path, imports: Imports = None) -> None:
    """Write a CSV file with one row per problem and policy. docs/reference/results.md describes the columns.

    Parameters
    ----------
    folder
        The run folder, made by `robandit run` or `robandit replay`.
    out
        The CSV file.
    """
    from robandit.cli.terminal.guard import write_line
    from robandit.experiments import statistics
    from robandit.experiments.store import Store
    from robandit.files import check_writable, write_atomically

    check_writable(out)
    import_given(imports)
    results = Store.open(folder).results()
    write_atomically(out, statistics.summary(results).write_csv().encode())
    write_line(f"written: {out}")
