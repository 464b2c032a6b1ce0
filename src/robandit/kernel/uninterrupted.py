"""Runs work that an exception of a signal handler must not interrupt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def uninterrupted(work: Callable[[], Any]) -> Any:
    """Return the result of ``work()``, which another thread does if this is the main thread.

    Python runs signal handlers in the main thread only. An exception of a handler, such as KeyboardInterrupt, inside a callback of
    LLVM can crash the process. Here it ends the wait. The work goes on, its result is there for a later call, and the end of the
    program waits for it.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    executor = ThreadPoolExecutor(1, "robandit-compile")
    try:
        future = executor.submit(work)
    except RuntimeError:  # no threads here, or the interpreter is shutting down
        return work()
    executor.shutdown(wait=False)
    return future.result()
