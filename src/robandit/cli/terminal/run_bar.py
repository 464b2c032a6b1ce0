"""Show a run: the policies compiled, the units done, the time left, and the leaderboards as policies finish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from robandit.cli.terminal.leaderboard import print_findings
from robandit.cli.terminal.progress import Display, display
from robandit.experiments.plan import Cell, Played
from robandit.experiments.results import Results
from robandit.experiments.runner import Compiling, Playing
from robandit.experiments.statistics import Findings
from robandit.experiments.store import Store
from robandit.wording import counted


@contextmanager
def runbar() -> Iterator[RunBar]:
    """Yield the object whose methods are passed as ``progress`` and ``finished`` to `robandit.experiments.runner.run`."""
    with display("", time_left=False) as update:
        yield RunBar(update)


class RunBar:
    """The progress of a run and, one by one, its leaderboards.

    The leaderboard of a problem is printed when all its cells are finished, in the order of the plan.
    """

    def __init__(self, update: Display) -> None:
        self._update = update
        self._problems: list[list[Cell]] = []  # the cells of each problem
        self._finished: set[int] = set()  # the ids of cells
        self._complete = 0  # problems
        self.printed = 0
        """Leaderboards printed. A problem on which every unit failed has none."""

    def progress(self, state: Compiling | Playing) -> None:
        """Show the policies compiled and the units done."""
        compiling = isinstance(state, Compiling)
        playing = state.playing if isinstance(state, Compiling) else state
        parts = [f"compiling {state.number} of {state.total}"] if isinstance(state, Compiling) else []
        if playing is None:
            self._update("", parts[0], 0, None)
            return
        text = ", ".join([*parts, f"playing {_playing(playing)}"])
        total = playing.pulls if playing.pulls_done or not compiling else None
        self._update("", text, playing.pulls_done, total, end=playing.units_left == 0)

    def finished(self, store: Store, cell: Cell) -> None:
        """Print the leaderboards that are complete."""
        if not self._problems:
            by_problem: dict[Played, list[Cell]] = {}
            for each in store.plan.cells:
                by_problem.setdefault(each.played, []).append(each)
            self._problems = list(by_problem.values())
        self._finished.add(id(cell))
        for cells in self._problems[self._complete :]:
            if not self._finished.issuperset(map(id, cells)):
                return
            measured = tuple(found for each in cells if (found := store.measured(each)) is not None)
            with self._update.hidden():
                self.printed += print_findings(Findings(Results(store.plan, measured)))
            self._complete += 1


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
