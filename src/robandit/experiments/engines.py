"""What a worker of a cluster runs to play a unit, and the check that it has the client's versions.

A worker and the client need no shared disk. The worker plays a unit and sends back the bytes of its part. The client holds the
unit's lock meanwhile and writes the part. The engine is `robandit.experiments.dask_cluster.DaskEngine`.
"""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

from robandit.errors import VersionSkew
from robandit.experiments.own_code import Packed
from robandit.experiments.plan import Plan
from robandit.kernel.cores import cores
from robandit.wording import listed


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
    skew = version_skew(required, {_worker_name(): versions()})
    if skew is not None:
        raise skew
    whole: Plan = plan.opened() if isinstance(plan, Packed) else plan
    try:
        result = whole.units[number].run()
    except Exception:
        return Lapsed(traceback.format_exc())
    return Sent(result.to_bytes(whole=False), float(result.seconds[0]))


def _worker_name() -> str:
    if "distributed.worker" in sys.modules:
        with suppress(ValueError):
            return str(sys.modules["distributed.worker"].get_worker().address)
    return f"process {os.getpid()} on {platform.node()}"


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
