"""Plays a plan into a run folder: in parallel, with retries, and continuing where an earlier run ended."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from robandit.errors import EngineLost, InvalidInput, VersionSkew
from robandit.experiments.dask_cluster import DaskEngine
from robandit.experiments.dispatch import Dispatch
from robandit.experiments.engines import Engine, ExecutorEngine
from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Cell, Plan, Unit
from robandit.experiments.progress import TICK, Compiling, Ended, Playing, Progress, Tally
from robandit.experiments.results import Failure
from robandit.experiments.store import Store
from robandit.kernel.cores import cores
from robandit.validation import integer, invalid

__all__ = ["Compiling", "Playing", "Progress", "RunOutcome", "run"]


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. A unit that two cells share counts once."""

    store: Store
    done: int  # units that this run played
    before: int  # units that were done when it started
    elsewhere: int  # units that other runs on the same folder played meanwhile
    failed: tuple[Failure, ...]
    damaged: tuple[Path, ...]  # damaged parts, which were moved here and played again
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

    However a run ends, at most the units under way are lost, and the same call continues; Ctrl-C stops them within a fraction of a
    second. Several runs may share a folder; each unit is played by one of them. A unit that fails is tried again, then recorded
    with its traceback, and the others go on; the next run tries it again. The results have the same bytes in all these cases.

    Parameters
    ----------
    plan
        What to play.
    folder
        A new or empty folder, or one where this plan was played before, perhaps with fewer replications.
    threads
        None: one per available core.
    engine
        Play there instead: any ``concurrent.futures.Executor``, or what `robandit.experiments.dask_engine` yields. Its workers
        need not see the folder: they send what they played. If the engine is lost, `EngineLost` is raised, and the same call with
        another engine continues.
    tries
        How often a unit may fail.
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
            raise InvalidInput(f"{clash}: an engine has its own workers; leave one out")
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
    tally = Tally([unit for _, unit in units.values()], todo)
    report(tally.state())
    if workers is None:
        _play(todo, partial(_attend, ledger=store.ledger, tries=tries), threads or cores(), tally, report)
    else:
        try:
            Dispatch(workers, store, tries, tally, report).play(left)
        except (EngineLost, VersionSkew) as lost:
            next_step = f"To go on: {command}" if command else "The same call, on an engine that works, goes on"
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
    raise invalid("engine", engine, "a concurrent.futures.Executor, or what robandit.experiments.dask_engine yields")


def _compile(units: Iterable[Unit], report: Progress) -> None:
    """Compile each policy, one after the other: two at once would only wait for each other, without a sign of progress."""
    cells: dict[str, Cell] = {}
    for unit in units:
        cells.setdefault(unit.cell.label, unit.cell)
    for number, (label, cell) in enumerate(cells.items(), 1):
        report(Compiling(number, len(cells), label))
        with suppress(Exception):  # its units will fail in the same way, and be recorded
            cell.compile()


def _play(todo: list[Unit], work: partial[Ended], threads: int, tally: Tally, report: Progress) -> None:
    """Play every unit in this process, until no unit is locked by another run."""
    finished: queue.SimpleQueue[Future[Ended]] = queue.SimpleQueue()
    futures: dict[Future[Ended], Unit] = {}
    stop = threading.Event()
    # Replications of all units share the players: no core is idle while the last slow unit is played. Units have threads of
    # their own, which only wait and write; one more than players, so that there is work while one writes.
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
                if todo:  # locked by other runs: wait until these finish or give up
                    tally.held = len(todo)
                    time.sleep(TICK)
                    report(tally.state())
        finally:  # after a failure or Ctrl-C no unit starts, and running ones stop soon
            stop.set()
            for future in futures:
                future.cancel()


def _attend(unit: Unit, ledger: Ledger, tries: int, stop: threading.Event, pool: ThreadPoolExecutor) -> Ended:
    """Play a unit into a run folder in this process, unless it is done or locked by another run."""
    with ledger.claimed(unit) as mine:
        if not mine:
            return Ended("busy")
        if ledger.done(unit):
            return Ended("found")
        damaged = ledger.set_aside(unit)
        for attempt in range(1, tries + 1):
            if stop.is_set():
                return Ended("stopped")
            try:
                result = unit.run(stop=stop, pool=pool)
            except CancelledError:
                return Ended("stopped")
            except Exception:
                if attempt == tries:
                    ledger.fail(Failure(unit, tries, traceback.format_exc()))
            else:
                ledger.keep(unit, result)  # an error here is the disk's: it ends the run
                return Ended("played", damaged, attempt - 1)
    return Ended("failed", damaged, tries - 1)
