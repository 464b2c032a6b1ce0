"""Runs work that an exception of a signal handler must not interrupt."""

from __future__ import annotations

import _thread
import atexit
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["uninterrupted"]

PATIENCE = 60.0  # seconds that the end of the program waits for work that it left
_unfinished: list[Any] = []  # the locks of work, also of that which nobody waits for


def uninterrupted(work: Callable[[], Any]) -> Any:
    """Return the result of ``work()``, which another thread does if this is the main thread.

    Python runs signal handlers in the main thread only. An exception of a handler, such as KeyboardInterrupt, inside a callback of
    LLVM can crash the process. Here it ends the wait. The work goes on, and its result is there for a later call.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list[tuple[Any, BaseException | None]] = []
    done = _thread.allocate_lock()  # unlike a Thread or an Event, it has no Python code that a handler could interrupt
    done.acquire()

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            done.release()

    _unfinished.append(done)  # before the start, because a handler may raise after any of these lines
    try:
        _thread.start_new_thread(run, ())
    except RuntimeError:  # no threads here, or the interpreter is shutting down
        _unfinished.remove(done)
        return work()
    done.acquire()
    _unfinished.remove(done)
    result, error = outcome.pop()
    if error is not None:
        raise error
    return result


@atexit.register
def _end() -> None:
    """Wait for what is still at work: the end of the program must not interrupt it either."""
    for done in _unfinished:
        done.acquire(timeout=PATIENCE)
