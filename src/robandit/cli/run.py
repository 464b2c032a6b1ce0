"""``robandit run``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["run"]


def run(spec: Path, *, out: Path | None = None, threads: int | None = None, figures: Path | None = None) -> None:
    """Play an experiment that a TOML file describes; run it again to go on where it stopped.

    What is finished is kept in a folder, unit by unit: whatever ends the run, at most the units under way are lost, and the same
    command goes on. A unit that fails is tried again, then recorded, and the rest goes on. At the end the folder has
    `results/` (tidy Parquet) and `report.html`. `robandit spec init` writes a spec to start from. Exit code 3 says that some units
    failed.

    Parameters
    ----------
    spec
        The TOML file: problems, policies, horizons, replications.
    out
        The run folder; by default the spec's name without .toml, beside it.
    threads
        By default one per core.
    figures
        A folder for PDF and SVG figures.
    """
    import sys

    from rich.console import Console

    from robandit.errors import InvalidInput
    from robandit.experiments.runner import run as play
    from robandit.experiments.spec import read_spec
    from robandit.experiments.store import Store
    from robandit.report.figures import write_figures
    from robandit.report.page import write_page
    from robandit.report.runbar import runbar
    from robandit.report.table import leaderboards, remarks

    folder = out if out is not None else spec.with_suffix("")
    if folder == spec:
        raise InvalidInput(f"{spec} has no ending to leave off: name the run folder with --out")
    chosen = read_spec(spec)
    plan = chosen.plan()
    command = f"robandit run {spec}" + (f" --out {out}" if out is not None else "")
    try:
        with runbar(plan) as progress:
            outcome = play(
                plan, folder, threads=threads, command=command, spec_text=spec.read_text(), progress=progress
            )
    except KeyboardInterrupt:
        print(f"robandit: interrupted; what is finished is kept in {folder}. To go on: {command}", file=sys.stderr)
        sys.exit(130)
    store = Store.open(folder)
    results = store.results()
    store.write_results(folder / "results")
    write_page(results, folder / "report.html", command=command)
    console = Console()
    for table in leaderboards(results):
        console.print(table)
    for line in remarks(results):
        print(line)
    if figures is not None:
        print(f"figures: {', '.join(str(path) for path in write_figures(results, figures))}")
    print(f"played {outcome.done} units in {outcome.seconds:.0f} s, {outcome.before} were done before")
    print(f"report: {folder / 'report.html'}; results: {folder / 'results'}")
    if results.failures:
        print(f"robandit: {len(results.failures)} units failed; the report has their tracebacks", file=sys.stderr)
        sys.exit(3)
