"""Sends units to an engine, a few at a time, and stores what comes back."""

from __future__ import annotations

import queue
import sys
import traceback
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from robandit.errors import CorruptFile
from robandit.experiments.engines import Answer, Engine, Lapsed, Sent, WorkersDied
from robandit.experiments.progress import TICK, Ended, Progress, Tally
from robandit.experiments.results import Failure
from robandit.experiments.store import Store
from robandit.files import check_seal

OPEN_FILES = 16_384  # the most units under way at once


@dataclass
class _UnderWay:
    number: int
    alone: bool
    lock: ExitStack
    damaged: Path | None


class Dispatch:
    """A run on an engine. Units go by their numbers in the plan."""

    def __init__(self, engine: Engine, store: Store, tries: int, tally: Tally, report: Progress) -> None:
        """Use the engine for the store's plan."""
        self.engine, self.tries, self.tally, self.report = engine, tries, tally, report
        self.plan, self.ledger = store.plan, store.ledger
        self.most = _most_locks()
        self.waiting: deque[int] = deque()
        self.suspects: deque[int] = deque()  # their workers died
        self.busy: list[int] = []  # locked by other runs
        self.failed: Counter[int] = Counter()
        self.under_way: dict[Future[Answer], _UnderWay] = {}
        self.finished: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()

    def play(self, todo: Iterable[int]) -> None:
        """Play until every unit is played, found or failed."""
        self.waiting.extend(todo)
        try:
            self.engine.begin(self.plan)
            while self.waiting or self.under_way or self.suspects or self.busy:
                self._fill()
                with suppress(queue.Empty):
                    self._take(self.finished.get(timeout=TICK))
                self.report(self.tally.state())
        finally:
            # After a failure or Ctrl-C no unit starts. Workers finish their units, but nothing waits for them.
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
            if self.suspects:  # alone, so that it is clear which unit kills workers
                self._start(self.suspects.popleft(), alone=True)
            else:
                self.tally.held = len(self.busy)
                self.waiting.extend(self.busy)
                self.busy.clear()

    def _start(self, number: int, *, alone: bool = False) -> bool:
        """Lock and submit a unit; return False if it is locked or done elsewhere."""
        unit = self.plan.units[number]
        with ExitStack() as stack:
            if not stack.enter_context(self.ledger.claimed(unit)):
                self.busy.append(number)
                return False
            if self.ledger.done(unit):
                self.tally.add(unit, Ended("found"))
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
        """Return the answer for a unit, and whether its workers died. Raise what is not the unit's fault."""
        error = CancelledError() if future.cancelled() else future.exception()
        try:
            if error is None:
                answer = future.result()
                if isinstance(answer, Sent):
                    check_seal(answer.content, "what a worker sent")
                return answer, False
        except CorruptFile as damage:  # in transit
            return Lapsed(f"{damage}\n"), False
        cause = self.engine.explain(error)
        if isinstance(cause, WorkersDied):
            return Lapsed(f"{cause}. It was alone there: perhaps it needs more memory than a worker has.\n"), True
        if cause is not None:
            raise cause from error
        return Lapsed("".join(traceback.format_exception(error))), False


def _most_locks() -> int:
    """Return how many units may be under way at once, each with an open file; raise the system's limit as far as allowed."""
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
