"""Engines play units outside this process: the contract, and the engine for any executor. `dask_cluster` has the one for Dask.

A worker needs no disk in common with the client. It plays a unit and sends back the bytes of its part; the client holds the unit's
lock meanwhile, and writes the part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future

from robandit.errors import EngineLost, VersionSkew
from robandit.experiments.plan import Plan
from robandit.experiments.worker import Answer, play_unit, versions_here

__all__ = ["Engine", "ExecutorEngine", "WorkersDied"]

AHEAD = 16  # units that wait in an executor of unknown size


class WorkersDied(Exception):
    """Every worker that had a unit died. Units that only waited on these workers are blamed, too."""


class Engine(ABC):
    """Plays units of one plan at a time. Its owner opens and closes it."""

    shares_cache: bool = True
    """Whether workers find what this process compiled: then it compiles first, once for all."""
    dashboard: str | None = None
    """Address of a page that shows its work."""

    @abstractmethod
    def begin(self, plan: Plan) -> None:
        """Prepare for the units of a plan."""

    @abstractmethod
    def submit(self, number: int) -> Future[Answer]:
        """Start the unit with this number in the plan."""

    @abstractmethod
    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        """Return how many more units to submit now: enough to keep workers busy, but no more, since the client locks each."""

    def workers(self) -> int | None:
        """Return the number of workers; None if unknown. Raises if they cannot be reached or used."""
        return None

    def explain(self, error: BaseException) -> Exception | None:
        """Return what a future's error means: `EngineLost`, `VersionSkew` or `WorkersDied`; None if the unit itself failed."""
        if isinstance(error, (EngineLost, VersionSkew)):
            return error
        if isinstance(error, BrokenExecutor):
            return EngineLost(f"the executor is broken, perhaps because one of its processes was killed: {error}")
        if isinstance(error, CancelledError):
            return EngineLost("the executor has cancelled its work")
        return None

    @abstractmethod
    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        """Cancel what is not done. Does not wait for workers, and does not fail."""


class ExecutorEngine(Engine):
    """Any executor; each unit is sent with its problem."""

    def __init__(self, executor: Executor) -> None:
        """Use the executor, which stays its owner's."""
        self._executor = executor
        self._plan: Plan | None = None

    def begin(self, plan: Plan) -> None:
        """Remember the plan."""
        self._plan = plan

    def submit(self, number: int) -> Future[Answer]:
        """Submit the unit to the executor."""
        assert self._plan is not None
        try:
            return self._executor.submit(play_unit, self._plan.units[number], versions_here())
        except RuntimeError as error:  # broken, or shut down
            raise EngineLost(f"the executor takes no more work: {error}") from error

    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        """Return how many units may be added to the waiting ones."""
        return AHEAD - sum(not future.running() for future in under_way)

    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        """Cancel what has not started."""
        for future in under_way:
            future.cancel()
        self._plan = None
