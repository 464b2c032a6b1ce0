"""Ids of decisions, which are never used twice.

An id is a short string such as ``"k3m9qd2x7wfa-12"``: the random name of a life, and a number. A bandit starts a new life when it
is made, loaded, copied, unpickled or forked, so two processes that continue from the same saved state never issue the same id. (60
random bits: with a million lives, two have the same name with a probability below 1e-6.) The saved state has the number of
decisions that it knows of each life. So a bandit can tell a closed decision from one that was made after its state was saved. Ids
of Robandit 0.1 were integers from 0; they count as the life "".
"""

from __future__ import annotations

import os
import re
import secrets
from typing import Any

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # 32 of them, without i, l, o and u, which are easily misread
LIFE = "[0-9a-z]{1,32}"
_FORM = re.compile(f"{LIFE}-(?:0|[1-9][0-9]{{0,17}})")


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

    def may_issue(self, decision_id: str) -> bool:
        """Return whether `next_id` of this life may return this id."""
        return decision_id.startswith(f"{self._name}-")

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
        life, _, number = decision_id.partition("-")
        return (life, int(number)) if _FORM.fullmatch(decision_id) else None
    if isinstance(decision_id, int) and not isinstance(decision_id, bool) and 0 <= decision_id < 2**63:
        return "", decision_id
    return None


_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)
