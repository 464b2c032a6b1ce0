"""Play a plan into a run folder: in parallel, with retries, and from where an earlier run ended."""

from __future__ import annotations

import heapq
import os
import queue
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from robandit.errors import CorruptFile, EngineLost, InvalidInput, VersionSkew
from robandit.experiments.dask_cluster import DaskEngine, WorkersDied
from robandit.experiments.engines import Answer, Lapsed, Sent
from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Cell, Plan, Unit
from robandit.experiments.results import Failure
from robandit.experiments.store import Store
from robandit.files import check_seal
from robandit.kernel.cores import cores
from robandit.kernel.messages import say
from robandit.kernel.workers import compile_all
from robandit.validation import function, integer, invalid
from robandit.wording import counted

__all__ = ["Compiling", "Playing", "Progress", "RunOutcome", "run"]

TICK = 0.2  # seconds between two reports
DEATHS = 2  # a unit whose workers died so often has failed: each time, Dask has tried it on several workers


@dataclass(frozen=True)
class Playing:
    """The report while units are played, about five times a second."""

    units: int  # in the plan
    units_done: int
    pulls: int  # in the plan
    pulls_done: int  # including pulls of earlier runs
    rate: float  # pulls per second of this run, since all policies are compiled; 0 before a unit is done
    failures: int = 0
    retries: int = 0  # number of second and later tries
    workers: int | None = None  # the engine's workers, if known; 0 if it waits for workers

    @property
    def units_left(self) -> int:
        """Units that are neither done nor failed."""
        return self.units - self.units_done - self.failures

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds at this rate; None while the rate is unknown."""
        return (self.pulls - self.pulls_done) / self.rate if self.rate > 0.0 else None


@dataclass(frozen=True)
class Compiling:
    """The report while policies are compiled or loaded from the cache. Units of compiled policies are played meanwhile."""

    number: int  # one more than the policies that are compiled
    total: int
    label: str  # the first policy, in the order of the plan, that is not compiled
    playing: Playing | None = None


Progress: TypeAlias = Callable[[Compiling | Playing], None]


@dataclass(frozen=True)
class _Ended:
    """The way in which a run finished with a unit."""

    how: Literal["played", "failed", "stopped"]
    retries: int = 0


class _Tally:
    """Count the units by the way in which they ended, and report the progress."""

    def __init__(self, units: Iterable[Unit], todo: Sequence[Unit], progress: Progress | None) -> None:
        self.progress = progress
        pulls = [unit.pulls for unit in units]
        self.units, self.pulls, self.todo = len(pulls), sum(pulls), len(todo)
        self.pulls_done = self.pulls - sum(unit.pulls for unit in todo)
        self.pulls_played = 0
        self.ended: Counter[str] = Counter()
        self.retries = 0
        self.workers: int | None = None
        self.uncompiled: dict[str, None] = {}
        self.policies = 0
        self.start = time.monotonic()
        self.earlier = 0  # pulls played before the start

    def begin(self, labels: Iterable[str]) -> None:
        """Report the start of a run that compiles these policies."""
        self.uncompiled = dict.fromkeys(labels)
        self.policies = len(self.uncompiled)
        self.report()

    def compiled(self, label: str) -> None:
        del self.uncompiled[label]
        if not self.uncompiled:  # the rate until now depended on the compiler
            self.start, self.earlier = time.monotonic(), self.pulls_played
        self.report()

    def add(self, unit: Unit, ended: _Ended) -> None:
        self.ended[ended.how] += 1
        if ended.how != "failed":
            self.pulls_done += unit.pulls
        if ended.how == "played":
            self.pulls_played += unit.pulls
        self.retries += ended.retries

    def report(self) -> None:
        if self.progress is None:
            return
        playing = self.state()
        if self.uncompiled:
            number = self.policies - len(self.uncompiled) + 1
            self.progress(Compiling(number, self.policies, next(iter(self.uncompiled)), playing))
        else:
            self.progress(playing)

    def state(self) -> Playing:
        units_done = self.units - self.todo + self.ended["played"]
        rate = (self.pulls_played - self.earlier) / max(time.monotonic() - self.start, 1e-9)
        counts = (self.ended["failed"], self.retries, self.workers)
        return Playing(self.units, units_done, self.pulls, self.pulls_done, 0.0 if self.uncompiled else rate, *counts)


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run. A unit that two cells share counts once."""

    store: Store
    done: int  # units that this run played
    before: int  # units that were done when this run started
    failed: tuple[Failure, ...]
    seconds: float

    def __repr__(self) -> str:
        """Return one line."""
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        units = f"{counted(self.done, 'unit')} played in {self.seconds:.0f} s, {self.before:,} done before"
        return f"<RunOutcome: {units}{failed}; {self.store.folder}>"


