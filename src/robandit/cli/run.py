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
    import shlex
    import sys

    from robandit.errors import InvalidInput
    from robandit.experiments.runner import run as play
    from robandit.experiments.spec import read_spec
    from robandit.files import check_folder
    from robandit.report.conclusion import conclude
    from robandit.report.runbar import runbar

    folder = out if out is not None else spec.with_suffix("")
    if folder == spec:
        raise InvalidInput(f"{spec} has no ending to leave off: name the run folder with --out")
    check_folder(figures)
    plan = read_spec(spec).plan()
    text = spec.read_bytes().decode()  # as it was written, line ends and all
    command = shlex.join(["robandit", "run", str(spec), *(["--out", str(out)] if out is not None else [])])
    try:
        with runbar(plan) as progress:
            outcome = play(plan, folder, threads=threads, command=command, spec_text=text, progress=progress)
    except KeyboardInterrupt:
        print(f"robandit: interrupted; what is finished is kept in {folder}. To go on: {command}", file=sys.stderr)
        sys.exit(130)
    outcome.store.write_results()
    code = conclude(outcome.store.results(), folder / "report.html", command=command, figures=figures)
    elsewhere = f", {outcome.elsewhere} played by another run" if outcome.elsewhere else ""
    print(f"units: {outcome.done} played in {outcome.seconds:.0f} s, {outcome.before} done before{elsewhere}")
    print(f"results: {folder / 'results'}")
    sys.exit(code)
