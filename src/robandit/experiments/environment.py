"""The versions and the machine that results may depend on."""

from __future__ import annotations

import platform
from importlib import import_module
from importlib.metadata import version
from typing import Any

from robandit.kernel.cores import cores

__all__ = ["machine", "versions"]


def versions() -> dict[str, str]:
    """Return the versions of everything that results may depend on."""
    own: str = import_module("robandit").__version__  # an import would go up the layers
    others = {name: version(name) for name in ("numpy", "numba", "polars")}
    return {"robandit": own, "python": platform.python_version()} | others


def machine() -> dict[str, Any]:
    """Return the platform, the processor and the number of cores."""
    return {"platform": platform.platform(), "processor": platform.machine(), "cores": cores()}
