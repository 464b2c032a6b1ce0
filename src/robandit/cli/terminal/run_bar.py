"""Show a run: the policies compiled, the units done, the time left, and the leaderboards as policies finish."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from robandit.cli.terminal.leaderboard import leaderboard, print_boards
from robandit.cli.terminal.progress import Display, display
from robandit.cli.terminal.tables import Board, Drawn
from robandit.experiments.plan import Cell, Plan
from robandit.experiments.results import Measured, Results
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

    The leaderboard of a problem is printed when all its cells are finished, in the order of the plan. A terminal also shows the
    first leaderboard that is not complete.
    """

    def __init__(self, update: Display) -> None:
        """Show the run in a display."""
        self._update = update
        self._live = sys.stdout.isatty() and sys.stderr.isatty()
        self._finished: dict[int, dict[int, Measured | None]] = {}  # by the numbers of the problem and the cell
        self._number: dict[int, tuple[int, int]] = {}  # of a cell and its problem, by the cell's id
        self._size: list[int] = []  # cells of each problem
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
        """Print the leaderboards that are complete, and show the next."""
        if not self._number:
            self._count(store.plan)
        number, problem = self._number[id(cell)]
        self._finished[problem][number] = store.measured(cell)
        while self._complete < len(self._size) and len(self._finished[self._complete]) == self._size[self._complete]:
            boards = self._boards(store.plan)
            self._update.below(None)
            with self._update.hidden():
                print_boards(boards)
            self.printed += len(boards)
            del self._finished[self._complete]
            self._complete += 1
        if self._live and self._complete < len(self._size):
            boards = self._boards(store.plan)
            self._update.below(Drawn(boards[0]) if boards else None)

    def _count(self, plan: Plan) -> None:
        problems = {played: i for i, played in enumerate(plan.problems)}
        self._size = [0] * len(problems)
        for i, cell in enumerate(plan.cells):
            problem = problems[cell.played]
            self._number[id(cell)] = i, problem
            self._size[problem] += 1
        self._finished = {problem: {} for problem in range(len(problems))}

    def _boards(self, plan: Plan) -> list[Board]:
        """Return the leaderboard of the first problem that is not printed; none if nothing was measured."""
        cells = sorted(self._finished[self._complete].items())
        measured = tuple(each for _, each in cells if each is not None)
        return [leaderboard(standing) for standing in Findings(Results(plan, measured)).standings]


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
