"""Run a plan in a run folder, from the first unit to the report, and find the run folder of a spec."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from robandit.cli.terminal.guard import write_line

if TYPE_CHECKING:
    from robandit.experiments.dask_cluster import DaskEngine
    from robandit.experiments.plan import Plan
    from robandit.experiments.results import Results


def play_into(
    folder: Path,
    plan: Plan,
    *,
    threads: int | None,
    command: str,
    figures: Path | None,
    engine: AbstractContextManager[DaskEngine | None] | None = None,
    spec_text: str | None = None,
) -> NoReturn:
    """Run the missing units, write and print the results and the report, and exit."""
    import sys

    from robandit.cli.terminal.run_bar import run_bar
    from robandit.cli.terminal.tables import print_line
    from robandit.experiments.runner import run

    for caution in plan.cautions:
        print_line(caution)
    sys.stdout.flush()  # before the run, which may take long
    origin: dict[str, Any] = {"command": command, "spec_text": spec_text}
    try:
        with engine or nullcontext() as cluster:
            if cluster is not None:
                address = cluster.dashboard or "none; it needs bokeh on the scheduler's machine (pip install bokeh)"
                write_line(f"dashboard: {address}", sys.stderr)
            with another_with_out(folder), run_bar() as show:
                outcome = run(plan, folder, threads=threads, engine=cluster, progress=show, **origin)
    except KeyboardInterrupt:
        kept = f"finished units are kept in {folder}. To continue: {command}"
        write_line(f"robandit: interrupted; {kept}", sys.stderr)
        sys.exit(130)
    results = outcome.store.results()
    outcome.store.write_results(results=results)
    code = conclude(results, folder / "report.html", command=command, figures=figures)
    print(f"units: {outcome.done} played in {outcome.seconds:.0f} s, {outcome.before} done before")
    write_line(f"results: {folder / 'results'}")
    sys.exit(code)


def conclude(results: Results, page: Path, *, command: str, figures: Path | None) -> int:
    """Write the page and the figures; print the tables, remarks and the verdict. Return the exit code, 3 if a unit failed."""
    from robandit.cli.terminal.leaderboard import leaderboards, print_boards, remarks
    from robandit.cli.terminal.progress import display
    from robandit.cli.terminal.tables import print_line
    from robandit.experiments.statistics import Findings
    from robandit.report.figures import write_figures
    from robandit.report.page import write_page

    findings = Findings(results)
    with display("writing the report", time_left=False):
        write_page(findings, page, command=command)
        drawn = [] if figures is None else write_figures(findings, figures)
    for line in findings.worth:
        print_line(line)
    print_boards(leaderboards(findings))
    for line in (*remarks(findings), *findings.costs, findings.verdict):
        print_line(line)
    if figures is not None:
        write_line(f"figures: {len(drawn)} files in {figures}")
    write_line(f"report: {page}")
    return 3 if results.failures else 0


def run_folder(spec: Path, out: Path | None) -> Path:
    """Return the folder in which a spec is run: ``out``, or the path of the spec without its ending."""
    from robandit.errors import InvalidInput

    if out is None and not spec.suffix:
        raise InvalidInput(f"{spec} has no ending, so the run folder would have the same name: add --out FOLDER")
    return spec.with_suffix("") if out is None else out


@contextmanager
def another_with_out(folder: Path) -> Iterator[None]:
    """Add the option --out to an error that asks for another folder, and suggest to remove an existing run folder."""
    from robandit.errors import RobanditError

    try:
        yield
    except RobanditError as error:
        if error.code != "other-folder":
            raise
        remove = f", or remove {folder}" if os.path.exists(folder / "run.json") else ""
        raise type(error)(f"{error} with --out FOLDER{remove}", code=error.code) from error
