"""Run folders: where the one of a spec is, and playing a plan into one, from its first unit to the report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from robandit.experiments.engines import Engine
    from robandit.experiments.plan import Plan

__all__ = ["another_with_out", "play_into", "run_folder"]


def play_into(
    folder: Path,
    plan: Plan,
    *,
    threads: int | None,
    command: str,
    figures: Path | None,
    engine: AbstractContextManager[Engine | None] | None = None,
    spec_text: str | None = None,
) -> NoReturn:
    """Play what is not done yet, write results and report, print them, and exit."""
    import sys

    from robandit.cli.terminal.conclusion import conclude
    from robandit.cli.terminal.run_bar import runbar
    from robandit.experiments.runner import run

    try:
        with engine or nullcontext() as on:
            if on is not None:
                shown = on.dashboard or "none; it needs bokeh on the scheduler's machine (pip install bokeh)"
                print(f"dashboard: {shown}", file=sys.stderr, flush=True)
            with another_with_out(folder), runbar(plan) as progress:
                outcome = run(
                    plan, folder, threads=threads, engine=on, command=command, spec_text=spec_text, progress=progress
                )
    except KeyboardInterrupt:
        print(f"robandit: interrupted; what is finished is kept in {folder}. To go on: {command}", file=sys.stderr)
        sys.exit(130)
    results = outcome.store.results()
    outcome.store.write_results(results=results)
    code = conclude(results, folder / "report.html", command=command, figures=figures)
    elsewhere = f", {outcome.elsewhere} played by another run" if outcome.elsewhere else ""
    print(f"units: {outcome.done} played in {outcome.seconds:.0f} s, {outcome.before} done before{elsewhere}")
    print(f"results: {folder / 'results'}")
    sys.exit(code)


def run_folder(spec: Path, out: Path | None) -> Path:
    """The folder that a spec is played into: ``out``, or the spec's name without its ending, beside it."""
    from robandit.errors import InvalidInput

    if out is None and not spec.suffix:
        raise InvalidInput(f"{spec} has no ending to leave off: name the run folder with --out")
    return spec.with_suffix("") if out is None else out


@contextmanager
def another_with_out(folder: Path) -> Iterator[None]:
    """Where an error asks for another folder, it names the option for that, and what else helps if this is a run folder."""
    from robandit.errors import RobanditError
    from robandit.experiments.store import ELSEWHERE

    try:
        yield
    except RobanditError as error:
        said, asked, rest = str(error).rpartition(ELSEWHERE)
        if not asked:
            raise
        remove = f", or remove {folder}" if (folder / "run.json").exists() else ""
        raise type(error)(f"{said}give another with --out FOLDER{rest}{remove}") from error
