"""``robandit run``."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robandit.cli.options import (
    Figures,
    Imports,
    OptionalInteger,
    RunFolder,
    Threads,
    check_figures,
    command_line,
    import_given,
)

if TYPE_CHECKING:
    from robandit.experiments.dask_cluster import DaskEngine


def run(
    spec: Path,
    *,
    out: RunFolder = None,
    threads: Threads = None,
    engine: Literal["threads", "dask"] = "threads",
    scheduler: str | None = None,
    scheduler_file: Path | None = None,
    workers: OptionalInteger = None,
    figures: Figures = None,
    imports: Imports = None,
) -> None:
    """Run an experiment from a TOML file, or continue it where it stopped.

    Finished units are kept in the run folder. If the run is interrupted, only the units in progress are lost, and the same command
    continues it. A unit that fails is tried again and then recorded as failed; the other units continue. At the end the folder
    has `results/` (tidy Parquet) and `report.html`. Exit code 3 means that some units failed.

    Policies of your own come from modules under `imports` in the spec, or from --import. A run folder is
    rejected if one of its modules has changed.

    For example: `robandit spec init` writes experiment.toml; then `robandit run experiment.toml`

    Parameters
    ----------
    spec
        The TOML file with problems, policies, horizons and replications.
    engine
        Run units in threads of this process, or on a Dask cluster (needs robandit[cluster]).
    scheduler
        With --engine dask: the address of the scheduler, such as tcp://10.0.0.5:8786.
    scheduler_file
        With --engine dask: the file written by the scheduler, instead of its address.
    workers
        With --engine dask: the number of worker processes to start on this machine if there is no cluster.
    """
    from robandit.cli.run_folder import play_into, run_folder
    from robandit.experiments.spec import read_spec
    from robandit.files import read

    check_figures(figures)
    cluster = {"scheduler": scheduler, "scheduler_file": scheduler_file, "workers": workers}
    context = _engine(engine, threads, cluster)
    import_given(imports)
    plan = read_spec(spec).plan()
    text = read(spec).decode()
    chosen = {"import": imports, "engine": engine if engine != "threads" else None, "out": out}
    command = command_line("run", spec, **chosen, **cluster)
    folder = run_folder(spec, out)
    play_into(folder, plan, threads=threads, engine=context, command=command, figures=figures, spec_text=text)


def _engine(name: str, threads: int | None, cluster: dict[str, Any]) -> AbstractContextManager[DaskEngine | None]:
    from robandit.errors import InvalidInput
    from robandit.experiments.dask_cluster import dask_engine
    from robandit.validation import integer

    options = {f"--{option.replace('_', '-')}": value for option, value in cluster.items()}
    given = " and ".join(option for option, value in options.items() if value is not None)
    if name == "threads":
        if given:
            raise InvalidInput(f"{given} can be used only with --engine dask: add it, or omit {given}")
        return nullcontext()
    if threads is not None:
        raise InvalidInput(
            f"--threads {threads} cannot be used with --engine dask, which has its own workers: omit one"
        )
    if sum(value is not None for value in options.values()) != 1:
        raise InvalidInput(f"--engine dask needs exactly one of {', '.join(options)}; given: {given or 'none'}")
    if cluster["workers"] is not None:
        integer(cluster["workers"], "--workers", 1, None)
    return dask_engine(**cluster)
