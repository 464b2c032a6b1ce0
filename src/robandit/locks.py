"""File locks between threads and processes of one machine. A lock is released when its holder ends, even by kill -9."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from robandit.errors import FileError


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock with this path and yield True, or yield False if it is taken and ``wait`` is false.

    Forked children of the holder do not hold the lock. The file is removed at the end.
    """
    try:
        lock = _acquired(path, wait)
    except OSError as error:
        raise FileError(f"{path} cannot be locked: {error.strerror}; use a folder on a disk of this machine") from error
    try:
        yield lock is not None
    finally:
        if lock is not None and lock.handle is not None:
            with suppress(OSError):
                path.unlink()  # while the lock is held; `_acquired` handles processes that wait for this file
            lock.close()


def _acquired(path: Path, wait: bool) -> _Lock | None:
    path.parent.mkdir(exist_ok=True)
    while True:
        lock = _Lock(path)
        try:
            assert lock.handle is not None
            if not _lock(lock.handle, wait):
                lock.close()
                return None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock.handle), os.stat(path)):
                    return lock
        except BaseException:
            lock.close()
            raise
        lock.close()  # the last holder removed this file, and another process may have locked a new one: try again


class _Lock:
    """An open lock file. A forked process closes its copy, which would otherwise keep the lock after its parent is killed."""

    opened: ClassVar[set[_Lock]] = set()
    guard: ClassVar[threading.RLock] = threading.RLock()  # no fork between opening a file and registering it

    def __init__(self, path: Path) -> None:
        with self.guard:
            self.handle: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            self.opened.add(self)

    def close(self) -> None:
        """Unlock and close the file."""
        with self.guard:
            if self.handle is not None:
                with suppress(OSError):
                    _unlock(self.handle)  # explicitly, because a child between fork and exec may hold a copy
                self.forget()

    def forget(self) -> None:
        """Close the file without unlocking, since another process may hold the lock through its copy."""
        handle, self.handle = self.handle, None
        self.opened.discard(self)
        if handle is not None:
            os.close(handle)

    @classmethod
    def forked(cls) -> None:
        """Close all copies in a forked process."""
        for lock in list(cls.opened):
            lock.forget()
        cls.guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_Lock.guard.acquire, after_in_parent=_Lock.guard.release, after_in_child=_Lock.forked)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int, wait: bool) -> bool:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError:  # LK_LOCK gives up after ten seconds
                if not wait:
                    return False

    def _unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: int, wait: bool) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
