"""What a bandit with a cap remembers, so that it may be asked at any time which arm wins.

Two kinds of evidence are kept apart. The one on means is about capped rewards (`robandit.anytime.capped`). The other one is about
pairs: the k-th reward of one arm against the k-th of another, ties left out, is a coin that is fair if neither arm wins more often
(`robandit.anytime.bernoulli`). Rewards enter in the order of the decisions of their arm (`robandit.anytime.prefix`).

An arm takes 18 kB, and its rewards that wait for an older decision take up to 1.2 MB (10,000 of them).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from robandit.anytime.bernoulli import log_e_value
from robandit.anytime.capped import EDGES
from robandit.anytime.prefix import ResolvedPrefix
from robandit.errors import InvalidReward
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.types import Floats
from robandit.objectives import MEAN, Objective
from robandit.validation import invalid, positive

FIRST = 2048
"""Rewards of an arm that are kept for pairs: its first ones."""
_EDGES = EDGES.tolist()
_LAST = len(_EDGES) - 1


class Counted(NamedTuple):
    """The evidence at one time."""

    cap: float
    weights: Floats
    """How many rewards of each arm count at each of `EDGES`, one row per arm."""
    first: list[Floats]

    def more_often(self, one: int, other: int) -> float:
        """Return the log evidence that in a pair, one arm more often has the smaller reward than the other one."""
        k = min(len(self.first[one]), len(self.first[other]))
        mine, its = self.first[one][:k], self.first[other][:k]
        wins, losses = int((mine < its).sum()), int((mine > its).sum())
        return log_e_value(wins, wins + losses, 0.5)


class SavedEvidence(msgspec.Struct, array_like=True):
    """The saved form of an `Evidence`."""

    cap: float
    weights: list[bytes]
    first: list[bytes]
    waiting: list[list[tuple[bool, Any]]]


class Evidence:
    """The rewards of each arm up to its oldest open decision: counts of capped ones, and the first ones as they are."""

    __slots__ = ("_first", "_order", "_weights", "cap")

    def __init__(self, cap: float, arms: int) -> None:
        """Start without rewards."""
        self.cap = cap
        self._weights = [array("d", bytes(8 * len(_EDGES))) for _ in range(arms)]
        self._first = [array("d") for _ in range(arms)]
        self._order = ResolvedPrefix(arms)

    def add_arm(self) -> None:
        """Add an arm without rewards."""
        self._weights.append(array("d", bytes(8 * len(_EDGES))))
        self._first.append(array("d"))
        self._order.add_arm()

    def check(self, value: float, place: str = "") -> float:
        """Return a reward. Raise `InvalidReward` if it is negative."""
        if value < 0.0:
            hint = "a bandit without cap takes negative rewards"
            rule = f"at least 0, since cap = {self.cap:g} was declared"
            raise invalid(f"{place}reward", value, rule, hint=hint, error=InvalidReward)
        return value

    def decided(self, arm: int, id: Hashable) -> None:
        """Take in a decision, before its reward."""
        self._count(arm, self._order.decided(arm, id))

    def ended(self, arm: int, id: Hashable, value: float | None) -> None:
        """Take in the reward of a decision; None if it will never come."""
        self._count(arm, self._order.resolved(arm, id, value))

    def observed(self, arm: int, value: float) -> None:
        """Take in a pull with its reward."""
        self._count(arm, self._order.observed(arm, value))

    def _count(self, arm: int, values: Sequence[float]) -> None:
        first, weights = self._first[arm], self._weights[arm]
        for value in values:
            if len(first) < FIRST:
                first.append(value)
            y = min(value, self.cap) / self.cap
            upper = min(bisect_right(_EDGES, y), _LAST)
            low, high = _EDGES[upper - 1], _EDGES[upper]
            share = (y - low) / (high - low)
            weights[upper - 1] += 1.0 - share
            weights[upper] += share

    def counted(self) -> Counted:
        """Return a copy of what counts now."""
        return Counted(self.cap, np.array(self._weights), [np.array(first) for first in self._first])

    def save(self) -> SavedEvidence:
        """Return the evidence as plain data."""
        return SavedEvidence(self.cap, _packed(self._weights), _packed(self._first), self._order.save())

    @classmethod
    def load(cls, saved: SavedEvidence, arms: int) -> Evidence | None:
        """Return what `save` wrote, or None if it is inconsistent."""
        order = ResolvedPrefix.load(saved.waiting)
        sizes_fit = len(saved.weights) == len(saved.first) == len(saved.waiting) == arms
        if order is None or not sizes_fit or not 0.0 < saved.cap < math.inf:
            return None
        waiting = (value for rows in saved.waiting for is_open, value in rows if not is_open)
        if not all(value is None or (type(value) is float and 0.0 <= value <= LARGEST_REWARD) for value in waiting):
            return None
        found = cls(saved.cap, arms)
        found._order = order
        for i, parts in enumerate(zip(saved.weights, saved.first, strict=True)):
            if len(parts[0]) != 8 * len(_EDGES) or len(parts[1]) % 8 or len(parts[1]) > 8 * FIRST:
                return None
            weights, first = (np.frombuffer(part, dtype="<f8") for part in parts)
            if not all(((each >= 0.0) & (each <= LARGEST_REWARD)).all() for each in (weights, first)):
                return None
            found._weights[i], found._first[i] = array("d", weights.tolist()), array("d", first.tolist())
        return found


def checked_cap(cap: Any, objective: Objective) -> float | None:
    """Return a cap, if it is valid for a bandit with this objective."""
    if cap is None:
        return None
    if objective != MEAN:
        hint = f"objective is {objective.text!r}"
        raise invalid("cap", cap, "None, because claims are about means", hint=hint)
    return positive(cap, "cap", hint="the size from which on larger rewards count alike, or None")


def _packed(rows: Sequence[Sequence[float]]) -> list[bytes]:
    return [np.asarray(row, dtype="<f8").tobytes() for row in rows]
