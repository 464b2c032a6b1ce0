"""Lets one thread at a time use a bandit, at little cost while only one thread uses it.

A lock costs 25 % of a `select` and `update`. So the thread that made the bandit, its owner, does not take the lock in
`select`, `update`, `decide` and `reward` (see `alone`). It only marks that it is inside:

- the owner sets ``inside``, then reads ``owner``. If this still is its own name, no other thread is inside, and none comes in
  before ``inside`` is False again. If it is None, the owner takes the lock, like all others.
- another thread sets ``owner`` to None for ever, waits until ``inside`` is False, and takes the lock (`exclusive`).

The interpreter's global lock orders these steps, so one of both sees the other. Without it (free-threaded Python), nobody is the
owner. Exceptions of signal handlers cannot leave ``inside`` set, because there is no call between setting it and the ``try``. A
call inside a call, such as from the bandit's log, takes the lock.

If another thread were learning when a process forks, the child would have a half-changed state and a lock that nobody releases. So
a fork waits until it holds the locks of all bandits.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

A = TypeVar("A")
T = TypeVar("T")
_guards: weakref.WeakSet[Guard] = weakref.WeakSet()
_registering = threading.Lock()
_held: list[Guard] = []
PATIENCE = 0.005  # seconds that a fork waits for one lock while it holds others


class Guard:
    """The owner, the mark and the lock of one bandit."""

    __slots__ = ("__weakref__", "_maker", "inside", "lock", "owner")

    def __init__(self) -> None:
        """Make the calling thread the owner."""
        self._maker = get_ident()
        self.owner = self._maker if getattr(sys, "_is_gil_enabled", lambda: True)() else None
        self.inside = False
        """Whether the owner is inside without the lock. Only the owner changes it."""
        self.lock = threading.RLock()
        with _registering:
            _guards.add(self)

    def exclusive(self) -> Any:
        """Return the lock, for ``with``. If the caller did not make the bandit, wait until the owner is not inside."""
        if get_ident() != self._maker:
            self.owner = None
            while self.inside:
                time.sleep(0.0)
        return self.lock

    def acquire_soon(self) -> bool:
        """Try to acquire the lock for a few milliseconds; return whether it is acquired."""
        until = time.monotonic() + PATIENCE
        if get_ident() != self._maker:
            self.owner = None
            while self.inside:
                if time.monotonic() > until:
                    return False
                time.sleep(0.0)
        return self.lock.acquire(timeout=PATIENCE)


def alone(method: Callable[[Any, A], T]) -> Callable[[Any, A], T]:
    """Let no other thread use a bandit while one of its methods runs, which takes one argument."""

    def run(bandit: Any, argument: A) -> T:
        guard: Guard = bandit._guard
        if get_ident() == guard.owner and not guard.inside:
            guard.inside = True
            if guard.owner is not None:
                try:
                    return method(bandit, argument)
                finally:
                    guard.inside = False
            guard.inside = False
        with guard.exclusive():
            return method(bandit, argument)

    return run


def _before_fork() -> None:
    """Acquire the locks of all bandits.

    The threads that hold some of them may wait for others, if the log of a bandit uses another bandit. So a lock that does not come
    soon is waited for without the others: it becomes the first of the next attempt.
    """
    guards: list[Guard] = []
    while True:
        with _registering:
            guards = [guard for guard in guards if guard in _guards] + [g for g in _guards if g not in guards]
        taken: list[Guard] = []
        for guard in guards:
            if not guard.acquire_soon():
                break
            taken.append(guard)
        else:
            _registering.acquire()
            if set(_guards) <= set(guards):
                _held.extend(taken)
                return
            _registering.release()  # a bandit was made meanwhile
        for held in taken:
            held.lock.release()
        guards.sort(key=lambda each: each is not guard)


def _after_fork() -> None:
    while _held:
        _held.pop().lock.release()
    _registering.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
