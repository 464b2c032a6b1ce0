"""Show progress on standard error: a bar on a terminal, otherwise one line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

PAUSE = 10.0  # seconds between two lines


class Update(Protocol):
    """A function that shows the current state. The last state, marked by ``end``, is always printed as a line."""

    def __call__(self, label: str, text: str, done: float, total: float | None, *, end: bool = False) -> None:
        """Show the label of the work, the progress as text, and the amount done of a total (None if unknown)."""


@contextmanager
def display(label: str, *, time_left: bool = True) -> Iterator[Update]:
    """Yield the function that shows progress; ``time_left`` adds the estimated time left to the bar."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}")]
    if time_left:
        columns.append(TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None, text="")

        def update(label: str, text: str, done: float, total: float | None, *, end: bool = False) -> None:
            bar.update(task, description=label, completed=done, total=total, text=text)

        yield update


def _lines() -> Update:
    last = time.monotonic()
    ended = False

    def update(label: str, text: str, done: float, total: float | None, *, end: bool = False) -> None:
        nonlocal last, ended
        if (end and not ended) or time.monotonic() - last > PAUSE:
            last, ended = time.monotonic(), end
            print(f"{label}: {text}", file=sys.stderr, flush=True)

    return update


@contextmanager
def steps(label: str, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function to be called after each of ``total`` steps, with a remark or an empty text."""
    done = 0
    with display(label) as update:

        def advance(remark: str) -> None:
            nonlocal done
            done += 1
            text = f"{done} of {total}" + (f" ({remark})" if remark else "")
            update(label, text, done, total, end=done == total)

        update(label, f"0 of {total}", 0, total)
        yield advance


@contextmanager
def rows(label: str) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function to be called with the number of rows read and the number of all rows (None if unknown)."""
    start = time.monotonic()
    with display(label) as update:

        def advance(done: int, total: int | None) -> None:
            rate = done / max(time.monotonic() - start, 1e-9)
            of = "" if total is None else f" of {total:,}"
            update(label, f"{done:,}{of} rows, {rate:,.0f} per second", done, total)

        yield advance


def tracked(label: str) -> Callable[[Sequence[Any]], Iterator[Any]]:
    """Return a function that yields the items of a sequence and shows the number of finished items."""

    def track(items: Sequence[Any]) -> Iterator[Any]:
        with steps(label, len(items)) as advance:
            for item in items:
                yield item
                advance("")

    return track
