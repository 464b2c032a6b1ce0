"""Show a run: the policies compiled, the units done and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from robandit.cli.terminal.progress import display
from robandit.experiments.runner import Compiling, Playing
from robandit.wording import counted


@contextmanager
def run_bar() -> Iterator[Callable[[Compiling | Playing], None]]:
    """Yield a function that shows the progress of `robandit.experiments.runner.run`."""
    with display("", time_left=False) as update:

        def show(state: Compiling | Playing) -> None:
            compiling = isinstance(state, Compiling)
            playing = state.playing if isinstance(state, Compiling) else state
            parts = [f"compiling {state.number} of {state.total}"] if isinstance(state, Compiling) else []
            if playing is None:
                update("", parts[0], 0, None)
                return
            text = ", ".join([*parts, f"playing {_playing(playing)}"])
            total = playing.pulls if playing.pulls_done or not compiling else None
            update("", text, playing.pulls_done, total, end=playing.units_left == 0)

        yield show


def _playing(state: Playing) -> str:
    parts = [
        f"{state.units_done} of {state.units} units",
        f"{100.0 * state.pulls_done / max(state.pulls, 1):.0f} %",
        f"{state.rate / 1e6:.1f} M pulls/s" if state.rate > 0.0 else "",
        counted(state.workers, "worker") if state.workers else "",
        counted(state.retries, "retry", "retries") if state.retries else "",
        f"{state.failures} failed" if state.failures else "",
        "waiting for workers" if state.workers == 0 and state.units_left else "",
        f"{_time(state.seconds_left)} left" if state.units_left and state.seconds_left is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
