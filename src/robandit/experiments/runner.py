"""Plays a plan into a run folder: side by side, again after failures, and on from where another run ended."""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from robandit.errors import InvalidInput
from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Cell, Plan, Unit
from robandit.experiments.results import Failure
from robandit.experiments.store import Store
from robandit.kernel.cache import say
from robandit.kernel.cores import cores

__all__ = ["Compiling", "Ended", "Playing", "Progress", "RunOutcome", "attend", "run"]

TICK = 0.2  # seconds between two reports, and between two looks at units that other runs are at


@dataclass(frozen=True)
class Compiling:
    """Reported before a policy is compiled, or taken from the cache."""

    number: int
    total: int
    label: str


@dataclass(frozen=True)
class Playing:
    """Reported while units are played, about five times a second."""

    units: int
    """In the plan."""
    units_done: int
    pulls: int
    """In the plan."""
    pulls_done: int
    """Those of earlier and other runs included."""
    rate: float
    """Pulls per second of this run; 0 before its first unit is done."""
    failures: int = 0

    @property
    def units_left(self) -> int:
        """Neither done nor failed."""
        return self.units - self.units_done - self.failures

    @property
    def seconds_left(self) -> float | None:
        """At this rate; None while it is not known."""
        return (self.pulls - self.pulls_done) / self.rate if self.rate > 0.0 else None


