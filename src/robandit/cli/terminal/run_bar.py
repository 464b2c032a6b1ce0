"""How far a run is, on standard error: a bar with the time left on a terminal, a line now and then otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from robandit.cli.terminal.progress import PAUSE
from robandit.experiments.plan import Plan
from robandit.experiments.runner import Compiling, Playing, Progress
from robandit.wording import counted

__all__ = ["runbar"]


@contextmanager
def runbar(plan: Plan) -> Iterator[Progress]:
    """Yield what `robandit.experiments.runner.run` takes as ``progress``."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=len(plan.units), words="")

        def show(state: Compiling | Playing) -> None:
            if isinstance(state, Compiling):
                bar.update(
                    task,
                    description="compiling",
                    total=state.total,
                    completed=state.number - 1,
                    words=_compiling(state),
                )
            else:
                bar.update(
                    task, description="playing", total=state.pulls, completed=state.pulls_done, words=_playing(state)
                )

        yield show


def _lines() -> Progress:
    last = time.monotonic()
    ended = False

    def line(state: Compiling | Playing) -> None:
        nonlocal last, ended
        over = isinstance(state, Playing) and state.units_left == 0
        if (over and not ended) or time.monotonic() - last > PAUSE:
            last, ended = time.monotonic(), over
            text = f"compiling {_compiling(state)}" if isinstance(state, Compiling) else f"playing: {_playing(state)}"
            print(text, file=sys.stderr, flush=True)

    return line


def _compiling(state: Compiling) -> str:
    return f"{state.number} of {state.total}: {state.label}"


def _playing(state: Playing) -> str:
    words = [
        f"{state.units_done} of {state.units} units",
        f"{100.0 * state.pulls_done / max(state.pulls, 1):.0f} %",
        f"{state.rate / 1e6:.1f} M pulls/s" if state.rate > 0.0 else "",
        counted(state.workers, "worker") if state.workers else "",
        counted(state.retries, "retry", "retries") if state.retries else "",
        f"{state.failures} failed" if state.failures else "",
        f"{counted(state.held, 'unit is', 'units are')} held by another run" if state.held else "",
        "waiting for workers" if state.workers == 0 and state.units_left else "",
        f"{_time(state.seconds_left)} left" if state.units_left and state.seconds_left is not None else "",
    ]
    return ", ".join(word for word in words if word)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
