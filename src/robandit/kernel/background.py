"""Compiles entries beside the program: in another process, one after the other, in the order in which they were asked for.

A thread waits for that process and loads the code, so that the program's own threads go on. The process ends when nothing is left
to do, and with the program; unfinished code is not stored. A forked child has neither thread nor process: `resume` starts its own.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from robandit.errors import KernelError
from robandit.kernel.build import Entry, compiled, explained, kernel_of
from robandit.kernel.cache import is_under_way, loaded
from robandit.kernel.workers import Worker, WorkerDied

Then = Callable[[Any, Entry | Exception], None]
PATIENCE = 5.0  # seconds that the end of the program waits for code that is being loaded


class _Job(NamedTuple):
    owner: weakref.ref[Any]
    entry: Entry | partial[Any]
    label: str
    args: tuple[Any, ...]
    then: Then


_jobs: deque[_Job] = deque()  # the first one is under way
_lock = threading.RLock()  # of these variables; held only for moments
_thread: threading.Thread | None = None
_worker: Worker | None = None
_ending = False


def in_background(owner: Any, entry: Entry | partial[Any], *, label: str, args: tuple[Any, ...], then: Then) -> None:
    """Compile an entry for arguments like ``args``, and call ``then(owner, compiled entry or error)`` from another thread.

    The owner is not kept alive. If it is gone, nothing is compiled or called.
    """
    with _lock:
        _jobs.append(_Job(weakref.ref(owner), entry, label, args, then))
        _start()


def is_busy() -> bool:
    """Return whether something is being compiled, or waits for it."""
    return bool(_jobs)


def resume() -> None:
    """Go on in a forked child, which has no thread. Call it when something is used that is not compiled yet."""
    if _thread is None and _jobs:
        with _lock:
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
    global _thread, _worker
    while True:
        with _lock:
            if not _jobs or _ending:
                worker, _thread, _worker = _worker, None, None  # from here on, another thread may start
                break
            job = _jobs[0]
        if job.owner() is not None:
            with suppress(Exception):  # of `then`: the thread goes on
                _do(job)
        with _lock:
            _jobs.popleft()
        del job
        time.sleep(0.001)  # lets a thread that waits for the compiler's lock have it, such as one that forks
    _stop(worker)


def _do(job: _Job) -> None:
    result: Entry | Exception
    try:
        result = _compiled(job)
    except Exception as error:
        result = error
    owner = job.owner()
    if owner is not None and not _ending:
        job.then(owner, result)


def _compiled(job: _Job) -> Entry:
    """Return the entry, loaded from the cache after another process has compiled it. Without such a process, compile it here."""
    global _worker
    kernel = kernel_of(job.entry, job.args)
    while (entry := loaded(kernel)) is None and is_under_way(kernel) and not _ending:
        time.sleep(0.1)  # another process compiles it; waiting for it needs no process
    if entry is None and not kernel.is_stored():  # it is, if NUMBA_DISABLE_JIT is set
        try:
            if _worker is None:
                started = Worker()
                with _lock:
                    _worker = started
                    if _ending:  # the end of the program did not see this worker
                        started.stop()
            _worker.compile([kernel])
        except WorkerDied:
            _stop(_worker)
            _worker = None
            if _ending:
                raise
        except KernelError as error:
            raise explained(job.label, str(error)) from None
        entry = loaded(kernel)
    return entry if entry is not None else compiled(job.entry, label=job.label, args=job.args)


def _stop(worker: Worker | None) -> None:
    if worker is not None:
        worker.stop()
        worker.close()


@atexit.register
def _end() -> None:
    """End the process that compiles, and wait for the thread, which may be inside native code of LLVM."""
    global _ending
    with _lock:
        _ending = True
        thread, worker = _thread, _worker
    if worker is not None:
        worker.stop()
    if thread is not None:
        thread.join(PATIENCE)


def _after_fork_in_child() -> None:
    global _thread, _worker
    if _worker is not None:
        _worker.leave()
    _thread = _worker = None
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child)
