"""Messages about compilation, on standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_printed: set[str] = set()
_lock = threading.Lock()
_thread = threading.local()


def say(message: str, *, once: bool = False) -> None:
    """Print a message on standard error; with ``once``, at most one time per process."""
    with _lock:
        if getattr(_thread, "quiet", False) or (once and message in _printed):
            return
        _printed.add(message)
        print(f"robandit: {message}", file=sys.stderr, flush=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Print no messages of this thread meanwhile."""
    before = getattr(_thread, "quiet", False)
    _thread.quiet = True
    try:
        yield
    finally:
        _thread.quiet = before
