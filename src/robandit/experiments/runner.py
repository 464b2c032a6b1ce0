"""Play a plan into a run folder: in parallel, with retries, and from where an earlier run ended."""

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
from robandit.experiments.dask_cluster import DaskEngine
from robandit.experiments.engines import Answer, Engine, ExecutorEngine, Lapsed, Sent, WorkersDied
from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Cell, Plan, Unit
from robandit.experiments.results import Failure
from robandit.experiments.store import Store
from robandit.files import check_seal
from robandit.kernel.cores import cores
from robandit.validation import integer, invalid

__all__ = ["Compiling", "Playing", "Progress", "RunOutcome", "run"]

TICK = 0.2  # seconds between two reports, and between two checks of units that other runs have locked
OPEN_FILES = 16_384  # at most this many units run at once


@dataclass(frozen=True)
class Compiling:
    """The report before a policy is compiled or loaded from the cache."""

    number: int
    total: int
    label: str


@dataclass(frozen=True)
class Playing:
    """The report while units are played, about five times a second."""

    units: int  # in the plan
    units_done: int
    pulls: int  # in the plan
    pulls_done: int  # including pulls of earlier and other runs
    rate: float  # pulls per second of this run; 0 before its first unit is done
    failures: int = 0
    retries: int = 0  # number of second and later tries
    workers: int | None = None  # the engine's workers, if known; 0 if it waits for workers
    held: int = 0  # units locked by other runs, if only such units remain

    @property
    def units_left(self) -> int:
        """Units that are neither done nor failed."""
        return self.units - self.units_done - self.failures

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds at this rate; None while the rate is unknown."""
        return (self.pulls - self.pulls_done) / self.rate if self.rate > 0.0 else None


Progress: TypeAlias = Callable[[Compiling | Playing], None]


@dataclass(frozen=True)
class _Ended:
    """The way in which a run finished with a unit. "found" means that another run had played it."""

    how: Literal["played", "found", "busy", "failed", "stopped"]
    damaged: Path | None = None
    retries: int = 0


class _Tally:
    """Count the units by the way in which they ended."""

    def __init__(self, units: list[Unit], todo: list[Unit]) -> None:
        self.units, self.todo = len(units), len(todo)
        self.pulls = sum(unit.pulls for unit in units)
        self.pulls_done = self.pulls - sum(unit.pulls for unit in todo)
        self.pulls_played = 0
        self.ended: Counter[str] = Counter()
        self.damaged: list[Path] = []
        self.retries = self.held = 0
        self.workers: int | None = None
        self.start = time.monotonic()

    def add(self, unit: Unit, ended: _Ended) -> None:
        self.ended[ended.how] += 1
        if ended.how != "failed":
            self.pulls_done += unit.pulls
        if ended.how == "played":
            self.pulls_played += unit.pulls
        self.retries += ended.retries
        if ended.damaged is not None:
            self.damaged.append(ended.damaged)

    def state(self) -> Playing:
        units_done = self.units - self.todo + self.ended["played"] + self.ended["found"]
        rate = self.pulls_played / max(time.monotonic() - self.start, 1e-9)
        counts = (self.ended["failed"], self.retries, self.workers, self.held)
        return Playing(self.units, units_done, self.pulls, self.pulls_done, rate, *counts)


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run. A unit that two cells share counts once."""

    store: Store
    done: int  # units that this run played
    before: int  # units that were done when this run started
    elsewhere: int  # units that other runs played in the same folder meanwhile
    failed: tuple[Failure, ...]
    damaged: tuple[Path, ...]  # new paths of damaged parts, whose units were played again
    seconds: float


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
    """Play the units of a plan that are not done, and store each in the run folder as soon as it is finished.

    If a run is interrupted, only the running units are lost, and the same call continues. Ctrl-C stops a run within a fraction of
    a second. Several runs may share a folder; each unit is played by one of them. A unit that fails ``tries`` times is recorded
    with its traceback, and the run continues; the next run tries it again. The results have the same bytes in all these cases.

    Parameters
    ----------
    plan
        The plan to play.
    folder
        A new or empty folder, or one where this plan was played before, perhaps with fewer replications.
    threads
        The number of threads. None: one per available core.
    engine
        An engine to play on instead of threads: any ``concurrent.futures.Executor``, or the engine that
        `robandit.experiments.dask_engine` yields. Its workers need no access to the folder. If the engine is lost, `EngineLost`
        is raised, and the same call with another engine continues.
    tries
        The number of tries per unit.
    command
        The command line, stored for the report.
    spec_text
        The text of the spec, stored in the folder.
    progress
        Called with `Compiling` and `Playing`, in this thread.
    """
    tries = integer(tries, "tries", 1, None)
    if threads is not None:
        threads = integer(threads, "threads", 1, None)
        if engine is not None:
            clash = f"threads = {threads} and an engine are given"
            raise InvalidInput(f"{clash}: an engine has its own workers; give only one of them")
    workers = _engine_for(engine) if engine is not None else None
    start = time.monotonic()
    store = Store.create(folder, plan, command=command, spec_text=spec_text)
    units: dict[str, tuple[int, Unit]] = {}  # by key: two cells may share a unit
    for number, unit in enumerate(store.plan.units):
        units.setdefault(unit.key, (number, unit))
    left = {number: unit for number, unit in units.values() if not store.ledger.done(unit)}
    todo = list(left.values())
    report = progress if progress is not None else lambda _: None
    if workers is None or workers.shares_cache:
        _compile(todo, report)
    tally = _Tally([unit for _, unit in units.values()], todo)
    report(tally.state())
    if workers is None:
        _play(todo, partial(_attend, ledger=store.ledger, tries=tries), threads or cores(), tally, report)
    else:
        try:
            _Dispatch(workers, store, tries, tally, report).play(left)
        except (EngineLost, VersionSkew) as lost:
            next_step = f"To continue: {command}" if command else "To continue, repeat the call with a working engine"
            done = f"{tally.state().units_done} of {len(units)} units"
            raise type(lost)(f"{lost}. Finished units are kept in {store.folder} ({done}). {next_step}") from lost
    return RunOutcome(
        store=store,
        done=tally.ended["played"],
        before=len(units) - len(todo),
        elsewhere=tally.ended["found"],
        failed=store.failures(),
        damaged=tuple(tally.damaged),
        seconds=time.monotonic() - start,
    )


