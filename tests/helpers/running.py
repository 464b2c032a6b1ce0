"""Runs code for the kernel tests: in another process, from a file of its own, or as written but not compiled."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import robandit
from robandit.kernel.generate import Writer

SOURCE = Path(robandit.__file__).parent.parent
_number = itertools.count()


def start(*command: str | Path, cache: Path | str, folder: Path | None = None) -> subprocess.Popen[str]:
    """Start a Python process. It stores no byte code, since Python takes two edits within a second for one."""
    paths = [str(SOURCE), *([str(folder)] if folder else [])]
    environment = os.environ | {
        "ROBANDIT_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.Popen(
        [sys.executable, "-W", "error", *map(str, command)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip(), err.strip()


def run(*command: str | Path, cache: Path | str, folder: Path | None = None) -> tuple[str, str]:
    """Return standard output and standard error of a new Python process, which must succeed."""
    return finish(start(*command, cache=cache, folder=folder))


def imported(folder: Path, text: str, name: str = "") -> ModuleType:
    """Return a module with this text, from a file of its own."""
    name = name or f"kernel_test_{next(_number)}"
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(entry: Any) -> Callable[..., Any]:
    """Return the written form of a function as plain Python, without compiling it."""
    writer = Writer()
    name = writer.function(entry)
    space: dict[str, Any] = {"np": np, "math": math, "_inlined": _unchanged, "_called": _unchanged}
    exec(writer.text(), space)
    return space[name]  # type: ignore[no-any-return]


def _unchanged(function: Any) -> Any:
    return function
