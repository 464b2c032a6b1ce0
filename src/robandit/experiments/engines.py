"""Engines, which play units outside this process: the base class, the functions that workers run, and the check of versions.

A worker and the client need no shared disk. The worker plays a unit and sends back the bytes of its part. The client holds the
unit's lock meanwhile and writes the part. The engine for Dask is in `robandit.experiments.dask_cluster`.
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
from robandit.experiments.own_code import OwnModule, Packed, own_modules
from robandit.experiments.plan import Plan, Unit
from robandit.kernel.cores import cores
from robandit.wording import listed

AHEAD = 16  # waiting units in an executor, whose number of workers is unknown


@dataclass(frozen=True)
class Sent:
    """The answer of a worker that has played its unit."""

    content: bytes  # the unit's part
    seconds: float


@dataclass(frozen=True)
class Lapsed:
    """The answer of a worker whose unit failed."""

    traceback: str


Answer: TypeAlias = Sent | Lapsed


def play(plan: Plan | Packed, number: int, required: Mapping[str, str]) -> Answer:
    """Play the unit with this number in the plan. Raise `VersionSkew` if other versions are installed than required."""
    _check_versions(required)
    whole: Plan = plan.opened() if isinstance(plan, Packed) else plan
    return _played(whole.units[number])


def play_unit(unit: Unit | Packed, required: Mapping[str, str]) -> Answer:
    """Play a unit. Raise `VersionSkew` if other versions are installed than required."""
    _check_versions(required)
    if isinstance(unit, Packed):
        unit = unit.opened()
    assert isinstance(unit, Unit)
    return _played(unit)


def _played(unit: Unit) -> Answer:
    try:
        result = unit.run()
    except Exception:
        return Lapsed(traceback.format_exc())
    return Sent(result.to_bytes(whole=False), float(result.seconds[0]))


def _check_versions(required: Mapping[str, str]) -> None:
    skew = version_skew(required, {_worker_name(): versions()})
    if skew is not None:
        raise skew


def _worker_name() -> str:
    if "distributed.worker" in sys.modules:
        with suppress(ValueError):
            return str(sys.modules["distributed.worker"].get_worker().address)
    return f"process {os.getpid()} on {platform.node()}"


class WorkersDied(Exception):
    """All workers that had a unit died. This may also happen to a unit that only waited on these workers."""


class Engine(ABC):
    """Base class of engines, which play units of one plan at a time. The caller opens and closes the engine."""

    shares_cache: bool = True
    """Whether workers share this process's cache. If so, this process compiles every policy before they start."""
    dashboard: str | None = None
    """Address of the engine's dashboard, if it has one."""

    @abstractmethod
    def begin(self, plan: Plan) -> None:
        """Prepare for the units of a plan."""

    @abstractmethod
    def submit(self, number: int) -> Future[Answer]:
        """Start the unit with this number in the plan."""

    @abstractmethod
    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        """Return the number of units to submit now: just enough to keep workers busy, since the client locks each unit."""

    def workers(self) -> int | None:
        """Return the number of workers, or None if it is unknown. Raise if they cannot be reached or used."""
        return None

    def explain(self, error: BaseException) -> Exception | None:
        """Translate a future's error to `EngineLost`, `VersionSkew` or `WorkersDied`. Return None if the unit itself failed."""
        if isinstance(error, (EngineLost, VersionSkew)):
            return error
        if isinstance(error, BrokenExecutor):
            return EngineLost(f"the executor is broken, perhaps because one of its processes was killed: {error}")
        if isinstance(error, CancelledError):
            return EngineLost("the executor has cancelled its work")
        return None

    @abstractmethod
    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        """Cancel the units that are not done. Do not wait for workers, and do not raise."""


class ExecutorEngine(Engine):
    """An engine that plays units on any executor. Each unit is sent together with its problem."""

    def __init__(self, executor: Executor) -> None:
        """Use the executor without closing it."""
        self._executor = executor
        self._units: Sequence[Unit] = ()
        self._modules: tuple[OwnModule, ...] = ()

    def begin(self, plan: Plan) -> None:
        """Remember the units."""
        self._units = plan.units
        self._modules = own_modules(cell.policy for cell in plan.cells)

    def submit(self, number: int) -> Future[Answer]:
        """Submit the unit to the executor."""
        unit: Unit | Packed = self._units[number]
        if self._modules:  # another process may not find them
            unit = Packed.of(unit, self._modules)
        try:
            return self._executor.submit(play_unit, unit, versions())
        except RuntimeError as error:  # broken, or shut down
            raise EngineLost(f"the executor takes no more work: {error}") from error

    def room(self, under_way: Mapping[Future[Answer], object]) -> int:
        """Return the number of units that can be added to those that wait."""
        return AHEAD - sum(not future.running() for future in under_way)

    def end(self, under_way: Iterable[Future[Answer]]) -> None:
        """Cancel the units that have not started."""
        for future in under_way:
            future.cancel()
        self._units = ()


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of all packages that results may depend on."""
    own: str = import_module("robandit").__version__  # an import statement would break the order of layers
    return {"robandit": own, "python": platform.python_version()} | {
        n: version(n) for n in ("numpy", "numba", "polars")
    }


@cache
def installed_version() -> str:
    """Return Robandit's version from the package metadata, which Dask also reports for its workers."""
    try:
        return version("robandit")
    except PackageNotFoundError:  # Robandit is a folder on the path, not an installed package
        return versions()["robandit"]


def machine() -> dict[str, Any]:
    """Return the platform, the processor and the number of cores."""
    return {"platform": platform.platform(), "processor": platform.machine(), "cores": cores()}


def version_skew(required: Mapping[str, str], installed: Mapping[str, Mapping[str, str | None]]) -> VersionSkew | None:
    """Return an error that lists all differences of versions by worker, or None if all versions agree."""
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
    """Return the part of a version that results depend on. For Python these are the first two numbers."""
    return ".".join(number.split(".")[:2]) if name == "python" and number is not None else number
