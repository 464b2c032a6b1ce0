"""Messages about compilation, on standard error."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from robandit.wording import visible

_printed: set[str] = set()
_lock = threading.Lock()
_thread = threading.local()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)  # another thread of the parent may hold it


def say(message: str, *, once: bool = False) -> None:
    """Print a message on standard error; with ``once``, at most one time per process."""
    with _lock:
        if not (once and message in _printed):
            _printed.add(message)
            print(f"robandit: {visible(message)}", file=sys.stderr, flush=True)


def say_compiling(label: str) -> None:
    """Print that an entry is being compiled, unless this thread compiles in the background."""
    if not getattr(_thread, "in_background", False):
        say(f"compiling {label}, first run only", once=True)


@contextmanager
def in_background() -> Iterator[None]:
    """Do not print what this thread compiles meanwhile."""
    _thread.in_background = True
    try:
        yield
    finally:
        _thread.in_background = False
