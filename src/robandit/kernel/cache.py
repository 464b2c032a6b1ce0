"""Stores compiled kernels between processes, and loads them.

A kernel is a text (see :mod:`robandit.kernel.generate`). Its file holds the compiled code with a checksum, because damaged machine
code would crash the process. It is named by the hash of the text, the versions of Python, NumPy and Numba, and the processor. A
file is written under another name and then moved. A lock per kernel lets one process of the machine compile it while others wait.
"""

from __future__ import annotations

import hashlib
import linecache
import logging  # noqa: F401  before `register_at_fork`: see there
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

from robandit.errors import FileError
from robandit.files import write_atomically
from robandit.kernel import native
from robandit.kernel.folder import load_folders, store_folder, untrusted
from robandit.kernel.messages import say, say_compiling
from robandit.locks import locked

FORMAT = b"robandit kernel 1\n"
_PREFIX = "_robandit_"  # begins the name of a kernel's module
lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A child must not inherit a lock that a compiling thread of its parent holds. The module that registers last acquires first.
    # Numba uses loggers, so a fork that held the lock of `logging` while it waits for this one would wait for ever.
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
_entries: dict[str, Any] = {}  # compiled or loaded entries, by the name of the kernel
_parts: dict[str, Any] = {}  # functions and records that kernels share


@dataclass(frozen=True)
class Kernel:
    """A text to compile. It is plain data, so that another process can compile it."""

    name: str
    """The name of the file: the entry, and a hash of everything that the code depends on."""
    entry: str
    """The function that is called from Python."""
    text: str
    types: Sequence[str]
    """The types of the entry's arguments, as `native.type_name` returns them."""
    parts: Mapping[str, str]
    """Functions and records in the text, with a hash of all text that each depends on. Kernels share equal parts, so that a
    process compiles a function once for all entries."""
    checked: bool
    """Whether the code checks array indices."""

    def fits(self) -> bool:
        """Return whether this process makes the code that the name stands for: it may have other versions or settings."""
        return self.name == _name(self.entry, self.text, self.checked)

    def is_stored(self) -> bool:
        """Return whether the code can be loaded, or need not be compiled at all."""
        return native.jit_disabled() or _stored_code(self.name) is not None


def kernel(text: str, entry: str, types: Sequence[str], parts: Mapping[str, str], *, checked: bool) -> Kernel:
    """Return the kernel with this text, named by its hash."""
    text = "import math\nimport numpy as np\n" + text
    hashes = {name: hashlib.sha256(f"{checked}\n{part}".encode()).hexdigest() for name, part in parts.items()}
    return Kernel(_name(entry, text, checked), entry, text, types, hashes, checked)


def _name(entry: str, text: str, checked: bool) -> str:
    digest = hashlib.sha256(f"{native.platform_key()}\n{checked}\n{text}".encode()).hexdigest()[:20]
    return f"{entry[:60]}_{digest}"  # a file name has at most 255 characters


def at_hand(kernel: Kernel) -> Any | None:
    """Return the entry of a kernel if this process has compiled or loaded it, else None. It never waits."""
    return _entries.get(kernel.name)


def loaded(kernel: Kernel) -> Any | None:
    """Return the entry of a kernel with its stored code, or None if no code is stored."""
    with lock:
        if kernel.name in _entries:
            return _entries[kernel.name]
        code = None if native.jit_disabled() else _stored_code(kernel.name)
        if code is None:
            return None
        entry = getattr(_module(kernel, inner=False), kernel.entry)
        native.restore(entry, code)
        return _entries.setdefault(kernel.name, entry)


def is_under_way(kernel: Kernel) -> bool:
    """Return whether another process is compiling a kernel."""
    with suppress(FileError), locked(_lock_file(kernel), wait=False) as mine:
        return not mine
    return False


def _lock_file(kernel: Kernel) -> Path:
    return store_folder() / f"{kernel.name}.lock"


def ready(kernel: Kernel, label: str) -> Any:
    """Return the entry of a kernel, loaded or compiled. Print the label if it has to be compiled."""
    with lock:
        entry = loaded(kernel)
        if entry is not None:
            return entry
        if native.jit_disabled():
            plain = getattr(_module(kernel, inner=True), kernel.entry)
            # Random numbers rely on the overflow of 64-bit words, which compiled code does not report.
            return _entries.setdefault(kernel.name, numpy.errstate(over="ignore")(plain))
        say_compiling(label)
        with ExitStack() as stack:
            with suppress(FileError):  # without locks, as on some network drives, several processes may compile it
                stack.enter_context(locked(_lock_file(kernel), wait=True))
            entry = loaded(kernel)  # another process may have compiled it meanwhile
            return entry if entry is not None else _compiled(kernel)


def _compiled(kernel: Kernel) -> Any:
    entry = getattr(_assembled(kernel), kernel.entry)
    native.compile_entry(entry, kernel.types)
    code = native.dumped(entry)
    if code is not None:
        _store(store_folder() / f"{kernel.name}.kernel", _head(kernel.name, code) + code)
    return _entries.setdefault(kernel.name, entry)


def _assembled(kernel: Kernel) -> ModuleType:
    """Return a module with the text, in which parts that other kernels have are theirs."""
    module = _module(kernel, inner=True)
    for name, digest in kernel.parts.items():
        vars(module)[name] = _parts.setdefault(digest, vars(module)[name])
    return module


def _store(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content, closed=True)  # otherwise `untrusted` would reject it
    except FileError as error:  # a full disk, or on Windows another process that has the file open
        say(f"compiled code could not be stored, and is compiled again next time: {error}", once=True)


def _head(name: str, code: bytes) -> bytes:
    """Return the first bytes of a kernel's file. The checksum covers the name: code of another kernel would read wrong memory."""
    return FORMAT + hashlib.sha256(name.encode() + b"\n" + code).digest()


def _stored_code(name: str) -> bytes | None:
    """Return the code in a kernel's file, if there is one, it is trusted and its checksum is right."""
    head = len(FORMAT) + hashlib.sha256().digest_size
    for folder in load_folders():
        with suppress(OSError), open(folder / f"{name}.kernel", "rb") as file:
            reason = untrusted(file.fileno())
            if reason:
                say(f"{file.name} is not used: {reason}", once=True)
                continue
            content = file.read()
            code = content[head:]
            if content[:head] == _head(name, code):
                return code
            say(f"{file.name} is damaged: its checksum does not match; compiling it again", once=True)
    return None


class _Homes(MetaPathFinder, Loader):
    """Makes an empty module for a kernel, since Numba imports the modules of the code that it loads but never reads them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith(_PREFIX) else None

    def exec_module(self, module: ModuleType) -> None: ...


sys.meta_path.append(_Homes())


def _module(kernel: Kernel, *, inner: bool) -> ModuleType:
    """Return a module in which the text was run."""
    module = ModuleType(f"{_PREFIX}{kernel.name}")
    module.__file__ = f"<{kernel.name}>"
    sys.modules[module.__name__] = module  # Numba looks modules up by name
    lines = kernel.text.splitlines(keepends=True)
    linecache.cache[module.__file__] = (len(kernel.text), None, lines, module.__file__)  # for messages of Numba
    native.run_text(kernel.text, module, inner=inner, checked=kernel.checked)
    return module
