"""Messages about compilation, on standard error."""

from __future__ import annotations

import sys

from robandit.wording import visible

_printed: dict[str, object] = {}


def say(message: str, *, once: bool = False) -> None:
    """Print a message on standard error; with ``once``, at most one time per process."""
    mine = object()
    if (
        _printed.setdefault(message, mine) is mine or not once
    ):  # without a lock, which a forked child might inherit locked
        print(f"robandit: {visible(message)}\n", end="", file=sys.stderr, flush=True)


def say_compiling(label: str) -> None:
    """Print that an entry is being compiled."""
    say(f"compiling {label}, first run only", once=True)
