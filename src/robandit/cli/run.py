"""``robandit run``."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from robandit.cli.options import Whole

if TYPE_CHECKING:
    from robandit.experiments.engines import Engine

__all__ = ["run"]


def run(
    spec: Path,
    *,
    out: Path | None = None,
    threads: Whole = None,
    engine: Literal["threads", "dask"] = "threads",
    scheduler: str | None = None,
    scheduler_file: Path | None = None,
    workers: Whole = None,
    figures: Path | None = None,
) -> None:
    """Play an experiment that a TOML file describes; run it again to go on where it stopped.

    What is finished is kept in a folder, unit by unit: whatever ends the run, at most the units under way are lost, and the same
    command goes on. A unit that fails is tried again, then recorded, and the rest goes on. At the end the folder has
    `results/` (tidy Parquet) and `report.html`. Exit code 3 says that some units failed.

    For example: `robandit spec init`, which writes experiment.toml to start from, then `robandit run experiment.toml`

    Parameters
    ----------
    spec
        The TOML file: problems, policies, horizons, replications.
    out
        The run folder; by default the spec's name without .toml, beside it.
    threads
        How many threads play at once; by default one per core.
    engine
        Where units are played: threads of this process, or a Dask cluster (needs robandit[cluster]).
    scheduler
        With --engine dask: the address of its scheduler, such as tcp://10.0.0.5:8786.
    scheduler_file
        With --engine dask: the file that its scheduler wrote, in place of the address.
    workers
        With --engine dask: so many processes on this machine, in place of a cluster.
    figures
        A folder for PDF and SVG figures of the report; by default none are written.
    """
    import shlex

    from robandit.cli.run_folder import play_into, run_folder
    from robandit.experiments.spec import read_spec
    from robandit.files import check_folder

    check_folder(figures)
    cluster = _engine(engine, threads, scheduler, scheduler_file, workers)
    plan = read_spec(spec).plan()
    folder = run_folder(spec, out)
    text = spec.read_bytes().decode()  # as it was written, line ends and all
    words = {"out": out, "scheduler": scheduler, "scheduler-file": scheduler_file, "workers": workers}
    options = [word for name, value in words.items() if value is not None for word in (f"--{name}", str(value))]
    command = shlex.join(
        ["robandit", "run", str(spec), *(["--engine", engine] if engine != "threads" else []), *options]
    )
    play_into(folder, plan, threads=threads, engine=cluster, command=command, figures=figures, spec_text=text)


def _engine(
    name: str, threads: int | None, scheduler: str | None, scheduler_file: Path | None, workers: int | None
) -> AbstractContextManager[Engine | None]:
    from robandit.errors import InvalidInput
    from robandit.experiments.dask_cluster import dask_engine

    given = {"--scheduler": scheduler, "--scheduler-file": scheduler_file, "--workers": workers}
    named = [word for word, value in given.items() if value is not None]
    if name == "threads":
        if named:
            raise InvalidInput(
                f"{' and '.join(named)}: only with --engine dask; add that, or leave out {' and '.join(named)}"
            )
        return nullcontext()
    if threads is not None:
        raise InvalidInput(f"--threads {threads} and --engine dask: a cluster has its own workers; leave one out")
    if len(named) != 1:
        raise InvalidInput(
            f"--engine dask with {' and '.join(named) or 'nothing else'}: give one of {', '.join(given)}"
        )
    if workers is not None and workers < 1:
        raise InvalidInput(f"--workers {workers}: it must be a whole number >= 1")
    return dask_engine(scheduler=scheduler, scheduler_file=scheduler_file, workers=workers)
