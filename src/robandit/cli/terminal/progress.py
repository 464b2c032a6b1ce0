"""Progress of long work on standard error: a bar on a terminal, a line now and then otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["rows", "steps", "tracked"]

PAUSE = 10.0  # seconds between two lines where there is no terminal


@contextmanager
def steps(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Call what is yielded after each of ``total`` steps, with a word on where the work is."""
    if not sys.stderr.isatty():
        done, last = 0, time.monotonic()

        def line(where: str) -> None:
            nonlocal done, last
            done += 1
            if time.monotonic() - last > PAUSE or done == total:
                last = time.monotonic()
                print(f"{what}: {done} of {total}{_at(where)}", file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda where: bar.update(task, advance=1, description=f"{what}{_at(where)}")


@contextmanager
def rows(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Call what is yielded with the rows read so far, and how many there are if that is known."""
    start = last = time.monotonic()
    if not sys.stderr.isatty():

        def line(done: int, total: int | None) -> None:
            nonlocal last
            if time.monotonic() - last > PAUSE:
                last = time.monotonic()
                of = "" if total is None else f" of {total:,}"
                print(
                    f"{what}: {done:,}{of} rows, {done / (last - start):,.0f} per second", file=sys.stderr, flush=True
                )

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, said="")

        def show(done: int, total: int | None) -> None:
            rate = done / max(time.monotonic() - start, 1e-9)
            bar.update(task, completed=done, total=total, said=f"{done:,} rows, {rate:,.0f} per second")

        yield show


def _at(where: str) -> str:
    return f" ({where})" if where else ""


def tracked(what: str) -> Callable[[Sequence[Any]], Iterator[Any]]:
    """Wrap a sequence that is worked through one by one."""

    def track(items: Sequence[Any]) -> Iterator[Any]:
        with steps(what, len(items)) as advance:
            for item in items:
                yield item
                advance("")

    return track
