"""``robandit results``."""

from __future__ import annotations

from pathlib import Path

from robandit.cli.options import Flag

__all__ = ["export", "show"]


def show(folder: Path, *, problem: list[str] | None = None) -> None:
    """Show the results of a run: who leads and whether that is significant, a leaderboard per problem, the ranking over all.

    It can be used while the run goes on: what is missing is said.

    Parameters
    ----------
    folder
        The run folder, as `robandit run` and `robandit replay` make it.
    problem
        Only the leaderboard of this problem; give the option once for each.
    """
    from rich.console import Console
    from rich.text import Text

    from robandit.cli.terminal.leaderboard import leaderboard, leaderboards, remarks
    from robandit.errors import InvalidInput
    from robandit.experiments.statistics import Findings
    from robandit.experiments.store import Store

    findings = Findings(Store.open(folder).results())
    console = Console()
    if problem:
        known = dict.fromkeys(played.name for played in findings.results.problems)
        for name in problem:
            if name not in known:
                raise InvalidInput(
                    f"no problem {name!r} has results in {folder}: there is {', '.join(known) or 'none'}"
                )
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
    """Write the results of a run as a CSV file, a row per problem and policy; docs/reference/results.md names the columns.

    Parameters
    ----------
    folder
        The run folder, as `robandit run` and `robandit replay` make it.
    out
        The CSV file.
    raw
        Regret itself instead: a row per problem, policy, replication and checkpoint.
    """
    from robandit.experiments import statistics
    from robandit.experiments.store import Store
    from robandit.files import check_writable, write_atomically

    check_writable(out)
    results = Store.open(folder).results()
    text = (statistics.raw(results) if raw else statistics.summary(results)).write_csv().encode()
    write_atomically(out, lambda file: file.write(text))
    print(f"written: {out}")