def run(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    threads: int | None = None,
    engine: DaskEngine | None = None,
    tries: int = 3,
    command: str = "",
    spec_text: str | None = None,
    progress: Progress | None = None,
) -> RunOutcome:
    """Play the units of a plan that are not done, and store each in the run folder as soon as it is finished.

    Policies are compiled meanwhile: the units of a policy start when it is ready.

    If a run is interrupted, only the running units are lost, and the same call continues. Ctrl-C stops a run within a fraction of
    a second. Another run in the same folder is refused meanwhile. A unit that fails ``tries`` times is recorded with its traceback,
    and the run continues; the next run tries it again. The results have the same bytes in all these cases.

    Parameters
    ----------
    plan
        The plan to play.
    folder
        A new or empty folder, or one where this plan was played before, perhaps with fewer replications.
    threads
        The number of threads. None: one per available core.
    engine
        The engine that `robandit.experiments.dask_engine` yields, or Dask's ``client.get_executor()``, to play on instead of
        threads. Its workers need no access to the folder. If the engine is lost, `EngineLost` is raised, and the same call with
        another engine continues.
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
    function(progress, "progress", "a function")
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
    with store.alone():
        left = {number: unit for number, unit in units.values() if not store.ledger.done(unit)}
        tally = _Tally([unit for _, unit in units.values()], list(left.values()), progress)
        if workers is None:
            _play(left, partial(_attend, ledger=store.ledger, tries=tries), threads or cores(), tally)
        else:
            try:
                _Dispatch(workers, store, tries, tally).play(left)
            except (EngineLost, VersionSkew) as lost:
                next_step = (
                    f"To continue: {command}" if command else "To continue, repeat the call with a working engine"
                )
                done = f"{tally.state().units_done} of {len(units)} units"
                raise type(lost)(f"{lost}. Finished units are kept in {store.folder} ({done}). {next_step}") from lost
    return RunOutcome(
        store=store,
        done=tally.ended["played"],
        before=len(units) - len(left),
        failed=store.failures(),
        seconds=time.monotonic() - start,
    )


def _engine_for(engine: object) -> DaskEngine:
    if isinstance(engine, DaskEngine):
        return engine
    distributed = sys.modules.get("distributed.cfexecutor")
    if distributed is not None and isinstance(engine, distributed.ClientExecutor):
        return DaskEngine(engine._client)
    rule = "an engine from robandit.experiments.dask_engine, or Dask's client.get_executor()"
    raise invalid("engine", engine, rule, hint="on one machine, give threads=, or dask_engine(workers=8)")


class _Compilation:
    """Compile the policies of units meanwhile, and hand out the units whose policies are ready.

    Without ``threads``, nothing is compiled, and all units are ready at once.
    """

    def __init__(
        self, todo: Mapping[int, Unit], tally: _Tally, tell: Callable[[str], None], threads: int | None
    ) -> None:
        self.tally, self.tell, self.threads = tally, tell, threads
        self.waiting: dict[str, list[int]] = {}  # numbers of units, by the label of their policy
        self.cells: dict[str, Cell] = {}
        for number, unit in todo.items():
            self.waiting.setdefault(unit.cell.label, []).append(number)
            self.cells.setdefault(unit.cell.label, unit.cell)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name="robandit-compiler", daemon=True)

    def __enter__(self) -> _Compilation:
        self.tally.begin(self.cells if self.threads else ())
        self.thread.start()
        return self

    def ready(self, label: str) -> list[int]:
        """Return the units of a policy that was told to be ready."""
        if label in self.tally.uncompiled:
            self.tally.compiled(label)
        return self.waiting.pop(label, [])

    def _run(self) -> None:
        try:
            if self.threads:
                _compile(self.cells, self.tell, self.threads, self.stop)
        except Exception as error:
            say(f"policies cannot be compiled in advance ({error}); each is compiled when it is first played")
        finally:
            for label in self.cells:
                self.tell(label)

    def __exit__(self, *_: object) -> None:
        """Stop compiling: after a failure or Ctrl-C nothing is needed."""
        self.stop.set()
        self.thread.join()


def _compile(cells: Mapping[str, Cell], done: Callable[[str], None], processes: int, stop: threading.Event) -> None:
    """Compile the policies on several cores, and call ``done`` with the label of each that is compiled or cannot be compiled.

    Units of a policy that cannot be compiled will fail with the same error, which is then recorded.
    """
    compile_all({label: cell.kernels for label, cell in cells.items()}, done, processes=processes, stop=stop)


def _play(todo: Mapping[int, Unit], work: partial[_Ended], threads: int, tally: _Tally) -> None:
    """Play every unit in this process."""
    # A future is a unit that has ended, a string is the label of a policy that is compiled.
    events: queue.SimpleQueue[Future[_Ended] | str] = queue.SimpleQueue()
    under_way: dict[Future[_Ended], int] = {}
    # A heap of numbers of units: those that come first in the plan are played first, so that its first problem ends first.
    ready: list[int] = []
    stop = threading.Event()
    # Replications of all units share the players, so that no core is idle while the last slow unit is played. The threads of
    # units only wait and write. There is one more of them than players, so that the players have work while one thread writes.
    with (
        ThreadPoolExecutor(threads, "robandit-players") as players,
        ThreadPoolExecutor(threads + 1, "robandit-units") as pool,
        _Compilation(todo, tally, events.put, threads) as compilation,
    ):
        try:
            while compilation.waiting or ready or under_way:
                while ready and len(under_way) <= 2 * threads + 1:  # some wait, so that no thread waits for this one
                    number = heapq.heappop(ready)
                    future = pool.submit(work, todo[number], stop=stop, pool=players)
                    under_way[future] = number
                    future.add_done_callback(events.put)
                try:
                    event = events.get(timeout=TICK)
                except queue.Empty:
                    tally.report()
                    continue
                if isinstance(event, str):
                    for number in compilation.ready(event):
                        heapq.heappush(ready, number)
                    continue
                tally.add(todo[under_way.pop(event)], event.result())
                tally.report()
        finally:  # after a failure or Ctrl-C no unit starts, and running units stop soon
            stop.set()
            for future in under_way:
                future.cancel()


def _attend(unit: Unit, ledger: Ledger, tries: int, stop: threading.Event, pool: ThreadPoolExecutor) -> _Ended:
    """Play a unit into a run folder in this process."""
    ledger.set_aside(unit)
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
            return _Ended("played", attempt - 1)
    return _Ended("failed", tries - 1)


class _Dispatch:
    """A run on an engine. Units are identified by their numbers in the plan."""

    def __init__(self, engine: DaskEngine, store: Store, tries: int, tally: _Tally) -> None:
        self.engine, self.tries, self.tally = engine, tries, tally
        self.plan, self.ledger = store.plan, store.ledger
        self.waiting: deque[int] = deque()
        self.failed: Counter[int] = Counter()
        self.under_way: dict[Future[Answer], int] = {}  # numbers of units
        self.events: queue.SimpleQueue[Future[Answer] | str] = queue.SimpleQueue()  # as in `_play`

    def play(self, todo: Mapping[int, Unit]) -> None:
        threads = cores() if self.engine.shares_cache else None
        with _Compilation(todo, self.tally, self.events.put, threads) as compilation:
            try:
                self.engine.begin(self.plan)
                while compilation.waiting or self.waiting or self.under_way:
                    self._fill()
                    with suppress(queue.Empty):
                        event = self.events.get(timeout=TICK)
                        if isinstance(event, str):  # in the plan's order, so that its first problem ends first
                            self.waiting = deque(sorted([*self.waiting, *compilation.ready(event)]))
                        else:
                            self._take(event)
                    self.tally.report()
            finally:
                # After a failure or Ctrl-C no unit starts. Workers finish their units, but the run does not wait for them.
                self.engine.end(self.under_way)

    def _fill(self) -> None:
        self.tally.workers = self.engine.workers()
        for _ in range(min(self.engine.room(self.under_way), len(self.waiting))):
            number = self.waiting.popleft()
            self.ledger.set_aside(self.plan.units[number])
            future = self.engine.submit(number)
            self.under_way[future] = number
            future.add_done_callback(self.events.put)

    def _take(self, future: Future[Answer]) -> None:
        """Store the answer of a unit, or try the unit again, or record its failure."""
        number = self.under_way.pop(future)
        unit = self.plan.units[number]
        answer, died = self._answer(future)
        if isinstance(answer, Sent):
            self.ledger.receive(unit, answer.content, answer.seconds)
            self.tally.add(unit, _Ended("played"))
            return
        self.failed[number] += 1
        if self.failed[number] >= (min(DEATHS, self.tries) if died else self.tries):
            self.ledger.fail(Failure(unit, self.failed[number], answer.traceback))
            self.tally.add(unit, _Ended("failed"))
            return
        self.tally.retries += 1
        self.waiting.append(number)  # the last, with few other units on its worker

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
            return Lapsed(
                f"{cause}. This unit, or one on the same workers, may need more memory than a worker has.\n"
            ), True
        if cause is not None:
            raise cause from error
        return Lapsed("".join(traceback.format_exception(error))), False
