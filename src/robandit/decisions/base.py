"""What the service needs of an engine: calls take effect on an experiment, and are answered when that is stored.

`SingleServerEngine` is for a store that one server has for itself, `Replica` for one that several servers share. The service does
not know which one it has.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from robandit.decisions.experiment import LiveExperiment, MadeEvent
from robandit.decisions.pace import Slices
from robandit.decisions.settings import Settings, checked_name, checked_settings
from robandit.errors import Conflict, NotFound, StoreError, StoreUnavailable, formatted
from robandit.live.engine import Compile
from robandit.storage import Store
from robandit.storage.base import Audit, Change, NewEpoch
from robandit.storage.group_commit import Committed

SNAPSHOT_EVERY = 50_000
LONG_TAIL = 20_000  # events after which loading is worth compiling first: interpreted, each takes tenths of a ms
MOST_WAITING = 20_000  # events, or calls, that may wait for a commit
MOST_EXPERIMENTS = 10_000
NOT_STORED = "the last calls could not be stored: try again in a moment"
T = TypeVar("T")
Action: TypeAlias = Callable[[LiveExperiment], T]


class BaseEngine(ABC):
    """The experiments of a store. Make it in a running event loop, then `load` it."""

    clock: Callable[[], float]
    """The time of events, in seconds since 1970."""

    def __init__(
        self,
        store: Store,
        *,
        on_commit: Callable[[Committed], object] = lambda committed: None,
        compile: Compile = "background",
        most_waiting: int = MOST_WAITING,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self.store = store
        self._on_commit = on_commit
        self._compile: Compile = compile
        self._most_waiting = most_waiting
        self._snapshot_every = snapshot_every
        self.experiments: dict[str, LiveExperiment] = {}
        self.loaded = False
        self.progress = "starting"
        """What `load` is doing, in words."""
        self.slices = Slices()
        """The work of all calls that have much to do."""
        self._by_number: dict[int, LiveExperiment] = {}
        self._lost = 0
        """The number of commits that failed, although their events could be seen."""

    @abstractmethod
    async def load(self) -> None:
        """Fold the logs of all experiments. Other tasks have a turn in between."""

    @property
    def failure(self) -> StoreError | None:
        """The error that ended the writing of the log for good, so that the server must end."""
        return None

    @property
    @abstractmethod
    def problem(self) -> str:
        """Why calls cannot be stored at the moment; "" if they can."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """How much waits for a commit."""

    @abstractmethod
    async def present(self, name: str) -> LiveExperiment:
        """Return an experiment by name, or raise `NotFound`. It may lag behind; `read` does not."""

    @abstractmethod
    async def change(self, name: str, action: Action[T], *, ids: Sequence[str] = (), closes: bool = False) -> T:
        """Return what an action returns, when the events that it made are stored. Nothing else happens during the action.

        ``ids`` are those of all decisions that it is about. With ``closes``, it sends their rewards, and needs no stored events
        of those that are open. Raises what the action raises.
        """

    @abstractmethod
    async def change_all(
        self, name: str, actions: Sequence[Action[T] | Exception], *, ids: Sequence[str], closes: bool = False
    ) -> list[T | Exception]:
        """Return what each of several actions returns or raises, when the events that they made are stored, in one commit.

        Nothing else happens to this experiment between the actions. Calls for others have a turn now and then. An exception in
        place of an action stays as it is.
        """

    @abstractmethod
    async def still(self, experiment: LiveExperiment) -> None:
        """Wait while the actions of `change_all` take effect on an experiment. Look at it before the next ``await``."""

    @abstractmethod
    async def read(self, name: str, look: Action[T]) -> T:
        """Return what a function sees. It sees at least what was acknowledged before the call, and only what is stored."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Bring all experiments in memory up to date with what was acknowledged before the call, by any server."""

    @abstractmethod
    async def put(self, name: str, by: str, look: Action[T], **settings: Any) -> tuple[T, bool]:
        """Make an experiment, unless it exists with these settings. Return what a function sees of it, and whether it is new.

        ``by`` is the id of the key, for the audit log.
        """

    @abstractmethod
    async def delete(self, name: str, by: str) -> None:
        """Remove an experiment with its log."""

    @abstractmethod
    async def commit(self, changes: Sequence[Change]) -> None:
        """Store changes that belong to no experiment, such as keys."""

    @abstractmethod
    async def settled(self) -> None:
        """Wait until all is stored that could be seen of experiments that are `still`."""

    @abstractmethod
    async def close(self) -> None:
        """Store what is waiting, and close the store."""

    @abstractmethod
    def submit(self, changes: Sequence[Change]) -> None:
        """Store changes together with the events of the action that is under way."""

    # --- the same for both ----------------------------------------------------------------------------------------------

    def find(self, name: str) -> LiveExperiment:
        """Return an experiment that is in memory, or raise `NotFound`."""
        experiment = self.experiments.get(name)
        if experiment is None:
            absent = f"there is no experiment {formatted(name)}: create it with PUT /v1/experiments/NAME"
            raise NotFound(absent, code="unknown-experiment")
        return experiment

    async def seen(self, experiments: Iterable[LiveExperiment], look: Action[T]) -> list[T]:
        """Return what a function sees of each experiment. All of it is stored. Other calls have a turn now and then."""
        lost, found = self._lost, []
        async for experiment in self.slices.paced(experiments):
            await self.still(experiment)
            found.append(look(experiment))
        await self.settled()
        if self._lost != lost:
            raise StoreUnavailable(NOT_STORED)
        return found

    def audit_entry(self, key: str, action: str, subject: str, detail: Any = None) -> Audit:
        """Return an entry of the audit log."""
        return Audit(self.clock(), key, action, subject, msgspec.json.encode({} if detail is None else detail))

    def audit(self, key: str, action: str, subject: str, detail: Any = None) -> None:
        """Record an action of an administrator, in the same commit as what was submitted right before it."""
        self.submit((self.audit_entry(key, action, subject, detail),))

    def reset(self, experiment: LiveExperiment) -> MadeEvent:
        """Forget all that an experiment has learned. Call it in an action."""
        made = experiment.reset(secrets.randbits(63))
        self.submit((NewEpoch(experiment.number, experiment.epoch), experiment.snapshot()))
        return made

    def _compile_for(self, snapshots: Sequence[tuple[int, bytes]], head: int) -> Compile:
        """Return when to compile the policy of an experiment that is loaded from its newest snapshot."""
        is_long = head - next((seq for seq, _ in snapshots), 0) > LONG_TAIL
        return "now" if is_long and self._compile == "background" else self._compile

    def _add(self, experiment: LiveExperiment) -> None:
        self.experiments[experiment.name] = self._by_number[experiment.number] = experiment

    def _asked(self, name: str, settings: dict[str, Any]) -> tuple[Settings, LiveExperiment | None]:
        """Return checked settings, and the experiment if there is one. Raise `Conflict` if it has others."""
        checked_name(name)
        asked = checked_settings(**settings, drawn=secrets.randbits(63))
        known = self.experiments.get(name)
        difference = None if known is None else known.settings.first_difference(asked)
        if difference is not None:
            raise Conflict(
                f"experiment {name!r} exists with other settings ({difference}): use another name, or delete it first",
                parameter="name",
            )
        if known is None and len(self.experiments) >= MOST_EXPERIMENTS:
            raise Conflict(f"there are {MOST_EXPERIMENTS:,} experiments, the most that are possible: delete some")
        return asked, known


def outcome(action: Action[T] | Exception, experiment: LiveExperiment) -> T | Exception:
    """Return what an action returns or raises."""
    try:
        return action if isinstance(action, Exception) else action(experiment)
    except Exception as error:
        return without_frames(error)


def without_frames(error: Exception) -> Exception:
    """Remove the frames of an error in an item of a batch: they would keep all that the batch contains.

    Errors of Python itself are unexpected, so the log of the server needs their frames.
    """
    if type(error).__module__ == "builtins":
        return error
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def removal_detail(experiment: LiveExperiment) -> dict[str, Any]:
    """Return what the audit log says of an experiment that is removed."""
    detail: dict[str, Any] = msgspec.to_builtins(experiment.settings)
    return detail | {"seq": experiment.seq}
