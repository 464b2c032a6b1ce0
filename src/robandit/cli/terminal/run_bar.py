"""Show the progress of a run: first the compilation, then the units done and the time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from robandit.cli.terminal.progress import display
from robandit.experiments.runner import Compiling, Playing, Progress
from robandit.wording import counted


@contextmanager
def runbar() -> Iterator[Progress]:
    """Yield the function to pass as ``progress`` to `robandit.experiments.runner.run`."""
    with display("starting", time_left=False) as update:

        def show(state: Compiling | Playing) -> None:
            if isinstance(state, Compiling):
                text = f"{state.number} of {state.total} ({state.label})"
                update("compiling", text, state.number - 1, state.total)
            else:
                update("playing", _playing(state), state.pulls_done, state.pulls, end=state.units_left == 0)

        yield show


def _playing(state: Playing) -> str:
    parts = [
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
    return ", ".join(part for part in parts if part)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
