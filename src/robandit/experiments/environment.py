"""The versions and the machine that results may depend on, and how those of workers differ."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from robandit.errors import VersionSkew
from robandit.kernel.cores import cores
from robandit.wording import listed


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
