"""Stores kernels between processes, and loads them.

A kernel is a text (see :mod:`robandit.kernel.generate`). Its file is named by the hash of that text, the versions of Python, NumPy
and Numba, and the processor. Numba stores the compiled code next to it. Both are written under another name and then moved, so two
processes may compile the same kernel at once. A third file has a checksum, because damaged machine code would crash the process.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging  # noqa: F401  before `register_at_fork`: see there
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

from robandit.errors import FileError
from robandit.files import write_atomically

_PREFIX = "_robandit_"  # begins the name of a kernel's module
lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A child must not inherit a lock that a compiling thread of its parent holds. The module that registers last acquires first.
    # Numba uses loggers, so a fork that held the lock of `logging` while it waits for this one would wait for ever.
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
_modules: dict[str, ModuleType] = {}
_parts: dict[tuple[str, str], Any] = {}  # functions and records that kernels share
_messages: set[str] = set()  # messages printed so far
quiet = threading.local()
"""A thread that sets ``on`` compiles without the message that it does."""


def say(message: str, *, once: bool = False) -> None:
    """Print a message on standard error; with ``once``, at most one time per process."""
    with lock:
        if not once or message not in _messages:
            _messages.add(message)
            print(f"robandit: {message}", file=sys.stderr, flush=True)


def cache_directory() -> Path:
    """Return the folder of compiled kernels: ``ROBANDIT_CACHE_DIR``, or ``robandit`` in the user's cache folder.

    If it cannot be written, a message is printed once and this process uses a temporary folder.
    """
    with lock:  # so that two threads do not make two temporary folders
        return _usable_directory(os.environ.get("ROBANDIT_CACHE_DIR"))


@cache
def _usable_directory(setting: str | None) -> Path:
    place = setting or "for this user"
    try:
        # Absolute, because a program may change its working directory.
        folder = (Path(setting) if setting else _user_cache() / "robandit").expanduser().absolute()
        place = str(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder, as in some containers
        temporary = Path(tempfile.mkdtemp(prefix="robandit-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        problem = f"the cache folder {place} cannot be written ({getattr(error, 'strerror', None) or error})"
        hint = "Set ROBANDIT_CACHE_DIR to a writable folder."
        say(f"{problem}; compiled code is lost when this process ends. {hint}")
        return temporary


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache
def _options() -> str:
    """Return the jit options. ``_nrt=False`` (private to Numba) removes reference counting, which makes loops 4 times faster."""
    numba: Any = import_module("numba")
    options = "nogil=True, error_model='numpy'"
    if numba.config.DISABLE_JIT:
        return options
    if hasattr(import_module("numba.core.cpu").CPUTargetOptions, "_nrt"):  # trying it would cost 0.1 s
        return options + ", _nrt=False"
    say("this Numba does not accept _nrt=False; compiled loops are slower, results are the same", once=True)
    return options


@cache
def _platform_key() -> str:
    import llvmlite.binding

    numba: Any = import_module("numba")
    # Features are included since a virtual machine may hide some, and BOUNDSCHECK since it changes the code but not the text.
    features = llvmlite.binding.get_host_cpu_features().flatten()
    processor = f"{llvmlite.binding.get_host_cpu_name()} {features} {numba.config.BOUNDSCHECK}"
    return "|".join([platform.python_version(), numba.__version__, numpy.__version__, processor])


class _Homes(MetaPathFinder, Loader):
    """Makes an empty module for a kernel, since Numba imports the modules of the code that it loads but never reads them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith(_PREFIX) else None

    def exec_module(self, module: ModuleType) -> None: ...


sys.meta_path.append(_Homes())


def load(text: str, name: str, parts: dict[str, str]) -> ModuleType:
    """Return the module with this text, stored in the cache folder under its hash.

    ``parts`` maps names in it to all text that they depend on. Modules share equal parts, so that a function is compiled once for
    all entries. Otherwise, compiling a policy's loop and its six steps would take twice as long.
    """
    text = f"from numba import njit\nimport math\nimport numpy as np\n\nOPTIONS = dict({_options()})\n" + text
    digest = hashlib.sha256(f"{_platform_key()}\n{text}".encode()).hexdigest()[:20]
    module_name = f"{name}_{digest}"
    with lock:
        if module_name not in _modules:
            path = cache_directory() / f"{module_name}.py"
            _store(path, text)
            # Run the text, because the file may have changed. Store no byte code, because it could be damaged.
            module = ModuleType(f"{_PREFIX}{module_name}")
            module.__file__ = str(path)
            sys.modules[module.__name__] = module  # Numba looks modules up by name
            exec(compile(text, path, "exec", dont_inherit=True), vars(module))
            for part, reached in parts.items():
                vars(module)[part] = _parts.setdefault((_options(), reached), vars(module)[part])
            _modules[module_name] = module
        return _modules[module_name]


def _store(path: Path, text: str) -> None:
    """Write a file, unless it has this text already. All files get the same modification time, since older Numbas compare it."""
    if _holds(path, text):
        return
    path.parent.mkdir(parents=True, exist_ok=True)  # the cache may be emptied while this process runs
    try:
        write_atomically(path, text.encode(), modified=1e9)
    except FileError:
        if not _holds(path, text):  # on Windows another process, which wrote the same text, may have it open
            raise


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def ready(module: ModuleType, entry: str, label: str, args: tuple[Any, ...]) -> Any:
    """Return the entry of a kernel, compiled for arguments like these or loaded from the cache."""
    numba: Any = import_module("numba")
    dispatcher = getattr(module, entry)
    if numba.config.DISABLE_JIT:
        # A plain function, for debuggers. Random numbers rely on the overflow of 64-bit words, which compiled code does not report.
        return numpy.errstate(over="ignore")(dispatcher)
    with lock:
        # A kernel has one signature. A call with other types must raise, not compile a second time.
        if dispatcher.overloads:
            return dispatcher
        folder = Path(dispatcher.stats.cache_path)
        name = f"{Path(str(module.__file__)).stem}.{entry}"
        seal = folder / f"{name}.sha256"
        if not _sealed(seal, name):
            if seal.exists():
                say(f"the stored code of {label} does not match its checksum; compiling it again")
            elif not getattr(quiet, "on", False):
                say(f"compiling {label}, first run only", once=True)
            for file in folder.glob(f"{name}-*.nb[ic]"):
                with contextlib.suppress(OSError):
                    file.unlink()
        dispatcher.compile(tuple(numba.typeof(a) for a in args))
        if not dispatcher.stats.cache_hits:
            _seal(seal, name)
        dispatcher.disable_compile()
        return dispatcher


def _seal(seal: Path, name: str) -> None:
    """Store the checksum of Numba's files. Another process may replace them meanwhile, so the checksum is checked after writing."""
    for _ in range(10):
        with contextlib.suppress(OSError, FileError):
            checksums = _checksums(seal.parent, name)
            _store(seal, checksums)
            if _checksums(seal.parent, name) == checksums:
                return


def _sealed(seal: Path, name: str) -> bool:
    if not seal.exists():
        return False
    for pause in (0.0, 0.2):  # another process may have written its files, but not yet its checksum
        time.sleep(pause)
        with contextlib.suppress(OSError):
            if _holds(seal, _checksums(seal.parent, name)):
                return True
    return False


def _checksums(folder: Path, name: str) -> str:
    files = sorted(folder.glob(f"{name}-*.nb[ic]"))
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
