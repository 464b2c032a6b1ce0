"""What runs on a worker: it plays a unit, if its versions are the client's, and sends back the bytes of the unit's part."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

from robandit.errors import VersionSkew
from robandit.experiments.environment import versions
from robandit.experiments.plan import Plan, Unit

__all__ = ["Answer", "Lapsed", "Sent", "installed_version", "play", "play_unit", "version_skew", "versions_here"]


@dataclass(frozen=True)
class Sent:
    """The answer of a worker that played its unit."""

    content: bytes
    """The unit's part."""
    seconds: float


@dataclass(frozen=True)
class Lapsed:
    """The answer if the unit failed."""

    traceback: str


Answer: TypeAlias = Sent | Lapsed


def play(plan: Plan, number: int, required: dict[str, str]) -> Answer:
    """Play the unit with this number in the plan; `VersionSkew` if the versions here are not the required ones."""
    return play_unit(plan.units[number], required)


def play_unit(unit: Unit, required: dict[str, str]) -> Answer:
    """Play a unit; `VersionSkew` if the versions here are not the required ones."""
    skew = version_skew(required, {_worker_name(): versions_here()})
    if skew is not None:
        raise skew
    try:
        result = unit.run()
    except Exception:
        return Lapsed(traceback.format_exc())
    return Sent(result.to_bytes(whole=False), float(result.seconds[0]))


@cache
def versions_here() -> dict[str, str]:
    """Return the versions in this process."""
    return versions()


@cache
def installed_version() -> str:
    """Return Robandit's version from the package metadata, which is what Dask reports of its workers."""
    try:
        return version("robandit")
    except PackageNotFoundError:  # Robandit is a folder on the path, not an installed package
        return versions_here()["robandit"]


def version_skew(required: Mapping[str, str], installed: Mapping[str, Mapping[str, str | None]]) -> VersionSkew | None:
    """Return the error that names all differences of versions, worker by worker; None if there are none."""
    differences = []
    for name, mine in required.items():
        others: dict[str | None, list[str]] = {}
        for worker, packages in installed.items():
            theirs = packages.get(name)
            if _compared(name, theirs) != _compared(name, mine):
                others.setdefault(theirs, []).append(worker)
        differences += [
            f"{name} is {mine} here and {theirs or 'missing'} on {', '.join(sorted(workers)[:5])}"
            f"{f' and {len(workers) - 5} more' if len(workers) > 5 else ''}"
            for theirs, workers in others.items()
        ]
    if not differences:
        return None
    return VersionSkew(f"{'; '.join(differences)}: install the same versions on the client and on all workers")


def _compared(name: str, number: str | None) -> str | None:
    """Return the part of a version that matters: results do not depend on Python's third number."""
    return ".".join(number.split(".")[:2]) if name == "python" and number is not None else number


def _worker_name() -> str:
    """Return the address of a Dask worker, or the process and its machine."""
    if "distributed.worker" in sys.modules:
        with suppress(ValueError):
            return str(sys.modules["distributed.worker"].get_worker().address)
    return f"process {os.getpid()} on {platform.node()}"
