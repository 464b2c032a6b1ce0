"""Where kernels are kept between processes, and how one is loaded.

A kernel is a text (see :mod:`robandit.kernel.generate`). It is stored under the hash of that text, of the versions of Python,
NumPy and Numba and of the processor; Numba's compiled code lies beside it. Both are written under another name and then moved,
so two processes that compile the same kernel at once do the work twice and disturb nothing.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["cache_directory", "load", "ready", "say"]

_lock = threading.RLock()
_modules: dict[str, ModuleType] = {}
_said: set[str] = set()


def say(message: str, *, once: bool = False) -> None:
    """Tell the person at the terminal, on standard error; with ``once``, at most one time per process."""
    with _lock:
        if not once or message not in _said:
            _said.add(message)
            print(f"robandit: {message}", file=sys.stderr, flush=True)


def cache_directory() -> Path:
    """The folder of compiled kernels: ``ROBANDIT_CACHE_DIR``, or ``robandit`` in the user's cache folder.

    Where it cannot be written, a temporary folder serves this process, and one message says so.
    """
    return _usable_directory(os.environ.get("ROBANDIT_CACHE_DIR"))


@cache
def _usable_directory(wanted: str | None) -> Path:
    folder = Path(wanted) if wanted else _user_cache() / "robandit"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        temporary = Path(tempfile.mkdtemp(prefix="robandit-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        say(
            f"the cache folder {folder} cannot be written ({error.strerror}); compiled code will not be kept after this "
            "process. Set ROBANDIT_CACHE_DIR to a folder that can be written."
        )
        return temporary


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache
def _options() -> str:
    """The jit options. ``_nrt=False`` (private to Numba) removes reference counting from hot loops, a factor of 4 in ours."""
    from numba import njit

    options = "nogil=True, error_model='numpy'"
    try:
        njit(_nrt=False)(_nothing).compile("()")
    except Exception:  # any refusal, whatever its type, means the same: do without
        say("this Numba does not take _nrt=False; compiled loops will be slower, results are the same", once=True)
        return options
    return options + ", _nrt=False"


def _nothing() -> None:
    return None


@cache
def _platform_key() -> str:
    import llvmlite.binding
    import numba
    import numpy

    return "|".join(
        [platform.python_version(), numba.__version__, numpy.__version__, llvmlite.binding.get_host_cpu_name()]
    )


def load(text: str, name: str) -> ModuleType:
    """The module with this text, written to the cache folder under its hash and imported from there."""
    text = f"from numba import njit\nimport math\nimport numpy as np\n\nOPTIONS = dict({_options()})\n" + text
    digest = hashlib.sha256(f"{_platform_key()}\n{text}".encode()).hexdigest()[:20]
    module_name = f"{name}_{digest}"
    with _lock:
        if module_name not in _modules:
            path = cache_directory() / f"{module_name}.py"
            _write_whole(path, text)
            spec = importlib.util.spec_from_file_location(f"_robandit_{module_name}", path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # Numba looks modules up by name when it loads cached code
            spec.loader.exec_module(module)
            _modules[module_name] = module
        return _modules[module_name]


def _write_whole(path: Path, text: str) -> None:
    """Write a file that is either absent or complete, whoever else writes it now."""
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def ready(module: ModuleType, entry: str, label: str, args: tuple[Any, ...]) -> Any:
    """The entry of a kernel, compiled for arguments like these or taken from the cache."""
    import numba

    dispatcher = getattr(module, entry)
    types = tuple(numba.typeof(a) for a in args)
    with _lock:
        if types in dispatcher.overloads:
            return dispatcher
        assert module.__file__ is not None
        path = Path(module.__file__)
        stored = Path(os.environ["NUMBA_CACHE_DIR"]) if os.environ.get("NUMBA_CACHE_DIR") else path.parent
        if any(stored.rglob(f"{path.stem}.{entry}-*.nbi")):
            dispatcher.compile(types)
            return dispatcher
        say(f"compiling {label}, first run only")
        start = time.perf_counter()
        dispatcher.compile(types)
        say(f"compiled {label} in {time.perf_counter() - start:.1f} s")
        return dispatcher
