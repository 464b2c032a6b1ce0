"""Plays a plan into a run folder: side by side, again after failures, and on from where another run ended."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from robandit.errors import CorruptFile, EngineLost, InvalidInput, VersionSkew
from robandit.experiments.engines import Answer, Engine, Lapsed, Sent, WorkersDied, engine_for
from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Cell, Plan, Unit
from robandit.experiments.results import Failure
from robandit.experiments.store import Store
from robandit.files import check_seal
from robandit.kernel.cache import say
from robandit.kernel.cores import cores

__all__ = ["Compiling", "Ended", "Playing", "Progress", "RunOutcome", "attend", "run"]

OPEN_FILES = 16_384  # more units than that are never under way
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
    retries: int = 0
    """How often a unit that failed was tried again."""
    workers: int | None = None
    """Of an engine that knows; 0: it waits for some."""
    held: int = 0
    """Units that other runs are at, if nothing else is left."""

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
    retries: int = 0


def run(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    threads: int | None = None,
    engine: Executor | Engine | None = None,
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
        Where to play instead: any ``concurrent.futures.Executor``, or what `robandit.experiments.dask_engine` yields. Its workers
        need not see the folder: they send what they have played. If it is lost, that is an `EngineLost`, and the same call on
        another goes on.
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
    elsewhere = engine_for(engine) if engine is not None else None
    start = time.monotonic()
    store = Store.create(folder, plan, command=command, spec_text=spec_text)
    units: dict[str, int] = {}  # two cells may share one
    for number, unit in enumerate(store.plan.units):
        units.setdefault(unit.key, number)
    todo = [number for number in units.values() if not store.ledger.done(store.plan.units[number])]
    tell = progress if progress is not None else lambda _: None
    if elsewhere is None or elsewhere.shares_cache:
        _compile((store.plan.units[number] for number in todo), tell)
    tally = _Tally(
        [store.plan.units[number] for number in units.values()], [store.plan.units[number] for number in todo]
    )
    tell(tally.state())
    if elsewhere is None:
        _play(
            [store.plan.units[number] for number in todo],
            partial(attend, folder=store.folder, tries=tries),
            threads,
            tally,
            tell,
        )
    else:
        try:
            _Dispatch(elsewhere, store, tries, tally, tell).play(todo)
        except (EngineLost, VersionSkew) as lost:
            go_on = f"To go on: {command}" if command else "The same call, on an engine that works, goes on"
            done = tally.state().units_done
            raise type(lost)(
                f"{lost}. What is finished is kept in {store.folder} ({done} of {len(units)} units). {go_on}"
            ) from lost
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
        self.retries = 0
        self.workers: int | None = None
        self.held = 0
        self.start = time.monotonic()

    def add(self, unit: Unit, ended: Ended) -> None:
        self.ended[ended.how] += 1
        if ended.how != "failed":
            self.pulls_done += unit.pulls
        if ended.how == "played":
            self.pulls_played += unit.pulls
        self.retries += ended.retries
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
            retries=self.retries,
            workers=self.workers,
            held=self.held,
        )


def _play(todo: list[Unit], work: partial[Ended], threads: int | None, tally: _Tally, tell: Progress) -> None:
    """Have every unit attended to in this process, until none of them is busy elsewhere."""
    stop = threading.Event()
    # Replications of all units share these threads: no core is idle while the last slow unit is played. Units have threads
    # of their own, which only wait and write; one more, so that there is work while one writes.
    with (
        ThreadPoolExecutor(threads or cores(), "robandit-players") as players,
        ThreadPoolExecutor((threads or cores()) + 1, "robandit-units") as units,
    ):
        _attend_all(todo, partial(work, stop=stop, pool=players), units, stop, tally, tell)


def _attend_all(
    todo: list[Unit], work: partial[Ended], pool: Executor, stop: threading.Event, tally: _Tally, tell: Progress
) -> None:
    finished: queue.SimpleQueue[tuple[Unit, Future[Ended]]] = queue.SimpleQueue()
    futures: list[Future[Ended]] = []

    def submit(unit: Unit) -> None:
        futures.append(pool.submit(work, unit))
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
                    tally.held = 0
                    tell(tally.state())
                    continue
                ended = future.result()
                if ended.how == "busy":
                    todo.append(unit)
                else:
                    tally.held = 0
                    tally.add(unit, ended)
                    tell(tally.state())
            if todo:  # other runs are at these: wait until they are done, or given up
                tally.held = len(todo)
                time.sleep(TICK)
                tell(tally.state())
    finally:
        # After a failure or Ctrl-C nothing new starts, and what runs stops soon.
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
    """Play a unit into a run folder in this process, unless that is done or someone is at it."""
    ledger = Ledger(folder)
    with ledger.claimed(unit) as mine:
        if not mine:
            return Ended("busy")
        if ledger.done(unit):
            return Ended("found")
        damaged = _set_aside(ledger, unit)
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
                return Ended("played", damaged, attempt - 1)
    return Ended("failed", damaged, tries - 1)


def _set_aside(ledger: Ledger, unit: Unit) -> Path | None:
    damaged = ledger.set_aside(unit)
    if damaged is not None:
        say(f"{ledger.part(unit)} is damaged: it is moved to {damaged}, and played again")
    return damaged


@dataclass
class _UnderWay:
    number: int
    alone: bool
    lock: ExitStack
    damaged: Path | None


class _Dispatch:
    """Sends units to an engine, a few at a time, and keeps what comes back. Units go by their numbers in the plan."""

    def __init__(self, engine: Engine, store: Store, tries: int, tally: _Tally, tell: Progress) -> None:
        self.engine, self.tries, self.tally, self.tell = engine, tries, tally, tell
        self.plan, self.ledger = store.plan, store.ledger
        self.most = _most_locks()
        self.waiting: deque[int] = deque()
        self.suspects: deque[int] = deque()  # their workers died
        self.busy: list[int] = []  # other runs are at these
        self.failed: Counter[int] = Counter()
        self.under_way: dict[Future[Answer], _UnderWay] = {}
        self.finished: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()

    def play(self, todo: Iterable[int]) -> None:
        """Until every unit is played, found or failed."""
        self.waiting.extend(todo)
        try:
            self.engine.begin(self.plan)
            while self.waiting or self.under_way or self.suspects or self.busy:
                self._fill()
                with suppress(queue.Empty):
                    self._take(self.finished.get(timeout=TICK))
                self.tell(self.tally.state())
        finally:
            # After a failure or Ctrl-C nothing new starts; workers end what they are at, and nobody waits for it.
            self.engine.end(self.under_way)
            for each in self.under_way.values():
                each.lock.close()

    def _fill(self) -> None:
        self.tally.workers = self.engine.workers()
        self.tally.held = 0
        room = min(self.engine.room(self.under_way), self.most - len(self.under_way))
        while self.waiting and room > 0:
            room -= self._start(self.waiting.popleft())
        if not self.under_way and not self.waiting:
            if self.suspects:  # alone, so that it is known who killed the worker if that happens again
                self._start(self.suspects.popleft(), alone=True)
            else:
                self.tally.held = len(self.busy)
                self.waiting.extend(self.busy)
                self.busy.clear()

    def _start(self, number: int, *, alone: bool = False) -> bool:
        """Claim and submit a unit; False: there was no need."""
        unit = self.plan.units[number]
        with ExitStack() as stack:
            if not stack.enter_context(self.ledger.claimed(unit)):
                self.busy.append(number)
                return False
            if self.ledger.done(unit):
                self.tally.add(unit, Ended("found"))
                return False
            damaged = _set_aside(self.ledger, unit)
            future = self.engine.submit(number)
            self.under_way[future] = _UnderWay(number, alone, stack.pop_all(), damaged)
        future.add_done_callback(self.finished.put)
        return True

    def _take(self, future: Future[Answer]) -> None:
        each = self.under_way.pop(future)
        unit = self.plan.units[each.number]
        with each.lock:
            answer, died = self._answer(future)
            if isinstance(answer, Sent):
                self.ledger.receive(unit, answer.content, answer.seconds)
                self.tally.add(unit, Ended("played", each.damaged))
                return
            self.failed[each.number] += 1
            if each.alone if died else self.failed[each.number] >= self.tries:
                self.ledger.fail(Failure(unit, self.failed[each.number], answer.traceback))
                self.tally.add(unit, Ended("failed", each.damaged))
                return
            self.tally.retries += 1
            if each.damaged is not None:
                self.tally.damaged.append(each.damaged)
            (self.suspects if died else self.waiting).append(each.number)

    def _answer(self, future: Future[Answer]) -> tuple[Answer, bool]:
        """What became of a unit, and whether its workers died. What is no fault of the unit is an error here."""
        error = CancelledError() if future.cancelled() else future.exception()
        try:
            if error is None:
                answer = future.result()
                if isinstance(answer, Sent):
                    check_seal(answer.content, "what a worker sent")
                return answer, False
        except CorruptFile as damage:  # on its way
            return Lapsed(f"{damage}\n"), False
        meant = self.engine.explain(error)
        if isinstance(meant, WorkersDied):
            return Lapsed(f"{meant}. It was alone there: perhaps it needs more memory than a worker has.\n"), True
        if meant is not None:
            raise meant from error
        return Lapsed("".join(traceback.format_exception(error))), False


def _most_locks() -> int:
    """How many units may be under way at once: each has an open file. The system's limit is raised as far as it lets us."""
    if sys.platform == "win32":
        return 4096
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if 0 <= soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return max(1, soft - 256) if soft >= 0 else OPEN_FILES


def _compile(units: Iterable[Unit], tell: Progress) -> None:
    """Each policy, one after the other: two that compile at once would only wait for each other, and nobody sees for what."""
    cells: dict[str, Cell] = {}
    for unit in units:
        cells.setdefault(unit.cell.label, unit.cell)
    for number, (label, cell) in enumerate(cells.items(), 1):
        tell(Compiling(number, len(cells), label))
        with suppress(Exception):  # its units will fail in the same way, and are recorded
            cell.compile()
