"""The engine of a server that shares its store with others: the same experiments, in the memory of each server.

The servers are state machines that follow the same log. A server appends to the log of an experiment only in a *turn*, which it
gets from the store, and which no other server has at the same time:

1. Calls wait until a worker of the server has ended its last turn. It then waits for the turn of the experiment whose calls have
   waited longest. The turn includes other experiments with waiting calls, if they are free: a turn costs more than a call.
2. With the turn come the events that other servers have stored meanwhile. They are applied, and the state in memory is the newest.
3. The waiting calls take effect on it, one after the other, and make events.
4. The events are stored, which ends the turn, and the calls are answered.

If the events cannot be stored, the state in memory is ahead of the log. It is then loaded again, before anything else is done with
the experiment. The server goes on; its calls are answered with an error until the store is back.

Reads need no turn: they ask the store for the newest events, apply them, and look. Between, a pulse tells twice a second what other
servers did, so that tails stay short. Times are those of the store, so the clocks of servers may differ.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from typing import Any

import msgspec

from robandit import __version__
from robandit.decisions import pace
from robandit.decisions.base import NOT_STORED, Action, BaseEngine, T, outcome, removal_detail
from robandit.decisions.experiment import EXPIRED_AT_ONCE, STORED_ID, LiveExperiment
from robandit.decisions.restoring import empty, missing, restored
from robandit.decisions.settings import NAME
from robandit.errors import CorruptFile, NotFound, Overloaded, RobanditError, StoreError, StoreUnavailable, formatted
from robandit.live.engine import Compile
from robandit.storage import Event, StoredExperiment
from robandit.storage.base import Asked, Change, Clash, Create, Found, Pulse, Remove, SharedStore, Turn
from robandit.storage.group_commit import Committed

PULSE = 0.5  # seconds between two pulses, or more:
PULSE_SHARE = 0.05  # the share of the time that they may take
PATIENCE = 3.0  # seconds without an answer to a pulse after which the store counts as away
MOST_WEIGHT = 1_000  # decisions and rewards in one turn; they take about 20 ms
MANY_ARMS = 50  # that make a decision twice as heavy
MOST_TOGETHER = 100  # experiments in one turn
WORKERS = 1  # that take turns. More would share the same calls among more, and smaller, turns
MOST_WORKERS = 6  # while all others have waited for longer than this:
SLOW = 0.1  # seconds, such as for an experiment that another server keeps
FULL = 0.05  # seconds of a turn after which no more calls join
LONGEST = 4.0  # seconds of a turn: other servers do not wait for much longer
SILENCE = 0.5  # seconds without a word to the store, which ends a turn after 2: the server may have stopped
RECENT = 0.02  # seconds after a call in which another one is likely
THREADS = 8  # that wait for the store
TRIES = 20  # to make an experiment while other servers make some


class _Gone(Exception):
    """The experiment was removed by another server."""


class _TooLong(Overloaded):
    """A batch takes longer than a turn may."""


class _Pace:
    """The time that calls take in a turn. Others act now and then."""

    def __init__(self, speak: Callable[[], Awaitable[None]]) -> None:
        self._speak = speak
        self._began = self._spoke = self._rested = time.monotonic()

    @property
    def is_full(self) -> bool:
        """Whether no more calls may join the turn."""
        return time.monotonic() - self._began >= FULL

    @property
    def is_over(self) -> bool:
        """Whether others should act now."""
        return time.monotonic() - self._rested >= pace.SLICE

    async def rest(self) -> None:
        """Let others act. Raise `StoreUnavailable` if the turn is lost."""
        now = time.monotonic()
        if now - self._began >= LONGEST:
            way_out = "send fewer items, or wait some seconds until the policy is compiled"
            raise _TooLong(f"the batch took more than {LONGEST:g} seconds, and nothing of it was stored: {way_out}")
        if now - self._spoke >= SILENCE:
            await self._speak()
            self._spoke = now
        else:
            await asyncio.sleep(0)
        self._rested = time.monotonic()


class _Call:
    """Actions that wait for a turn, and then take effect one right after the other."""

    def __init__(
        self, actions: Sequence[Action[Any] | Exception], ids: Sequence[str], closes: bool, experiment: LiveExperiment
    ) -> None:
        self.actions = actions
        self.ids = ids
        self.closes = closes
        arms = len(experiment.bandit.arms) if len(actions) > 1 else 0
        self.weight = min(MOST_WEIGHT, len(actions) * (1 + arms // MANY_ARMS))
        """How much of a turn it takes."""
        self.answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.results: list[Any] = []
        self.error: Exception | None = None

    def unknown_ids(self, experiment: LiveExperiment) -> list[str]:
        """Return the ids whose events are not in memory, so that the log must be searched for them."""
        possible = [id for id in self.ids if STORED_ID.fullmatch(id)]  # others are in no log
        return [id for id in possible if not experiment.is_open(id)] if self.closes else possible

    def take_effect(self, experiment: LiveExperiment) -> Iterator[None]:
        """Take effect. Others may have a turn where it yields."""
        self.results = []
        for action in self.actions:
            self.results.append(outcome(action, experiment))
            yield

    def finish(self) -> None:
        """Answer the call."""
        if self.error is not None:
            self.fail(self.error)
        elif not self.answer.done():  # else it was cancelled
            self.answer.set_result(self.results)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class _Line:
    """The calls that wait for one experiment, and whether its state in memory is that of the log."""

    def __init__(self, experiment: LiveExperiment) -> None:
        self.experiment = experiment
        self.calls: deque[_Call] = deque()
        self.awaited = False
        """Whether a worker waits for the turn, or has it, as the first of several."""
        self.state = asyncio.Lock()
        """Held while the state is ahead of the log, or is loaded again."""
        self.still = asyncio.Event()
        """Set unless a batch has half taken effect, or the state will not be stored."""
        self.still.set()
        self.ahead = False
        """Whether the state has events that may not be stored. It must then be loaded again."""
        self.last: Event | None = None
        """The last event in the state, if it is known."""
        self.snapshot = 0
        """The event of the newest snapshot that the server knows."""
        self.following: asyncio.Task[None] | None = None
        """Applies what a pulse has told of."""


class _Work:
    """What the calls of one experiment make in a turn."""

    def __init__(self, time: float, known: Iterable[Event] = ()) -> None:
        self.time = time
        self.calls: list[_Call] = []
        self.known = {(event.kind, event.id): event for event in known}
        self.events: list[Event] = []
        self.changes: list[Change] = []
        self.removed = False


class Replica(BaseEngine):
    """The experiments of a store that several servers share."""

    store: SharedStore

    def __init__(
        self,
        store: SharedStore,
        *,
        clock: Callable[[], float] = time.time,
        on_catalogue: Callable[[], Awaitable[object]] | None = None,
        **options: Any,
    ) -> None:
        """Start the threads that wait for the store. ``on_catalogue`` is called when keys or sessions may have changed.

        ``clock`` is that of this machine, and ``options`` are those of `BaseEngine`.
        """
        super().__init__(store, **options)
        self.clock = self._clock
        self._wall = clock
        self._on_catalogue = on_catalogue
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="robandit-store")
        self._for_turns = ThreadPoolExecutor(MOST_WORKERS, thread_name_prefix="robandit-turn")
        """One thread for each worker: whoever has a turn can end it, although others wait for theirs, or read."""
        self._lines: dict[int, _Line] = {}
        self._due: dict[_Line, None] = {}
        """The lines with waiting calls, in the order of their turns."""
        self._recent: dict[_Line, float] = {}
        """The lines whose calls took effect a moment ago, and when, oldest first."""
        self._workers: dict[asyncio.Task[None], float] = {}
        """Those who take turns, and when they began with the present one."""
        self._unstored: set[_Line] = set()
        """The lines whose state is, or was, ahead of the log."""
        self._work: _Work | None = None
        """What is being made: set while calls take effect."""
        self._waiting = 0
        self._problem = ""
        self._offset = 0.0
        """The time of the store minus that of this machine."""
        self._catalogue = -1
        self._adding = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    def _clock(self) -> float:
        """Return the time of the store: in a turn exactly, else about."""
        return self._wall() + self._offset if self._work is None else self._work.time

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def _in_turn(self, function: Callable[..., T], *arguments: Any) -> T:
        """Do a step of a turn in another thread. Only a worker does this, so there is always a free one."""
        return await asyncio.get_running_loop().run_in_executor(self._for_turns, function, *arguments)

    def _start(self, coroutine: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- loading --------------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        self._start(self._watch())
        pulse = await self._in_thread(self.store.pulse)
        self._offset, self._catalogue = pulse.time - self._wall(), pulse.catalogue
        stored = await self._in_thread(self.store.read, lambda reader: reader.experiments())
        for place, each in enumerate(stored, start=1):
            self.progress = f"loading experiment {place} of {len(stored)}"
            await self._load_new(each)
        self.progress = "ready"
        self.loaded = True
        self._start(self._follow_others())
        self._start(self._tidy())

    async def _load_new(self, stored: StoredExperiment) -> LiveExperiment | None:
        """Load an experiment. Return None if it was removed meanwhile."""
        try:
            experiment = await self._loaded(stored)
        except _Gone:
            return None
        older = self.experiments.get(stored.name)
        if older is not None:
            self._forget(older)
        self._lines[stored.number] = _Line(experiment)
        self._add(experiment)
        return experiment

    def _empty(self, stored: StoredExperiment, compile: Compile) -> LiveExperiment:
        return empty(stored, clock=self._clock, find=self._find, emit=self._emit, compile=compile)

    async def _loaded(self, stored: StoredExperiment) -> LiveExperiment:
        """Return an experiment with the state of its log. If events are archived meanwhile, begin again."""
        number = stored.number
        while True:
            archived = await self._archived(number)
            try:
                return await self._folded(stored)
            except CorruptFile:
                if await self._archived(number) == archived:
                    raise

    async def _archived(self, number: int) -> int:
        return await self._in_thread(self.store.read, lambda reader: reader.archived(number))

    async def _folded(self, stored: StoredExperiment) -> LiveExperiment:
        """Return the newest snapshot of an experiment with the events after it."""
        number = stored.number
        snapshots = await self._in_thread(self.store.read, lambda reader: reader.snapshots(number))
        head, _ = await self._in_thread(self.store.tail, number, stored.head)
        if head is None:
            raise _Gone
        compile = self._compile_for(snapshots, head)
        experiment = restored(snapshots, head, lambda: self._empty(stored, compile))
        while experiment.seq < head:
            present, events = await self._in_thread(self.store.tail, number, experiment.seq)
            if present is None or present < head:  # removed meanwhile, or a backup of the database was restored
                raise _Gone
            if not events or events[0].seq != experiment.seq + 1:
                raise missing(experiment, await self._archived(number))
            for _ in experiment.applying(events):
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        return experiment

    def _forget(self, experiment: LiveExperiment) -> None:
        """Remove an experiment from memory."""
        if self._by_number.pop(experiment.number, None) is not None:
            line = self._lines.pop(experiment.number)
            self._unstored.discard(line)
            if self.experiments.get(experiment.name) is experiment:
                del self.experiments[experiment.name]

    async def present(self, name: str) -> LiveExperiment:
        """An experiment that another server has just made is loaded."""
        known = self.experiments.get(name)
        if known is not None or not NAME.fullmatch(name):
            return self.find(name)
        async with self._adding:
            known = self.experiments.get(name)
            if known is None:
                stored = await self._in_thread(self.store.find_name, name)
                known = None if stored is None else await self._load_new(stored)
        return self.find(name) if known is None else known

    # --- turns ----------------------------------------------------------------------------------------------------------

    @property
    def problem(self) -> str:
        return self._problem

    @property
    def waiting(self) -> int:
        return self._waiting

    async def change(self, name: str, action: Action[T], *, ids: Sequence[str] = (), closes: bool = False) -> T:
        (result,) = await self.change_all(name, [action], ids=ids, closes=closes)
        if isinstance(result, Exception):
            raise result
        return result

    async def change_all(
        self, name: str, actions: Sequence[Action[T] | Exception], *, ids: Sequence[str], closes: bool = False
    ) -> list[T | Exception]:
        if self._waiting > self._most_waiting:
            self._check_store()
            raise Overloaded(f"{self._waiting:,} calls wait for the store: send less, or try again in a second")

        async def queued(experiment: LiveExperiment) -> list[T | Exception]:
            return await self._queued(experiment, _Call(actions, ids, closes, experiment))

        return await self._while_there(name, queued)

    async def _while_there(self, name: str, work: Callable[[LiveExperiment], Awaitable[T]]) -> T:
        """Return what work with an experiment returns. If the experiment is removed meanwhile, begin once more."""
        self._check_store()
        for _ in range(2):
            with suppress(_Gone):  # perhaps it was made again
                return await work(await self.present(name))
        raise NotFound(
            f"there is no experiment {formatted(name)}: it was removed a moment ago", code="unknown-experiment"
        )

    def _check_store(self) -> None:
        """Raise `StoreUnavailable` if the store is known to be away. The next pulse finds out when it is back."""
        if self._problem:
            raise StoreUnavailable(self._problem)

    async def _queued(self, experiment: LiveExperiment, call: _Call) -> list[Any]:
        line = self._lines.get(experiment.number)
        if line is None:
            raise _Gone
        line.calls.append(call)
        self._due.setdefault(line)
        self._waiting += call.weight
        self._employ()
        try:
            return await call.answer
        finally:
            self._waiting -= call.weight

    def _employ(self) -> None:
        """Start a worker if there is work for one. More than usual are started while all others are slow."""
        number = len(self._workers)
        if self._next() is None or number >= MOST_WORKERS:
            return
        if number < WORKERS or time.monotonic() - max(self._workers.values()) > SLOW:
            self._workers[self._start(self._serve())] = time.monotonic()

    def _next(self) -> _Line | None:
        return next((line for line in self._due if not line.awaited), None)

    async def _serve(self) -> None:
        """Take turns until no call waits."""
        worker = asyncio.current_task()
        assert worker is not None
        try:
            while (line := self._next()) is not None:
                self._workers[worker] = time.monotonic()
                line.awaited = True
                try:
                    await self._take_turn(line)
                except Exception as error:
                    away = self._problem and isinstance(error, StoreUnavailable)
                    for each in (line, *(self._due if away else ())):
                        self._fail(each, error)
                finally:
                    line.awaited = False
        finally:
            del self._workers[worker]

    def _fail(self, line: _Line, error: Exception) -> None:
        """Answer all calls that wait for an experiment with an error."""
        calls = list(line.calls)
        line.calls.clear()
        self._due.pop(line, None)
        for call in calls:
            call.fail(error)

    def _wanted(self, first: _Line) -> dict[_Line, Asked]:
        """Return what must be read for the calls of an experiment, and of others as long as the turn has room for them."""
        wanted: dict[_Line, Asked] = {}
        room = MOST_WEIGHT
        for line in (first, *self._companions()):
            ids: list[str] = []
            for call in line.calls:
                if room <= 0:
                    break
                room -= call.weight
                ids += call.unknown_ids(line.experiment)
            wanted[line] = Asked(line.experiment.number, _before(line.experiment), ids)
            if room <= 0 or len(wanted) == MOST_TOGETHER:
                break
        return wanted

    async def _take_turn(self, first: _Line) -> None:
        """Wait for the turn of an experiment, and use it, and those of others that come with it."""
        if self._lines.get(first.experiment.number) is not first:  # removed, or loaded anew
            raise _Gone
        await self._be_on_the_log(first.experiment, first)
        wanted = self._wanted(first)
        asked = list(wanted.values())
        turn = await self._in_turn(self.store.turn, *asked[0], asked[1:])
        found = {line: turn.found[number] for line in wanted if (number := line.experiment.number) in turn.found}
        try:
            async with AsyncExitStack() as stack:
                for line in sorted(found, key=lambda line: line.experiment.number):  # so nobody waits in a circle
                    await stack.enter_async_context(line.state)
                works: dict[_Line, _Work] = {}
                pace = _Pace(lambda: self._in_turn(turn.keep))
                for line, each in found.items():
                    if self._lines.get(line.experiment.number) is line and await self._has_caught_up(line, each):
                        weight = sum(call.weight for work in works.values() for call in work.calls)
                        work = await self._made(line, each, turn.time, wanted[line].ids, MOST_WEIGHT - weight, pace)
                        if work is not None:
                            works[line] = work
                await self._commit(turn, works)
        finally:
            if not turn.ended:
                await self._in_turn(turn.cancel)
        for work in works.values():
            for call in work.calls:
                call.finish()
        if first not in works and not first.ahead:  # a long tail: others need not wait while it is applied
            await self._look(first.experiment, _nothing)

    def _companions(self) -> list[_Line]:
        """Return the lines whose experiments a turn may include: those with calls, and those to which some may come meanwhile."""
        soon = time.monotonic() - RECENT
        while self._recent and next(iter(self._recent.values())) < soon:
            del self._recent[next(iter(self._recent))]
        known = (line for line in self._recent if self._lines.get(line.experiment.number) is line)
        lines = dict.fromkeys((*self._due, *known))
        return [line for line in lines if not line.awaited and not line.ahead]

    async def _has_caught_up(self, line: _Line, found: Found) -> bool:
        """Apply the newest events. Return whether the state is that of the log."""
        experiment = line.experiment
        if found.head is None:
            self._forget(experiment)
            self._fail(line, _Gone())
            return False
        try:
            await self._apply(experiment, line, found.head, found.tail)
        except Exception as error:  # other experiments go on
            self._fail(line, error)
            return False
        if experiment.seq > found.head:
            line.ahead = True
        return experiment.seq == found.head and not line.ahead

    async def _made(
        self, line: _Line, found: Found, now: float, ids: Sequence[str], room: int, pace: _Pace
    ) -> _Work | None:
        """Let waiting calls take effect, also those that came while the turn was awaited. Return None if this fails.

        Nobody else changes or reads the experiment meanwhile: the lock of its state is held. Other calls have a turn now and then.

        A call must wait for the next turn if it needs events that were not searched for.
        """
        experiment, searched = line.experiment, set(ids)
        line.ahead = True
        line.still.clear()
        self._unstored.add(line)
        self._work = work = _Work(now, (*found.known, *found.tail))
        try:
            if line.calls and experiment.version != __version__:
                experiment.upgrade()
            while line.calls and (room == MOST_WEIGHT or (room >= line.calls[0].weight and not pace.is_full)):
                if not searched.issuperset(line.calls[0].unknown_ids(experiment)):
                    break
                call = line.calls.popleft()
                room -= call.weight
                work.calls.append(call)
                if work.removed:
                    call.error = _Gone()
                else:
                    for _ in call.take_effect(experiment):
                        if pace.is_over:
                            self._work = None
                            await pace.rest()
                            self._work = work
            if found.snapshot != line.snapshot:
                line.snapshot, experiment.extra = found.snapshot, 0
            tail = experiment.seq - found.snapshot + experiment.extra
            due = tail >= self._snapshot_every and not experiment.bandit.is_broken
            if due and work.events and not work.removed:
                work.changes.append(experiment.snapshot())
        except _TooLong as error:  # the state is loaded again, then the other calls take effect
            work.calls.pop().fail(error)
            line.calls.extendleft(reversed(work.calls))
            if not line.calls:
                self._due.pop(line, None)
            return None
        except Exception as error:  # other experiments go on; this one is loaded again
            line.calls.extendleft(reversed(work.calls))
            self._fail(line, error)
            return None
        finally:
            self._work = None
        line.still.set()
        if work.calls or not line.calls:  # who had no room keeps its place
            self._due.pop(line, None)
            if line.calls:  # behind the others
                self._due[line] = None
        if work.calls:
            self._recent.pop(line, None)
            self._recent[line] = time.monotonic()
        return work

    async def _commit(self, turn: Turn, works: dict[_Line, _Work]) -> None:
        """Store what the calls have made."""
        events = [event for work in works.values() for event in work.events]
        changes = [change for work in works.values() for change in work.changes]
        if events or changes:
            start = time.perf_counter()
            try:
                await self._in_turn(turn.commit, events, changes)
            except Exception as error:
                self._lost += 1
                for line, work in works.items():
                    line.still.clear()
                    for call in work.calls:
                        call.fail(error)
                works.clear()
                return
            try:
                self._on_commit(Committed(events, time.perf_counter() - start))
            except Exception:  # counters must not keep calls from being answered
                traceback.print_exc()
        for line, work in works.items():
            line.experiment.recent.clear()
            line.ahead = False
            line.last = work.events[-1] if work.events else line.last
            self._unstored.discard(line)
            if work.removed:
                self._forget(line.experiment)

    def _find(self, experiment: int, kind: str, id: str) -> Event | None:
        """Return a stored event with an id that a call has named."""
        assert self._work is not None, "events are looked up in a turn only"
        return self._work.known.get((kind, id))

    def _emit(self, event: Event) -> None:
        assert self._work is not None, "events are made in a turn only"
        self._work.events.append(event)

    def submit(self, changes: Sequence[Change]) -> None:
        assert self._work is not None, "changes are made in a turn only"
        self._work.changes += changes
        self._work.removed = self._work.removed or any(isinstance(change, Remove) for change in changes)

    # --- following the log ----------------------------------------------------------------------------------------------

    async def still(self, experiment: LiveExperiment) -> None:
        line = self._lines.get(experiment.number)
        while line is not None and not line.still.is_set():
            async with line.state:  # until the end of the turn
                pass
            try:
                await self._be_on_the_log(experiment, line)
            except _Gone:
                self._forget(experiment)
                return

    async def read(self, name: str, look: Action[T]) -> T:
        return await self._while_there(name, lambda experiment: self._look(experiment, look))

    async def _look(self, experiment: LiveExperiment, look: Action[T]) -> T:
        """Apply the newest events, then return what a function sees."""
        line = self._lines.get(experiment.number)
        if line is None:
            raise _Gone
        while True:
            await self._be_on_the_log(experiment, line)
            after = experiment.seq
            head, tail = await self._in_thread(self.store.tail, experiment.number, _before(experiment))
            async with line.state:
                if head is None:
                    self._forget(experiment)
                    raise _Gone
                if not line.ahead and head < after:
                    line.ahead = True
                elif not line.ahead and experiment.seq >= after:
                    await self._apply(experiment, line, head, tail)
                    if experiment.seq >= head and not line.ahead:
                        return look(experiment)
            await asyncio.sleep(0)

    async def _be_on_the_log(self, experiment: LiveExperiment, line: _Line) -> None:
        """Load the state again if it is ahead of the log."""
        if not line.ahead:
            return
        async with line.state:
            if line.ahead:
                stored = StoredExperiment(
                    experiment.number, experiment.name, 0, 0, msgspec.json.encode(experiment.settings)
                )
                experiment.restore((await self._loaded(stored)).snapshot().content)
                experiment.recent.clear()
                line.ahead, line.last = False, None
                line.still.set()
                self._unstored.discard(line)

    async def _apply(self, experiment: LiveExperiment, line: _Line, head: int, tail: Sequence[Event]) -> None:
        """Apply events that follow. Some may be applied already. Call it with the lock of the state.

        If some are not in the log, they were archived before this server has seen them: the state must be loaded again. The same
        holds if the last event in the state is another one in the log: a backup was restored, or a standby took over, which lacked
        the last events.
        """
        first = tail[0].seq if tail else head + 1
        if first > experiment.seq + 1:
            line.ahead = True
            return
        for event in tail:
            if event.seq == experiment.seq and line.last not in (None, event):
                line.ahead = True
            if line.ahead:
                return
            if event.seq > experiment.seq:
                for _ in experiment.applying((event,)):
                    await asyncio.sleep(0)  # others have a turn
            if event.seq == experiment.seq:
                line.last = event

    async def settled(self) -> None:
        """Raises `StoreUnavailable` if something will not be stored."""
        seen = (line for line in self._unstored if line.still.is_set() or not line.state.locked())
        await asyncio.gather(*map(_stored, seen))

    async def _follow_others(self) -> None:
        """Learn again and again what other servers did, and whether the store can be reached."""
        taken = 0.0
        while True:
            await asyncio.sleep(max(PULSE, taken / PULSE_SHARE))
            began, taken = time.monotonic(), 0.0
            try:
                # Not wait_for: that of Python 3.11 may lose a cancellation, and close() would hang.
                async with asyncio.timeout(PATIENCE):
                    pulse = await self._in_thread(self._pulse)
                taken = time.monotonic() - began
                self._note("")
                for experiment in await self._heed(pulse):
                    line = self._lines[experiment.number]
                    if line.following is None or line.following.done():  # a slow one does not keep pulses waiting
                        line.following = self._start(self._quietly(self._look(experiment, _nothing)))
                self._expire_due()
            except (RobanditError, TimeoutError) as error:
                self._note(str(error) or f"the store did not answer in {PATIENCE:g} seconds")
            except Exception:
                traceback.print_exc()

    def _pulse(self) -> Pulse:
        """Ask for a pulse. Tables that are missing, such as while a backup is restored, may come back like a database."""
        try:
            return self.store.pulse()
        except CorruptFile as error:
            raise StoreUnavailable(str(error)) from error

    async def catch_up(self) -> None:
        self._check_store()
        for experiment in await self._heed(await self._in_thread(self.store.pulse)):
            await self._quietly(self._look(experiment, _nothing))

    async def _heed(self, pulse: Pulse) -> list[LiveExperiment]:
        """Learn which experiments, keys and sessions there are. Return the experiments that lag behind."""
        self._offset = pulse.time - self._wall()
        if pulse.catalogue != self._catalogue:
            stored = await self._in_thread(self.store.read, lambda reader: reader.experiments())
            there = {each.number for each in stored}
            for experiment in list(self._by_number.values()):
                if experiment.number not in there and experiment.number not in pulse.heads:
                    self._forget(experiment)
            if self._on_catalogue is not None:  # first: a revoked key does not wait for logs
                await self._on_catalogue()
            for each in stored:
                await self._load_unknown(each)
            self._catalogue = pulse.catalogue
            self._start(self._tidy())
        return [
            experiment
            for number, experiment in self._by_number.items()
            if pulse.heads.get(number, 0) > experiment.seq or self._lines[number].ahead
        ]

    async def _load_unknown(self, stored: StoredExperiment) -> None:
        """Load an experiment that another server has made. If its log is damaged, the calls for it say so; others go on."""
        async with self._adding:
            if stored.number not in self._by_number:
                try:
                    await self._load_new(stored)
                except CorruptFile:
                    traceback.print_exc()

    def _expire_due(self) -> None:
        """Close decisions whose rewards did not come in time. Each server does it; one of them is the first."""
        for experiment in self._by_number.values():
            broken = experiment.bandit.is_broken
            if not broken and experiment.is_due() and not self._lines[experiment.number].calls:
                self._start(self._quietly(self._expire(experiment.name)))
        self._employ()

    async def _expire(self, name: str) -> None:
        while await self.change(name, LiveExperiment.expire_due) == EXPIRED_AT_ONCE:
            pass

    async def _quietly(self, work: Awaitable[Any]) -> None:
        """Do work that nobody waits for. What fails for one experiment does not concern the others."""
        try:
            await work
        except (_Gone, NotFound, Overloaded, StoreUnavailable):
            pass
        except Exception:
            traceback.print_exc()

    async def _tidy(self) -> None:
        """Remove events of removed experiments, and archived ones."""
        with suppress(StoreError):  # the next server, or the next change, does it
            while await self._in_thread(self.store.tidy):
                await asyncio.sleep(PULSE)

    async def _watch(self) -> None:
        """Let calls fail that wait for the store for too long."""
        while True:
            await asyncio.sleep(1.0)
            self.store.abort_stuck()

    def _note(self, reason: str) -> None:
        """Remember why the store cannot be reached; "" if it can. Print it when this changes."""
        if reason and not self._problem:
            print(f"robandit: {reason}", file=sys.stderr, flush=True)
        elif self._problem and not reason:
            print("robandit: the store can be reached again", file=sys.stderr, flush=True)
        self._problem = "the store cannot be reached" if reason else ""

    # --- experiments ----------------------------------------------------------------------------------------------------

    async def put(self, name: str, by: str, look: Action[T], **settings: Any) -> tuple[T, bool]:
        """If another server makes one at the same moment, look again."""
        self._check_store()
        for _ in range(TRIES):
            try:
                with suppress(NotFound):  # one that another server has removed is no conflict
                    await self._look(await self.present(name), _nothing)
                asked, known = self._asked(name, settings)
                if known is not None:
                    return await self._look(known, look), False
                made = await self._make(name, by, msgspec.json.encode(asked))
                return look(made), True
            except (_Gone, Clash):
                continue
        raise Overloaded("other servers create or remove experiments at the same time: try again in a second")

    async def _make(self, name: str, by: str, settings: bytes) -> LiveExperiment:
        number = await self._in_thread(self.store.next_number)
        stored = StoredExperiment(number, name, 0, 0, settings)
        experiment = self._empty(stored, self._compile)  # raises if it cannot be made
        self._work = work = _Work(self._clock())
        try:
            experiment.create()
            self.audit(by, "create", name, msgspec.to_builtins(experiment.settings))
        finally:
            self._work = None
        await self._in_thread(self.store.commit, work.events, (Create(number, name, settings), *work.changes))
        experiment.recent.clear()
        async with self._adding:
            if number not in self._by_number:
                self._lines[number] = _Line(experiment)
                self._add(experiment)
        return self._by_number[number]

    async def delete(self, name: str, by: str) -> None:
        def remove(experiment: LiveExperiment) -> None:
            self.submit((Remove(experiment.number),))
            self.audit(by, "delete", name, removal_detail(experiment))

        await self.change(name, remove)

    async def commit(self, changes: Sequence[Change]) -> None:
        self._check_store()
        await self._in_thread(self.store.commit, (), changes)

    async def close(self) -> None:
        """Wait for the calls that are under way, and close the store. Other servers go on, so no snapshots are taken."""
        while self._workers:
            await asyncio.wait(list(self._workers))
        rest = list(self._tasks)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        self.store.close()
        self._for_turns.shutdown()
        self._threads.shutdown()


def _before(experiment: LiveExperiment) -> int:
    """Return the number after which to read the log: the last known event is read again, and compared."""
    return max(experiment.seq - 1, 0)


async def _stored(line: _Line) -> None:
    """Wait until the state of an experiment is stored."""
    async with line.state:
        if line.ahead:
            raise StoreUnavailable(NOT_STORED)


def _nothing(experiment: LiveExperiment) -> None:
    """Look at nothing: the experiment has caught up."""
