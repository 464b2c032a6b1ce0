"""What the service needs of an engine: calls take effect on an experiment, and are answered when that is stored.

`Engine` is for a store that one server has for itself, `Replica` for one that several servers share. The service does not know
which one it has.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from robandit.decisions.experiment import Experiment, Recorded
from robandit.decisions.settings import Settings, checked_name, checked_settings
from robandit.errors import Conflict, NotFound, StoreError, formatted
from robandit.storage import Store
from robandit.storage.base import Audit, Change, NewEpoch

SNAPSHOT_EVERY = 50_000
LONG_TAIL = (
    20_000  # events after which loading is worth compiling first: interpreted, each takes tenths of a millisecond
)
MOST_WAITING = 20_000  # events, or calls, that may wait for a commit
MOST_EXPERIMENTS = 10_000
T = TypeVar("T")


class BaseEngine(ABC):
    """The experiments of a store. Make it in a running event loop, then `load` it."""

    clock: Callable[[], float]
    """The time of events, in seconds since 1970."""

    def __init__(self, store: Store) -> None:
        """Start without experiments."""
        self.store = store
        self.experiments: dict[str, Experiment] = {}
        self.loaded = False
        self.progress = "starting"
        """What `load` is doing, in words."""
        self._by_number: dict[int, Experiment] = {}

    @abstractmethod
    async def load(self) -> None:
        """Fold the logs of all experiments. Other tasks have a turn in between."""

    @property
    @abstractmethod
    def failure(self) -> StoreError | None:
        """The error that ended the writing of the log for good, so that the server must end."""

    @property
    @abstractmethod
    def problem(self) -> str:
        """Why calls cannot be stored at the moment; "" if they can."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """How much waits for a commit."""

    @abstractmethod
    async def present(self, name: str) -> Experiment:
        """Return an experiment by name, or raise `NotFound`. It may lag behind; `read` does not."""

    @abstractmethod
    async def change(
        self,
        name: str,
        action: Callable[[Experiment], T],
        *,
        ids: Sequence[str] = (),
        weight: int = 1,
        closes: bool = False,
    ) -> T:
        """Return what an action returns, when the events that it made are stored. Nothing else happens during the action.

        ``ids`` are those of all decisions that it is about, and ``weight`` is their number. With ``closes``, it sends their
        rewards, and needs no stored events of those that are open. Raises what the action raises.
        """

    @abstractmethod
    async def read(self, name: str, look: Callable[[Experiment], T]) -> T:
        """Return what a function sees. It sees at least what was acknowledged before the call, and only what is stored."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Bring all experiments in memory up to date with what was acknowledged before the call, by any server."""

    @abstractmethod
    async def put(self, name: str, by: str, look: Callable[[Experiment], T], **settings: Any) -> tuple[T, bool]:
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
        """Wait until all that the experiments in memory contain is stored."""

    @abstractmethod
    async def close(self) -> None:
        """Store what is waiting, and close the store."""

    @abstractmethod
    def submit(self, changes: Sequence[Change]) -> None:
        """Store changes together with the events of the action that is under way."""

    # --- the same for both ----------------------------------------------------------------------------------------------

    def find(self, name: str) -> Experiment:
        """Return an experiment that is in memory, or raise `NotFound`."""
        experiment = self.experiments.get(name)
        if experiment is None:
            raise NotFound(f"there is no experiment {formatted(name)}: create it with PUT /v1/experiments/NAME")
        return experiment

    def audit_entry(self, key: str, action: str, subject: str, detail: Any = None) -> Audit:
        """Return an entry of the audit log."""
        return Audit(self.clock(), key, action, subject, msgspec.json.encode({} if detail is None else detail))

    def audit(self, key: str, action: str, subject: str, detail: Any = None) -> None:
        """Record an action of an administrator, in the same commit as what was submitted right before it."""
        self.submit((self.audit_entry(key, action, subject, detail),))

    def reset(self, experiment: Experiment) -> Recorded:
        """Forget all that an experiment has learned. Call it in an action."""
        made = experiment.reset(secrets.randbits(63))
        self.submit((NewEpoch(experiment.number, experiment.epoch), experiment.snapshot()))
        return made

    def _add(self, experiment: Experiment) -> None:
        self.experiments[experiment.name] = self._by_number[experiment.number] = experiment

    def _asked(self, name: str, settings: dict[str, Any]) -> tuple[Settings, Experiment | None]:
        """Return checked settings, and the experiment if there is one. Raise `Conflict` if it has others."""
        checked_name(name)
        asked = checked_settings(**settings, drawn=secrets.randbits(63))
        known = self.experiments.get(name)
        difference = None if known is None else known.settings.first_difference(asked)
        if difference is not None:
            raise Conflict(
                f"experiment {name!r} exists with other settings ({difference}): use another name, or delete it first"
            )
        if known is None and len(self.experiments) >= MOST_EXPERIMENTS:
            raise Conflict(f"there are {MOST_EXPERIMENTS:,} experiments, the most that are possible: delete some")
        return asked, known


def removal_detail(experiment: Experiment) -> dict[str, Any]:
    """Return what the audit log says of an experiment that is removed."""
    detail: dict[str, Any] = msgspec.to_builtins(experiment.settings)
    return detail | {"seq": experiment.seq}