def _engine_for(engine: object) -> Engine:
    if isinstance(engine, Engine):
        return engine
    if isinstance(engine, Executor):
        distributed = sys.modules.get("distributed.cfexecutor")
        if distributed is not None and isinstance(engine, distributed.ClientExecutor):
            return DaskEngine(engine._client)
        return ExecutorEngine(engine)
    raise invalid("engine", engine, "a concurrent.futures.Executor or an engine from robandit.experiments.dask_engine")


def _compile(units: Iterable[Unit], report: Progress) -> None:
    """Compile the policies one by one. Two at once would only wait for each other, and progress would not show."""
    cells: dict[str, Cell] = {}
    for unit in units:
        cells.setdefault(unit.cell.label, unit.cell)
    for number, (label, cell) in enumerate(cells.items(), 1):
        report(Compiling(number, len(cells), label))
        with suppress(Exception):  # the units will fail with the same error, which is then recorded
            cell.compile()


def _play(todo: list[Unit], work: partial[_Ended], threads: int, tally: _Tally, report: Progress) -> None:
    """Play every unit in this process, until no unit is locked by another run."""
    finished: queue.SimpleQueue[Future[_Ended]] = queue.SimpleQueue()
    futures: dict[Future[_Ended], Unit] = {}
    stop = threading.Event()
    # Replications of all units share the players, so that no core is idle while the last slow unit is played. The threads of
    # units only wait and write. There is one more of them than players, so that the players have work while one thread writes.
    with (
        ThreadPoolExecutor(threads, "robandit-players") as players,
        ThreadPoolExecutor(threads + 1, "robandit-units") as pool,
    ):
        try:
            while todo:
                futures.clear()
                for unit in todo:
                    future = pool.submit(work, unit, stop=stop, pool=players)
                    futures[future] = unit
                    future.add_done_callback(finished.put)
                todo = []
                while len(todo) + tally.ended.total() < tally.todo:
                    try:
                        future = finished.get(timeout=TICK)
                    except queue.Empty:
                        tally.held = 0
                        report(tally.state())
                        continue
                    ended = future.result()
                    if ended.how == "busy":
                        todo.append(futures[future])
                    else:
                        tally.held = 0
                        tally.add(futures[future], ended)
                        report(tally.state())
                if todo:  # other runs have locked these units: wait until they finish or give up
                    tally.held = len(todo)
                    time.sleep(TICK)
                    report(tally.state())
        finally:  # after a failure or Ctrl-C no unit starts, and running units stop soon
            stop.set()
            for future in futures:
                future.cancel()