Progress: TypeAlias = Callable[[Compiling | Playing], None]


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. Units that two cells share count once."""

    store: Store
    done: int
    """Units that it played."""
    before: int
    """Units that were done when it started."""
    elsewhere: int
    """Units that other runs on the same folder played meanwhile."""
    failed: tuple[Failure, ...]
    damaged: tuple[Path, ...]
    """Parts that were found damaged, and played again: where they are now."""
    seconds: float


@dataclass(frozen=True)
class Ended:
    """What became of a unit."""

    how: Literal["played", "found", "busy", "failed", "stopped"]
    damaged: Path | None = None


def run(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    threads: int | None = None,
    engine: Executor | None = None,
    tries: int = 3,
    command: str = "",
    spec_text: str | None = None,
    progress: Progress | None = None,
) -> RunOutcome:
    """Play what is not done yet of a plan, and keep each unit in the run folder as soon as it is finished.

    Whatever ends it, at most the units under way are lost, and the same call goes on; Ctrl-C stops them within a fraction of a
    second. Several runs may share a folder, each unit is played by one of them. A unit that fails is tried again, then recorded
    with its traceback, and the rest goes on; the next run tries it once more. The results have the same bytes in all these cases.

    Parameters
    ----------
    plan
        What to play.
    folder
        A new or empty folder, or one where this plan was played before, perhaps with fewer replications.
    threads
        None: one per available core.
    engine
        Where to play instead: any ``concurrent.futures.Executor`` whose workers see the same folder, and lock files in it as one
        machine does.
    tries
        How often a unit may fail.
    command
        What was typed, kept for the report.
    spec_text
        The text of the spec, kept in the folder.
    progress
        Called with `Compiling` and `Playing`, in this thread.
    """
    for name, value in (("threads", threads), ("tries", tries)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise InvalidInput(f"{name} = {value!r} must be a whole number >= 1")
    if engine is not None and threads is not None:
        raise InvalidInput(f"threads = {threads} and an engine are given: an engine has its own workers; leave one out")
    start = time.monotonic()
    store = Store.create(folder, plan, command=command, spec_text=spec_text)
    units = {unit.key: unit for unit in store.plan.units}  # two cells may share one
    todo = [unit for unit in units.values() if not store.ledger.done(unit)]
    tell = progress if progress is not None else lambda _: None
    _compile(todo, tell)
    tally = _Tally(list(units.values()), todo)
    tell(tally.state())
    _play(todo, partial(attend, folder=store.folder, tries=tries), threads, engine, tally, tell)
    return RunOutcome(
        store=store,
        done=tally.ended["played"],
        before=len(units) - len(todo),
        elsewhere=tally.ended["found"],
        failed=store.failures(),
        damaged=tuple(tally.damaged),
        seconds=time.monotonic() - start,
    )


class _Tally:
    """Counts what became of units."""

    def __init__(self, units: list[Unit], todo: list[Unit]) -> None:
        self.units, self.todo = len(units), len(todo)
        self.pulls = sum(unit.pulls for unit in units)
        self.pulls_done = self.pulls - sum(unit.pulls for unit in todo)
        self.pulls_played = 0
        self.ended: Counter[str] = Counter()
        self.damaged: list[Path] = []
        self.start = time.monotonic()

    def add(self, unit: Unit, ended: Ended) -> None:
        self.ended[ended.how] += 1
        if ended.how != "failed":
            self.pulls_done += unit.pulls
        if ended.how == "played":
            self.pulls_played += unit.pulls
        if ended.damaged is not None:
            self.damaged.append(ended.damaged)

    def state(self) -> Playing:
        return Playing(
            units=self.units,
            units_done=self.units - self.todo + self.ended["played"] + self.ended["found"],
            pulls=self.pulls,
            pulls_done=self.pulls_done,
            rate=self.pulls_played / max(time.monotonic() - self.start, 1e-9),
            failures=self.ended["failed"],
        )


def _play(
    todo: list[Unit], work: partial[Ended], threads: int | None, engine: Executor | None, tally: _Tally, tell: Progress
) -> None:
    """Have every unit attended to, until none of them is busy elsewhere."""
    stop = threading.Event()
    with ExitStack() as stack:
        if engine is None:
            # Replications of all units share these threads: no core is idle while the last slow unit is played. Units have threads
            # of their own, which only wait and write; one more, so that there is work while one writes.
            players = stack.enter_context(ThreadPoolExecutor(threads or cores(), "robandit-players"))
            engine = stack.enter_context(ThreadPoolExecutor((threads or cores()) + 1, "robandit-units"))
            work = partial(work, stop=stop, pool=players)  # these do not travel to other processes
        _attend_all(todo, work, engine, stop, tally, tell)


def _attend_all(
    todo: list[Unit], work: partial[Ended], engine: Executor, stop: threading.Event, tally: _Tally, tell: Progress
) -> None:
    finished: queue.SimpleQueue[tuple[Unit, Future[Ended]]] = queue.SimpleQueue()
    futures: list[Future[Ended]] = []

    def submit(unit: Unit) -> None:
        futures.append(engine.submit(work, unit))
        futures[-1].add_done_callback(lambda future: finished.put((unit, future)))

    try:
        while todo:
            futures.clear()
            for unit in todo:
                submit(unit)
            todo = []
            while len(todo) + tally.ended.total() < tally.todo:
                try:
                    unit, future = finished.get(timeout=TICK)
                except queue.Empty:
                    tell(tally.state())
                    continue
                ended = future.result()
                if ended.how == "busy":
                    todo.append(unit)
                else:
                    tally.add(unit, ended)
                    tell(tally.state())
            if todo:  # other runs are at these: wait until they are done, or given up
                time.sleep(TICK)
                tell(tally.state())
    finally:
        # After a failure or Ctrl-C nothing new starts, and what runs here stops soon; an engine's workers end what they are at.
        stop.set()
        for future in futures:
            future.cancel()


def attend(
    unit: Unit,
    folder: Path,
    tries: int,
    stop: threading.Event | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> Ended:
    """Play a unit into a run folder, unless that is done or someone is at it."""
    ledger = Ledger(folder)
    with ledger.claimed(unit) as mine:
        if not mine:
            return Ended("busy")
        if ledger.done(unit):
            return Ended("found")
        damaged = ledger.set_aside(unit)
        if damaged is not None:
            say(f"{ledger.part(unit)} is damaged: it is moved to {damaged}, and played again")
        for attempt in range(1, tries + 1):
            if stop is not None and stop.is_set():
                return Ended("stopped")
            try:
                result = unit.run(stop=stop, pool=pool)
            except CancelledError:
                return Ended("stopped")
            except Exception:
                if attempt == tries:
                    ledger.fail(Failure(unit, tries, traceback.format_exc()))
            else:
                ledger.keep(unit, result)  # not tried again if it fails: that is the disk's fault, and ends the run
                return Ended("played", damaged)
    return Ended("failed", damaged)


def _compile(units: Iterable[Unit], tell: Progress) -> None:
    """Each policy, one after the other: two that compile at once would only wait for each other, and nobody sees for what."""
    cells: dict[str, Cell] = {}
    for unit in units:
        cells.setdefault(unit.cell.label, unit.cell)
    for number, (label, cell) in enumerate(cells.items(), 1):
        tell(Compiling(number, len(cells), label))
        with suppress(Exception):  # its units will fail in the same way, and are recorded
            cell.compile()
