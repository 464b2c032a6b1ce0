"""Compiles entries beside the program: one thread, one entry after the other, in the order in which they were asked for.

The thread ends when nothing is left to do. It does not keep the process alive. A forked child has no threads, so it starts its own.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from robandit.kernel.build import Entry, compiled
from robandit.kernel.messages import in_background as silently

__all__ = ["in_background"]

Then = Callable[[Any, Entry | Exception], None]


class _Job(NamedTuple):
    owner: weakref.ref[Any]
    entry: Entry | partial[Any]
    label: str
    args: tuple[Any, ...]
    then: Then


_jobs: deque[_Job] = deque()  # the first one is under way
_lock = threading.RLock()  # of the two variables; held only for moments
_thread: threading.Thread | None = None


def in_background(owner: Any, entry: Entry | partial[Any], *, label: str, args: tuple[Any, ...], then: Then) -> None:
    """Compile an entry for arguments like ``args``, and call ``then(owner, compiled entry or error)`` from another thread.

    The owner is not kept alive. If it is gone, nothing is compiled or called.
    """
    with _lock:
        _jobs.append(_Job(weakref.ref(owner), entry, label, args, then))
        _start()


def _start() -> None:
    """Start the thread, unless it runs. Hold the lock."""
    global _thread
    if _thread is None and _jobs:
        _thread = threading.Thread(target=_work, name="robandit-compile", daemon=True)
        try:
            _thread.start()
        except RuntimeError:  # no threads here, or the interpreter is shutting down: owners go on as they are
            _thread = None


def _work() -> None:
    global _thread
    while True:
        with _lock:
            if not _jobs:
                _thread = None
                return
            job = _jobs[0]
        if job.owner() is not None:
            result: Any
            try:
                with silently():
                    result = compiled(job.entry, label=job.label, args=job.args)
            except Exception as error:
                result = error
            owner = job.owner()
            if owner is not None:
                job.then(owner, result)
            del owner
        with _lock:
            _jobs.popleft()
        del job
        time.sleep(0.001)  # lets a thread that waits for the compiler's lock have it, such as one that forks


def _after_fork_in_child() -> None:
    global _thread
    _thread = None
    _start()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child)
