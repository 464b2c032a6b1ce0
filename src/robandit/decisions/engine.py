"""All experiments of a store that one server has for itself: new events are committed in groups.

The engine runs in one event loop. A call applies its event at once, and may be answered when `settled` is done: what was
acknowledged is stored. A reader that must not see what a crash could take back waits for it, too.

If the store fails, the state in memory is ahead of the log. Then nothing more is answered, and the process must end and start
again.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from robandit.decisions import events
from robandit.decisions.base import Action, BaseEngine, T, outcome, removal_detail
from robandit.decisions.clock import SteadyClock
from robandit.decisions.experiment import LiveExperiment, MadeEvent
from robandit.decisions.restoring import empty, fold, restored
from robandit.errors import Overloaded, StoreError
from robandit.live.engine import Compile
from robandit.storage import Event, Reader, Store, StoredExperiment
from robandit.storage.base import Change, Create, Remove
from robandit.storage.group_commit import Committed, GroupCommit

MOST_WAITING_BYTES = 64 << 20  # of the payloads of events that wait for a commit
SWEEP_EVERY = 0.5  # seconds between two searches for expired decisions


class _Batch:
    """What a batch has made so far. It is stored in one commit."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changes: list[Change] = []
        self.ended = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None


class SingleServerEngine(BaseEngine):
    """The experiments of a store, and the only process that writes to it."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        on_failure: Callable[[StoreError], object] = lambda error: None,
        **options: Any,
    ) -> None:
        """Open the log for writing. ``options`` are those of `BaseEngine`."""
        super().__init__(store, **options)
        self.clock: SteadyClock = SteadyClock(clock)
        self.reader: Reader = store.reader()
        self._snapshots: dict[int, int] = {}
        """The number of the last event in the newest snapshot of each experiment."""
        self._next_number = store.next_number()
        self._commit = GroupCommit(store, on_commit=self._committed, on_failure=on_failure)
        self._batches: dict[int, _Batch] = {}
        """The batches that take effect, by the numbers of their experiments. Other calls for these wait for the end."""
        self._sweeper: asyncio.Task[None] | None = None

    # --- loading --------------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        stored = self.reader.experiments()
        for place, each in enumerate(stored, start=1):
            self.progress = f"loading experiment {place} of {len(stored)}"
            experiment = await self._loaded(each)
            self._add(experiment)
            self.clock.catch_up(experiment.time)
            experiment.upgrade()
            await asyncio.sleep(0)
        self.progress = "ready"
        self.loaded = True
        self._sweeper = asyncio.create_task(self._sweep())

    async def _loaded(self, stored: StoredExperiment) -> LiveExperiment:
        snapshots = self.reader.snapshots(stored.number)
        compile = self._compile_for(snapshots, stored.head)
        experiment = restored(snapshots, stored.head, lambda: self._empty(stored, compile))
        self._snapshots[stored.number] = experiment.seq
        experiment.has_archive = self.reader.archived(stored.number) > 0  # nobody else writes: it stays so
        for _ in fold(self.reader, experiment, stored.head):
            await asyncio.sleep(0)
        return experiment

    def _empty(self, stored: StoredExperiment, compile: Compile) -> LiveExperiment:
        return empty(stored, clock=self.clock, find=self.reader.find, emit=self._emit, compile=compile)

    # --- commits --------------------------------------------------------------------------------------------------------

    @property
    def failure(self) -> StoreError | None:
        return self._commit.failure

    @property
    def problem(self) -> str:
        return "" if self.failure is None else "the store has failed"

    @property
    def waiting(self) -> int:
        """The number of events that wait for a commit."""
        return self._commit.waiting

    def check_room(self) -> None:
        """Raise `Overloaded` if too many events wait for the disk, and `StoreError` if the store has failed."""
        if self._commit.failure is not None:
            raise self._commit.failure
        if self._commit.waiting_bytes > MOST_WAITING_BYTES:
            size = f"{self._commit.waiting_bytes >> 20} MiB"
            raise Overloaded(f"{size} of events wait for the disk: send less, or try again in a second")
        if self._commit.waiting > self._most_waiting:
            raise Overloaded(f"{self._commit.waiting:,} events wait for the disk: send less, or try again in a second")

    def _emit(self, event: Event) -> None:
        """Store a new event, with a snapshot if one is due."""
        number = event.experiment
        changes: Sequence[Change] = ()
        experiment = self._by_number[number]
        due = event.seq - self._snapshots.get(number, 0) + experiment.extra >= self._snapshot_every
        if due and not experiment.bandit.is_broken:
            self._snapshots[number], experiment.extra = event.seq, 0
            changes = (experiment.snapshot(),)
        batch = self._batches.get(number)
        if batch is None:
            self._commit.submit((event,), changes)
        else:
            batch.events.append(event)
            batch.changes.extend(changes)

    def _committed(self, committed: Committed) -> None:
        for event in committed.events:
            experiment = self._by_number.get(event[0])
            if experiment is not None:
                experiment.forget_recent(event[2], event[3])
        self._on_commit(committed)

    async def settled(self) -> None:
        waiter = self._commit.stored()
        if waiter is not None:
            await waiter

    def submit(self, changes: Sequence[Change]) -> None:
        self._commit.submit((), changes)

    # --- calls ------------------------------------------------------------------------------------------------------------

    async def present(self, name: str) -> LiveExperiment:
        return self.find(name)

    async def change(self, name: str, action: Action[T], *, ids: Sequence[str] = (), closes: bool = False) -> T:
        if self._batches:
            await self._unoccupied(name)
        experiment = self.find(name)
        self.check_room()
        result = action(experiment)
        await self.settled()
        return result

    async def _unoccupied(self, name: str) -> None:
        """Wait until no batch takes effect on the experiment with this name, if there is one."""
        while (experiment := self.experiments.get(name)) is not None and experiment.number in self._batches:
            await self.still(experiment)

    async def still(self, experiment: LiveExperiment) -> None:
        while (batch := self._batches.get(experiment.number)) is not None:
            await batch.ended.wait()

    async def change_all(
        self, name: str, actions: Sequence[Action[T] | Exception], *, ids: Sequence[str], closes: bool = False
    ) -> list[T | Exception]:
        """If the call is cancelled, the batch goes on: it is stored as a whole."""
        await self._unoccupied(name)
        experiment = self.find(name)
        self.check_room()
        batch = self._batches[experiment.number] = _Batch()
        batch.task = task = asyncio.create_task(self._take_effect(batch, experiment, actions))
        made, waiter = await asyncio.shield(task)
        if waiter is not None:
            await waiter
        return made

    async def _take_effect(
        self, batch: _Batch, experiment: LiveExperiment, actions: Sequence[Action[T] | Exception]
    ) -> tuple[list[T | Exception], asyncio.Future[None] | None]:
        """Return what each action returns or raises, and what to wait for. Nobody sees a batch that `close` has cancelled."""
        made = [outcome(action, experiment) async for action in self.slices.paced(actions)]
        del self._batches[experiment.number]
        batch.ended.set()
        if batch.events:
            self._commit.submit(batch.events, batch.changes)
        return made, self._commit.stored()

    async def read(self, name: str, look: Action[T]) -> T:
        await self._unoccupied(name)
        seen = look(self.find(name))
        await self.settled()
        return seen

    async def catch_up(self) -> None:
        """There is no other server."""

    async def put(self, name: str, by: str, look: Action[T], **settings: Any) -> tuple[T, bool]:
        await self._unoccupied(name)
        self.check_room()
        experiment, new = self.create(name, **settings)
        if new:
            self.audit(by, "create", name, msgspec.to_builtins(experiment.settings))
        seen = look(experiment)
        await self.settled()
        return seen, new

    async def delete(self, name: str, by: str) -> None:
        await self._unoccupied(name)
        self.check_room()
        self.audit(by, "delete", name, removal_detail(self.remove(name)))
        await self.settled()

    async def commit(self, changes: Sequence[Change]) -> None:
        self.check_room()
        self.submit(changes)
        await self.settled()

    # --- experiments ------------------------------------------------------------------------------------------------------

    def create(self, name: str, **settings: Any) -> tuple[LiveExperiment, bool]:
        """Return the experiment with this name and these settings, and whether it was created now."""
        asked, known = self._asked(name, settings)
        if known is not None:
            return known, False
        encoded = msgspec.json.encode(asked)
        stored = StoredExperiment(self._next_number, name, 0, 0, encoded)
        experiment = self._empty(stored, self._compile)  # raises if the policy cannot be made
        experiment.has_archive = False
        self._next_number += 1
        self._add(experiment)
        self._commit.submit((), (Create(stored.number, name, encoded),))
        experiment.create()
        return experiment, True

    def reset(self, experiment: LiveExperiment) -> MadeEvent:
        made = super().reset(experiment)
        self._snapshots[experiment.number] = experiment.seq
        return made

    def remove(self, name: str) -> LiveExperiment:
        """Remove an experiment with its log, and return it."""
        experiment = self.find(name)
        del self.experiments[name], self._by_number[experiment.number]
        self._snapshots.pop(experiment.number, None)
        self._commit.submit((), (Remove(experiment.number),))
        return experiment

    # --- time ---------------------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        while self._commit.failure is None:
            await asyncio.sleep(SWEEP_EVERY)
            for experiment in list(self.experiments.values()):
                await self._expire_due(experiment)

    async def _expire_due(self, experiment: LiveExperiment) -> None:
        while self._commit.failure is None and self.waiting <= self._most_waiting:
            if self._by_number.get(experiment.number) is not experiment or experiment.number in self._batches:
                return  # removed meanwhile, or in a batch, after which there is another search
            if experiment.bandit.is_broken:
                return
            try:
                if not experiment.expire_due():
                    return
            except Exception:  # such as a hook that fails; other experiments go on
                print(f"robandit: decisions of experiment {experiment.name!r} cannot expire", file=sys.stderr)
                traceback.print_exc()
                return
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Take snapshots, store what is waiting, and close the store. Batches that have half taken effect are given up."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for batch in self._batches.values():
            if batch.task is not None:
                batch.task.cancel()
        try:
            if self.loaded and self.failure is None:
                whole = (each for each in self.experiments.values() if each.number not in self._batches)
                sound = (each for each in whole if not each.bandit.is_broken)
                changed = (each for each in sound if each.seq > self._snapshots.get(each.number, 0))
                self._commit.submit((), [experiment.snapshot() for experiment in changed])
            await self._commit.close()
        finally:
            self.reader.close()
            self.store.close()


def outcome_of(made: MadeEvent) -> str:
    """Return how a call counts: applied, late or replayed."""
    if made.replayed:
        return "replayed"
    late = isinstance(made.payload, events.Late) and made.payload.reason != "assignment"  # which is no trouble
    return "late" if late else "applied"
