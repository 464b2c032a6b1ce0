"""Show progress on standard error: a bar on a terminal, otherwise one line after two seconds and every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from robandit.cli.terminal.guard import write_line

if TYPE_CHECKING:
    from rich.progress import Progress

SOON = 2.0  # seconds until the first line
PAUSE = 10.0  # seconds between two lines


class Display:
    """Shows the current state of some work: here as lines, in `_Bar` as a bar."""

    def __init__(self) -> None:
        self._next = time.monotonic() + SOON
        self._ended = False

    def __call__(self, label: str, text: str, done: float, total: float | None, *, end: bool = False) -> None:
        """Show the label of the work, the progress as text, and the amount done of a total (None if unknown).

        The last state, marked by ``end``, is always printed as a line.
        """
        if (end and not self._ended) or time.monotonic() > self._next:
            self._next, self._ended = time.monotonic() + PAUSE, end
            write_line(f"{label}: {text}" if label else text, sys.stderr)


@contextmanager
def display(label: str, *, time_left: bool = True) -> Iterator[Display]:
    """Yield the display of some work. An empty label takes no room. ``time_left`` adds the estimated time left to the bar."""
    if not sys.stderr.isatty():
        yield Display()
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    columns: list[ProgressColumn] = [TextColumn("{task.description}")] if label else []
    columns.append(BarColumn(None, table_column=Column(ratio=1, max_width=40)))
    columns.append(TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True)))
    if time_left:
        columns.append(TimeRemainingColumn())
    bar = _Bar(Progress(*columns), label)
    try:
        yield bar
    finally:
        bar.live.stop()


class _Bar(Display):
    def __init__(self, bar: Progress, label: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._bar = bar
        self._task = bar.add_task(label, total=None, text="")
        self.live = Live(bar, console=Console(stderr=True), transient=True, redirect_stdout=False)
        self.live.start(refresh=True)

    def __call__(self, label: str, text: str, done: float, total: float | None, *, end: bool = False) -> None:
        self._bar.update(self._task, description=label, completed=done, total=total, text=text)


@contextmanager
def steps(label: str, total: int) -> Iterator[Callable[[object], None]]:
    """Yield a function to be called after each of ``total`` steps, from any thread."""
    lock, done = Lock(), 0
    with display(label) as update:

        def advance(_: object) -> None:
            nonlocal done
            with lock:
                done += 1
                update(label, f"{done} of {total}", done, total, end=done == total)

        update(label, f"0 of {total}", 0, total)
        yield advance


@contextmanager
def rows(label: str, unit: str = "rows") -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function to be called with the number of rows read and the number of all rows (None if unknown)."""
    start = time.monotonic()
    with display(label) as update:

        def advance(done: int, total: int | None) -> None:
            rate = done / max(time.monotonic() - start, 1e-9)
            of = "" if total is None else f" of {total:,}"
            update(label, f"{done:,}{of} {unit}, {rate:,.0f} per second", done, total)

        yield advance


def tracked(label: str) -> Callable[[Sequence[Any]], Iterator[Any]]:
    """Return a function that yields the items of a sequence and shows the number of finished items."""

    def track(items: Sequence[Any]) -> Iterator[Any]:
        with steps(label, len(items)) as advance:
            for item in items:
                yield item
                advance(item)

    return track
