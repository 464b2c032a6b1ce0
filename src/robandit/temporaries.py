"""Temporary files next to the file that they will replace. What killed processes leave behind can be told from what is in use.

The name is ``.TARGET.HOST-RANDOM.part``, where HOST is a hash of the machine's name. A temporary file is locked (flock) while it is
in use, and the system releases the lock when the process ends, even by kill -9. So a file of this machine with such a name, whose
lock can be taken, is a leftover. Windows and file systems without locks keep leftovers.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

ENDING = ".part"
LONGEST = 150  # bytes of the target's name in the name of a temporary file; file systems allow 255 in all


class Temporary:
    """A new, private, locked file next to a target. At the end of the context it is removed, unless it replaced the target."""

    def __init__(self, target: Path) -> None:
        """Make the file."""
        while True:
            self.path = target.with_name(f"{_start(target.name)}{secrets.token_hex(4)}{ENDING}")
            try:
                self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            except FileExistsError:
                continue
            if _locked(self.handle) is not False and self._in_place():
                self._moved = False
                return
            os.close(self.handle)  # another process took it for a leftover before it was locked

    def _in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self.handle), os.stat(self.path))
        except FileNotFoundError:
            return False

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def replace(self, target: Path) -> None:
        """Move the file to its target."""
        if fcntl is None:
            self._close()  # Windows does not move open files
        os.replace(self.path, target)
        self._moved = True

    def _close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the file if it did not replace its target."""
        if fcntl is None:
            self._close()
        if not self._moved:
            with suppress(OSError):
                os.unlink(self.path)
        self._close()


def sweep_temporaries(folder: Path, name: str) -> None:
    """Remove the temporary files that killed processes of this machine left of one file of a folder."""
    if fcntl is None:
        return
    form = re.compile(re.escape(_start(name)) + "[0-9a-f]{8}" + re.escape(ENDING))
    with suppress(OSError):  # such as a folder that cannot be listed; the file may be writable nevertheless
        leftovers = [entry.path for entry in os.scandir(folder) if form.fullmatch(entry.name)]
        for path in leftovers:
            with suppress(OSError):
                _remove_unused(path)


def _remove_unused(path: str) -> None:
    """Remove a temporary file unless it is in use. The lock is held meanwhile, so that its maker notices (`Temporary`)."""
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _locked(handle) and os.path.samestat(os.fstat(handle), os.stat(path)):
            os.unlink(path)
    finally:
        os.close(handle)


def _start(name: str) -> str:
    """Return the beginning of the names of all temporary files of a target, which is shortened if it is long."""
    encoded = os.fsencode(name)
    if len(encoded) > LONGEST:
        name = f"{os.fsdecode(encoded[:100])}~{hashlib.sha256(encoded).hexdigest()[:16]}"
    return f".{name}.{_host()}-"


@cache
def _host() -> str:
    return hashlib.sha256(platform.node().encode(errors="replace")).hexdigest()[:8]


def _locked(handle: int) -> bool | None:
    """Lock an open file without waiting; return False if another process has it, and None where files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES) else None
    return True
