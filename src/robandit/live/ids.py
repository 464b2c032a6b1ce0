"""Ids of decisions, which are never used twice.

An id is a short string such as ``"k3m9qd2x7wfa-12"``: the random name of a life, and a number. A bandit starts a new life when it
is made, loaded, copied, unpickled or forked, so two processes that continue from the same saved state never issue the same id. (60
random bits: with a million lives, two have the same name with a probability below 1e-6.) A life is not part of the saved state.
What is saved is the number of decisions that the state knows of each life. So a bandit can tell a closed decision from one that was
made after its state was saved. Ids of Robandit 0.1 were integers from 0; they count as the life "".
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import weakref
from typing import Any

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # 32 of them, without i, l, o and u, which are easily misread
_FORM = re.compile(r"([0-9a-z]{1,32})-(0|[1-9][0-9]{0,17})")


class Life:
    """A source of new ids."""

    __slots__ = ("_forks", "_name", "_next")

    def __init__(self) -> None:
        """Begin a life with a new name."""
        self._begin()

    def _begin(self) -> None:
        self._name = "".join(secrets.choice(_LETTERS) for _ in range(12))
        self._next = 0
        self._forks = _forks

    def next_id(self) -> tuple[str, str, int]:
        """Return a new id, its life and its number. In a forked process, this begins another life."""
        if self._forks != _forks:
            self._begin()
        number = self._next
        self._next += 1
        return f"{self._name}-{number}", self._name, number


def life_and_number(decision_id: Any) -> tuple[str, int] | None:
    """Return the life and the number of an id, or None if it does not have the form of an id."""
    if isinstance(decision_id, str):
        match = _FORM.fullmatch(decision_id)
        return (match[1], int(match[2])) if match else None
    if isinstance(decision_id, int) and not isinstance(decision_id, bool) and 0 <= decision_id < 2**63:
        return "", decision_id
    return None


# --- forks -----------------------------------------------------------------------------------------------------------------
# A fork copies the memory of a process, but only the thread that forks. If another thread were learning at that moment, the child
# would have a half-changed state and a lock that nobody releases. So a fork waits until it holds the locks of all bandits.

_forks = 0
_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_registering = threading.RLock()
_held: list[Any] = []


def new_lock() -> Any:
    """Return a reentrant lock that forks respect."""
    lock = threading.RLock()
    with _registering:
        _locks.add(lock)
    return lock


def _before_fork() -> None:
    """Acquire all locks of bandits, then the lock of their list: a thread that holds a bandit's lock may make another bandit."""
    while True:
        with _registering:
            locks = list(_locks)
        for lock in locks:
            lock.acquire()
        _registering.acquire()
        if set(_locks) <= set(locks):
            _held.extend(locks)
            return
        _registering.release()  # a bandit was made meanwhile
        for lock in locks:
            lock.release()


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _registering.release()


def _after_fork_in_child() -> None:
    global _forks
    _forks += 1
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
