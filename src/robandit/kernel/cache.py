"""Where kernels are kept between processes, and how one is loaded.

A kernel is a text (see :mod:`robandit.kernel.generate`). It is stored under the hash of that text, of the versions of Python,
NumPy and Numba and of the processor; Numba's compiled code lies beside it. Both are written under another name and then moved,
so two processes that compile the same kernel at once do the work twice and disturb nothing. A checksum lies there too:
Numba loads whatever it finds, and damaged machine code kills the process.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
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

__all__ = ["cache_directory", "load", "ready", "say"]

_PREFIX = "_robandit_"  # of a kernel's module
lock = threading.RLock()
_modules: dict[str, ModuleType] = {}
_parts: dict[tuple[str, str], Any] = {}  # functions and records that several kernels have in common
_said: set[str] = set()


def say(message: str, *, once: bool = False) -> None:
    """Tell the person at the terminal, on standard error; with ``once``, at most one time per process."""
    with lock:
        if not once or message not in _said:
            _said.add(message)
            print(f"robandit: {message}", file=sys.stderr, flush=True)


def cache_directory() -> Path:
    """The folder of compiled kernels: ``ROBANDIT_CACHE_DIR``, or ``robandit`` in the user's cache folder.

    Where it cannot be written, a temporary folder serves this process, and one message says so.
    """
    with lock:  # so that two threads do not make two temporary folders
        return _usable_directory(os.environ.get("ROBANDIT_CACHE_DIR"))


@cache
def _usable_directory(wanted: str | None) -> Path:
    place = wanted or "for this user"
    try:
        # Absolute, because a program may change its working folder.
        folder = (Path(wanted) if wanted else _user_cache() / "robandit").expanduser().absolute()
        place = str(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder, as in some containers
        temporary = Path(tempfile.mkdtemp(prefix="robandit-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        say(
            f"the cache folder {place} cannot be written ({getattr(error, 'strerror', None) or error}); compiled "
            "code will not be kept after this process. Set ROBANDIT_CACHE_DIR to a folder that can be written."
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
    numba: Any = import_module("numba")
    options = "nogil=True, error_model='numpy'"
    if numba.config.DISABLE_JIT:
        return options
    if not hasattr(import_module("numba.core.cpu").CPUTargetOptions, "_nrt"):  # asked, not tried: a trial costs 0.1 s
        say("this Numba does not take _nrt=False; compiled loops will be slower, results are the same", once=True)
        return options
    return options + ", _nrt=False"


@cache
def _platform_key() -> str:
    import llvmlite.binding
    import numpy

    numba: Any = import_module("numba")
    # Same processor, other features: a virtual machine may hide some. Bounds checks change the code, not the text.
    features = llvmlite.binding.get_host_cpu_features().flatten()
    processor = f"{llvmlite.binding.get_host_cpu_name()} {features} {numba.config.BOUNDSCHECK}"
    return "|".join([platform.python_version(), numba.__version__, numpy.__version__, processor])


class _Homes(MetaPathFinder, Loader):
    """Finds an empty module wherever a kernel is imported by name.

    Numba does so when it loads cached code: it wants the module of each function that is part of it. That may be another
    kernel's (see `load`), which this process does not have and does not need: nothing looks into the module.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith(_PREFIX) else None

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty."""


sys.meta_path.append(_Homes())


def load(text: str, name: str, parts: dict[str, str]) -> ModuleType:
    """The module with this text, written to the cache folder under its hash and imported from there.

    The parts are names in it, each with all that it depends on. Where an earlier module of this process has the same part, that
    is used: what was compiled for one entry is then compiled for all. Without it, a policy's loop and its six steps take
    twice the time.
    """
    text = f"from numba import njit\nimport math\nimport numpy as np\n\nOPTIONS = dict({_options()})\n" + text
    digest = hashlib.sha256(f"{_platform_key()}\n{text}".encode()).hexdigest()[:20]
    module_name = f"{name}_{digest}"
    with lock:
        if module_name not in _modules:
            path = cache_directory() / f"{module_name}.py"
            _write_whole(path, text)
            # The text itself is run, not what the file holds by now; and no byte code is stored that could be damaged.
            module = ModuleType(f"{_PREFIX}{module_name}")
            module.__file__ = str(path)
            sys.modules[module.__name__] = (
                module  # Numba looks modules up by name when it compiles, and loads cached code
            )
            exec(compile(text, path, "exec", dont_inherit=True), vars(module))
            for part, reached in parts.items():
                vars(module)[part] = _parts.setdefault((_options(), reached), vars(module)[part])
            _modules[module_name] = module
        return _modules[module_name]


def _write_whole(path: Path, text: str) -> None:
    """Write a file that is either absent or complete, whoever else writes it now."""
    if _holds(path, text):
        return
    path.parent.mkdir(parents=True, exist_ok=True)  # someone may have emptied the cache while this process ran
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # others may read what we compiled; mkstemp would not let them
        os.utime(temporary, (1e9, 1e9))  # older Numbas look at the date: the same text, written again, is no news
        os.replace(temporary, path)
    except PermissionError:  # on Windows: another process reads the file, which it has just written
        if not _holds(path, text):
            raise
    finally:
        Path(temporary).unlink(missing_ok=True)


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def ready(module: ModuleType, entry: str, label: str, args: tuple[Any, ...]) -> Any:
    """The entry of a kernel, compiled for arguments like these or taken from the cache."""
    numba: Any = import_module("numba")
    dispatcher = getattr(module, entry)
    if numba.config.DISABLE_JIT:
        return _quietly(dispatcher)  # a plain function, for debuggers
    types = tuple(numba.typeof(a) for a in args)
    with lock:
        # One kernel, one signature; a call with other types is an error, not a second compilation.
        if dispatcher.overloads:
            return dispatcher
        assert module.__file__ is not None
        folder = Path(dispatcher.stats.cache_path)
        name = f"{Path(module.__file__).stem}.{entry}"
        seal = folder / f"{name}.sha256"
        if not _sealed(seal, name):
            if seal.exists():
                say(f"the stored code of {label} does not match its checksum; compiling it again")
            else:
                say(f"compiling {label}, first run only", once=True)
            for file in folder.glob(f"{name}-*.nb[ic]"):
                with contextlib.suppress(OSError):
                    file.unlink()
        dispatcher.compile(types)
        if not dispatcher.stats.cache_hits:
            _seal(seal, name)
        dispatcher.disable_compile()
        return dispatcher


def _quietly(function: Any) -> Any:
    """Random numbers let 64-bit words overflow, as they must; NumPy would warn where compiled code does not."""
    import numpy

    def quiet(*args: Any) -> Any:
        with numpy.errstate(over="ignore"):
            return function(*args)

    return quiet


def _seal(seal: Path, name: str) -> None:
    """Write down what Numba's files hold; without it they are not trusted, and compiled again.

    Another process may replace them meanwhile. So each looks again after it has written: the last to write is then right.
    """
    for _ in range(10):
        with contextlib.suppress(OSError):
            sums = _sums(seal.parent, name)
            _write_whole(seal, sums)
            if _sums(seal.parent, name) == sums:
                return


def _sealed(seal: Path, name: str) -> bool:
    """Are Numba's files what was written? It does not look, and one wrong bit in stored code kills the process."""
    if not seal.exists():
        return False
    for pause in (0.0, 0.2):  # another process may have written its files just now, and its seal not yet
        time.sleep(pause)
        with contextlib.suppress(OSError):
            if _holds(seal, _sums(seal.parent, name)):
                return True
    return False


def _sums(folder: Path, name: str) -> str:
    files = sorted(folder.glob(f"{name}-*.nb[ic]"))
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
