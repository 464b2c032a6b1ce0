"""A lock that a forked process can use, even if another thread of its parent held it at that moment."""

from __future__ import annotations

import os
import threading
import weakref

_locks: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


class ProcessLock:
    """A lock for ``with``. It is free in a new process."""

    def __init__(self) -> None:
        self._inner = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._inner.acquire()

    def __exit__(self, *_: object) -> None:
        self._inner.release()

    def _renew(self) -> None:
        self._inner = threading.Lock()


def _renew_all() -> None:
    for lock in _locks:
        lock._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
