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

    from robandit.cli.folder import play_into
    from robandit.errors import InvalidInput
    from robandit.experiments.spec import read_spec
    from robandit.files import check_folder

    folder = out if out is not None else spec.with_suffix("")
    if folder == spec:
        raise InvalidInput(f"{spec} has no ending to leave off: name the run folder with --out")
    check_folder(figures)
    plan = read_spec(spec).plan()
    text = spec.read_bytes().decode()  # as it was written, line ends and all
    command = shlex.join(["robandit", "run", str(spec), *(["--out", str(out)] if out is not None else [])])
    play_into(folder, plan, threads=threads, command=command, figures=figures, spec_text=text)