def _attend(unit: Unit, ledger: Ledger, tries: int, stop: threading.Event, pool: ThreadPoolExecutor) -> _Ended:
    """Play a unit into a run folder in this process, unless it is done or locked by another run."""
    with ledger.claimed(unit) as mine:
        if not mine:
            return _Ended("busy")
        if ledger.done(unit):
            return _Ended("found")
        damaged = ledger.set_aside(unit)
        for attempt in range(1, tries + 1):
            if stop.is_set():
                return _Ended("stopped")
            try:
                result = unit.run(stop=stop, pool=pool)
            except CancelledError:
                return _Ended("stopped")
            except Exception:
                if attempt == tries:
                    ledger.fail(Failure(unit, tries, traceback.format_exc()))
            else:
                ledger.keep(unit, result)  # not in the try block: an error of the disk ends the run
                return _Ended("played", damaged, attempt - 1)
    return _Ended("failed", damaged, tries - 1)


@dataclass
class _UnderWay:
    number: int
    alone: bool
    lock: ExitStack
    damaged: Path | None


class _Dispatch:
    """A run on an engine. Units are identified by their numbers in the plan."""

    def __init__(self, engine: Engine, store: Store, tries: int, tally: _Tally, report: Progress) -> None:
        self.engine, self.tries, self.tally, self.report = engine, tries, tally, report
        self.plan, self.ledger = store.plan, store.ledger
        self.most = _most_locks()
        self.waiting: deque[int] = deque()
        self.suspects: deque[int] = deque()  # units whose workers died
        self.busy: list[int] = []  # units locked by other runs
        self.failed: Counter[int] = Counter()
        self.under_way: dict[Future[Answer], _UnderWay] = {}
        self.finished: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()

    def play(self, todo: Iterable[int]) -> None:
        self.waiting.extend(todo)
        try:
            self.engine.begin(self.plan)
            while self.waiting or self.under_way or self.suspects or self.busy:
                self._fill()
                with suppress(queue.Empty):
                    self._take(self.finished.get(timeout=TICK))
                self.report(self.tally.state())
        finally:
            # After a failure or Ctrl-C no unit starts. Workers finish their units, but the run does not wait for them.
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
            if self.suspects:  # play each alone, to find the unit that kills workers
                self._start(self.suspects.popleft(), alone=True)
            else:
                self.tally.held = len(self.busy)
                self.waiting.extend(self.busy)
                self.busy.clear()

    def _start(self, number: int, *, alone: bool = False) -> bool:
        """Lock and submit a unit. Return False if another run has locked or played it."""
        unit = self.plan.units[number]
        with ExitStack() as stack:
            if not stack.enter_context(self.ledger.claimed(unit)):
                self.busy.append(number)
                return False
            if self.ledger.done(unit):
                self.tally.add(unit, _Ended("found"))
                return False
            damaged = self.ledger.set_aside(unit)
            future = self.engine.submit(number)
            self.under_way[future] = _UnderWay(number, alone, stack.pop_all(), damaged)
        future.add_done_callback(self.finished.put)
        return True

    def _take(self, future: Future[Answer]) -> None:
        """Store the answer of a unit, or try the unit again, or record its failure."""
        each = self.under_way.pop(future)
        unit = self.plan.units[each.number]
        with each.lock:
            answer, died = self._answer(future)
            if isinstance(answer, Sent):
                self.ledger.receive(unit, answer.content, answer.seconds)
                self.tally.add(unit, _Ended("played", each.damaged))
                return
            self.failed[each.number] += 1
            if each.alone if died else self.failed[each.number] >= self.tries:
                self.ledger.fail(Failure(unit, self.failed[each.number], answer.traceback))
                self.tally.add(unit, _Ended("failed", each.damaged))
                return
            self.tally.retries += 1
            if each.damaged is not None:
                self.tally.damaged.append(each.damaged)
            (self.suspects if died else self.waiting).append(each.number)

    def _answer(self, future: Future[Answer]) -> tuple[Answer, bool]:
        """Return the answer for a unit, and whether its workers died. Raise errors that the unit did not cause."""
        error = CancelledError() if future.cancelled() else future.exception()
        try:
            if error is None:
                answer = future.result()
                if isinstance(answer, Sent):
                    check_seal(answer.content, "the answer of a worker")
                return answer, False
        except CorruptFile as damage:  # in transit
            return Lapsed(f"{damage}\n"), False
        cause = self.engine.explain(error)
        if isinstance(cause, WorkersDied):
            return Lapsed(f"{cause}. No other unit was running: it may need more memory than a worker has.\n"), True
        if cause is not None:
            raise cause from error
        return Lapsed("".join(traceback.format_exception(error))), False


def _most_locks() -> int:
    """Raise the limit of open files as far as allowed. Return the number of units that may run at once, one file each."""
    if sys.platform == "win32":
        return 4096
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if 0 <= soft < target:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    return max(1, soft - 256) if soft >= 0 else OPEN_FILES
