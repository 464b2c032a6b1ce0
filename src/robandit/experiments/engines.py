"""Engines play units outside this process: the contract, what runs on a worker, the engine for any executor, and versions.

A worker needs no disk in common with the client. It plays a unit and sends back the bytes of its part; the client holds the unit's
lock meanwhile, and writes the part. The engine for Dask is in `robandit.experiments.dask_cluster`.
"""

from __future__ import annotations

import os
import platform
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

from robandit.errors import EngineLost, VersionSkew
from robandit.experiments.plan import Plan, Unit
from robandit.kernel.cores import cores
from robandit.wording import listed

AHEAD = 16  # units that wait in an executor of unknown size


@dataclass(frozen=True)
class Sent:
    """The answer of a worker that played its unit."""

    content: bytes  # the unit's part
    seconds: float


@dataclass(frozen=True)
class Lapsed:
    """The answer if the unit failed."""

    traceback: str


Answer: TypeAlias = Sent | Lapsed


def play(plan: Plan, number: int, required: Mapping[str, str]) -> Answer:
    """Play the unit with this number in the plan; `VersionSkew` if the versions here are not the required ones."""
    return play_unit(plan.units[number], required)


def play_unit(unit: Unit, required: Mapping[str, str]) -> Answer:
    """Play a unit; `VersionSkew` if the versions here are not the required ones."""
    skew = version_skew(required, {_worker_name(): versions()})
    if skew is not None:
        raise skew
    try:
        result = unit.run()
    except Exception:
        return Lapsed(traceback.format_exc())
    return Sent(result.to_bytes(whole=False), float(result.seconds[0]))


def _worker_name() -> str:
    if "distributed.worker" in sys.modules:
        with suppress(ValueError):
            return str(sys.modules["distributed.worker"].get_worker().address)
    return f"process {os.getpid()} on {platform.node()}"


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
        self._units: Sequence[Unit] = ()

    def begin(self, plan: Plan) -> None:
        """Remember the units."""
        self._units = plan.units

    def submit(self, number: int) -> Future[Answer]:
        """Submit the unit to the executor."""
        try:
            return self._executor.submit(play_unit, self._units[number], versions())
        except RuntimeError as error:  # broken, or shut down
            raise EngineLost(f"the executor takes no more work: {error}") from error

    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        """Return how many units may be added to the waiting ones."""
        return AHEAD - sum(not future.running() for future in under_way)

    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        """Cancel what has not started."""
        for future in under_way:
            future.cancel()
        self._units = ()


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of everything that results may depend on."""
    own: str = import_module("robandit").__version__  # an import would go up the layers
    return {"robandit": own, "python": platform.python_version()} | {
        n: version(n) for n in ("numpy", "numba", "polars")
    }


@cache
def installed_version() -> str:
    """Return Robandit's version from the package metadata, which is what Dask reports of its workers."""
    try:
        return version("robandit")
    except PackageNotFoundError:  # Robandit is a folder on the path, not an installed package
        return versions()["robandit"]


def machine() -> dict[str, Any]:
    """Return the platform, the processor and the number of cores."""
    return {"platform": platform.platform(), "processor": platform.machine(), "cores": cores()}


def version_skew(required: Mapping[str, str], installed: Mapping[str, Mapping[str, str | None]]) -> VersionSkew | None:
    """Return the error that names all differences of versions, worker by worker; None if there are none."""
    differences = []
    for name, mine in required.items():
        others: dict[str | None, list[str]] = {}
        for worker, packages in installed.items():
            theirs = packages.get(name)
            if _compared(name, theirs) != _compared(name, mine):
                others.setdefault(theirs, []).append(worker)
        for theirs, workers in others.items():
            differences.append(f"{name} is {mine} here and {theirs or 'missing'} on {listed(sorted(workers), 5)}")
    if not differences:
        return None
    return VersionSkew(f"{'; '.join(differences)}: install the same versions on the client and on all workers")


def _compared(name: str, number: str | None) -> str | None:
    """Return the part of a version that matters: results do not depend on Python's third number."""
    return ".".join(number.split(".")[:2]) if name == "python" and number is not None else number
