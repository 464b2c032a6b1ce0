"""What an experiment knows of decisions that edges make: the newest allocations, and which decisions are counted.

An edge names its decisions LIFE-NUMBER, with a random life and numbers from 0. So the ids that are counted are, for each life, runs
of numbers, which take little memory. All of it is limited; what does not fit is forgotten, oldest first. An id that may have been
forgotten is refused: it could be counted twice.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from typing import NamedTuple

import msgspec

from robandit.errors import Conflict, RobanditError, formatted

MOST_ALLOCATIONS = 1_000
MOST_SHARES = 200_000  # of all allocations together
MOST_LIVES = 10_000
FORGOTTEN_AT_ONCE = MOST_LIVES // 10
MOST_RUNS = 200_000  # of all lives together
TOLERANCE = 1e-9  # of a propensity
SHORTEST = 0.1  # seconds for which an allocation is valid
GROWTH = 0.05  # of the time since the first allocation (docs/results/edge.md)
MEASURED = 5.0  # seconds in which decisions are counted


class Allocation(NamedTuple):
    """Probabilities that edges draw arms with."""

    seq: int
    version: str
    shares: dict[str, float]
    """The probability of each arm that is possible."""
    made: float
    valid_for: float
    decisions: int


class Observation(msgspec.Struct, forbid_unknown_fields=True):
    """A decision that an edge made, and its end: its reward, or its expiry."""

    id: str
    arm: str
    propensity: float
    allocation: str
    decided: float
    value: float | None = None
    expired: bool = False
    rewarded: float | None = None


class Observed:
    """What came of observations."""

    def __init__(self) -> None:
        self.learned = self.late = self.expired = self.replayed = 0
        self.refused: list[tuple[int, RobanditError]] = []
        """Positions, and reasons."""
        self.delays: list[float] = []
        """The times from decisions to their rewards, as far as they are known."""

    def add(self, others: Observed) -> None:
        """Add what came of others."""
        self.learned += others.learned
        self.late += others.late
        self.expired += others.expired
        self.replayed += others.replayed
        self.refused += others.refused
        self.delays += others.delays


class Life:
    """The decisions of one edge that are counted."""

    __slots__ = ("after", "limits", "newest", "unknown")

    def __init__(self, newest: int, unknown: int = 0, limits: list[int] | None = None, after: int = 0) -> None:
        self.newest = newest
        """The number of the event of its newest allocation."""
        self.unknown = unknown
        """Of smaller numbers, it is not known whether they are counted."""
        self.after = after
        """Nor of decisions by this allocation, or older ones: the life may have been forgotten before, see `Edges.forgotten`."""
        self.limits = [] if limits is None else limits
        """The first number of each run, and the first one after it, in turns."""

    def has(self, number: int) -> bool:
        """Return whether a decision is counted."""
        return bool(bisect_right(self.limits, number) & 1)

    def add(self, number: int) -> int:
        """Count a decision that is not counted. Return by how many the runs become more."""
        limits = self.limits
        if limits and limits[-1] == number:  # the usual case
            limits[-1] = number + 1
            return 0
        i = bisect_right(limits, number)
        before, after = i > 0 and limits[i - 1] == number, i < len(limits) and limits[i] == number + 1
        if before and after:
            del limits[i - 1 : i + 1]
            return -1
        if before:
            limits[i - 1] = number + 1
        elif after:
            limits[i] = number
        else:
            limits[i:i] = (number, number + 1)
            return 1
        return 0


class SavedEdges(msgspec.Struct, array_like=True):
    """The saved form of `Edges`."""

    allocations: list[Allocation]
    arms: tuple[str, ...]
    lives: dict[str, tuple[int, int, list[int], int]]
    forgotten: int
    began: float = 0.0


class Edges:
    """The allocations and lives of one experiment."""

    def __init__(self) -> None:
        self.allocations: dict[str, Allocation] = {}
        """By version, oldest first."""
        self.arms: tuple[str, ...] = ()
        """The arms of the newest allocation. Empty: it may no longer be given to edges, because the arms have changed."""
        self.lives: dict[str, Life] = {}
        self.forgotten = 0
        """The newest allocation of all lives that were forgotten. A life that is not known must have a newer one."""
        self.began = 0.0
        """The time of the first allocation."""
        self._shares = 0
        self._runs = 0

    def validity(self, asked: float, now: float) -> float:
        """Return for how long an allocation is valid. The first ones know little: 0.1 s, then 5 % of the time since then."""
        return min(asked, max(SHORTEST, GROWTH * (now - self.began) if self.began else 0.0))

    @property
    def newest(self) -> Allocation | None:
        """The newest allocation."""
        return next(reversed(self.allocations.values()), None)

    def allocate(self, made: Allocation, arms: tuple[str, ...]) -> None:
        """Add an allocation, and forget the oldest ones if there are too many."""
        self.allocations[made.version] = made
        self.began = self.began or made.made
        self.arms = arms
        self._shares += len(made.shares)
        while len(self.allocations) > MOST_ALLOCATIONS or self._shares > MOST_SHARES:
            oldest = self.allocations.pop(next(iter(self.allocations)))
            self._shares -= len(oldest.shares)

    def is_known(self, life: str, number: int) -> bool:
        """Return whether a decision is counted."""
        known = self.lives.get(life)
        return known is not None and known.has(number)

    def refusal(self, given: Observation, life: str, number: int) -> RobanditError | None:
        """Return why a decision that is not known cannot be counted, or None."""
        allocation = self.allocations.get(given.allocation)
        if allocation is None:
            rule = "the version of one of the newest allocations since the last reset"
            text = (
                f"allocation = {formatted(given.allocation)} must be {rule}: get a new one, and report decisions sooner"
            )
            return Conflict(text, code="unknown-allocation", parameter="allocation", rule=rule)
        share = allocation.shares.get(given.arm, 0.0)
        if share == 0.0 or abs(share - given.propensity) > TOLERANCE:
            rule = f"the probability of {formatted(given.arm)} in its allocation, {share!r}"
            return Conflict(
                f"propensity = {given.propensity!r} must be {rule}",
                code="propensity",
                parameter="propensity",
                rule=rule,
            )
        if self.may_be_forgotten(life, number, allocation):
            text = (
                f"decision {formatted(given.id)} may have been counted, which is not known any more: do not repeat it"
            )
            return Conflict(text, code="too-old", parameter="id")
        return None

    def may_be_forgotten(self, life: str, number: int, allocation: Allocation) -> bool:
        """Return whether a decision that is not known may have been counted."""
        known = self.lives.get(life)
        if known is None:
            return allocation.seq <= self.forgotten
        return allocation.seq <= known.after or number < known.unknown

    def time_in_flight(self, version: str, decided: float, rewarded: float | None, now: float) -> float:
        """Return the seconds from a decision of an edge to its report, which is now.

        The clock of the edge may be wrong. So if it is known when the reward came, the report is taken to follow within the time of
        an allocation, and no decision is taken to be older than its allocation.
        """
        seconds, allocation = now - decided, self.allocations.get(version)
        if allocation is not None:
            if rewarded is not None:
                waited = max(0.0, rewarded - decided)
                seconds = min(max(seconds, waited), waited + allocation.valid_for)
            seconds = min(seconds, now - allocation.made)
        return max(0.0, seconds)

    def count(self, life: str, number: int, allocation: int) -> None:
        """Count a decision. ``allocation`` is the number of the event of its allocation."""
        known = self.lives.get(life)
        if known is None:
            if len(self.lives) >= MOST_LIVES:
                self._forget_lives()
            known = self.lives[life] = Life(allocation, after=self.forgotten)
        elif allocation > known.newest:
            known.newest = allocation
        self._runs += known.add(number)
        if self._runs > MOST_RUNS:
            longest = max(self.lives.values(), key=lambda each: len(each.limits))
            gone = len(longest.limits) // 4 * 2
            longest.unknown = longest.limits[gone - 1]
            del longest.limits[:gone]
            self._runs -= gone // 2

    def _forget_lives(self) -> None:
        """Forget the lives whose newest allocations are the oldest. Several at once: to find them takes a millisecond."""
        oldest = sorted(self.lives, key=lambda life: self.lives[life].newest)[:FORGOTTEN_AT_ONCE]
        for life in oldest:
            gone = self.lives.pop(life)
            self._runs -= len(gone.limits) // 2
            self.forgotten = max(self.forgotten, gone.newest)

    def save(self) -> SavedEdges | None:
        """Return all of it as plain data; None if there is nothing."""
        if not self.allocations:
            return None
        lives = {life: (known.newest, known.unknown, known.limits, known.after) for life, known in self.lives.items()}
        return SavedEdges(list(self.allocations.values()), self.arms, lives, self.forgotten, self.began)

    @classmethod
    def load(cls, saved: SavedEdges | None) -> Edges:
        """Return what `save` returned."""
        edges = cls()
        if saved is not None:
            edges.allocations = {each.version: each for each in saved.allocations}
            edges.arms, edges.forgotten, edges.began = saved.arms, saved.forgotten, saved.began
            edges.lives = {life: Life(*known) for life, known in saved.lives.items()}
            edges._shares = sum(len(each.shares) for each in saved.allocations)
            edges._runs = sum(len(known.limits) // 2 for known in edges.lives.values())
        return edges


class Meter:
    """Counts the decisions of the last seconds. It is no part of the state: servers may measure different rates."""

    def __init__(self) -> None:
        self._slots: deque[list[float]] = deque(maxlen=int(MEASURED) + 1)
        """A second, the number of decisions, and the sum of the delays with which edges reported theirs."""
        self._began = math.inf

    def add(self, time: float, decisions: int, delays: float = 0.0) -> None:
        """Count decisions."""
        slot = math.floor(time)
        if not self._slots or self._slots[-1][0] != slot:
            self._began = min(self._began, time)
            self._slots.append([slot, 0.0, 0.0])
        last = self._slots[-1]
        last[1] += decisions
        last[2] += delays

    def rates(self, now: float) -> tuple[float, float]:
        """Return the decisions per second, and the number of edges' decisions in flight: by Little's law, rate times mean delay."""
        first = math.floor(now) - MEASURED
        recent = [slot for slot in self._slots if slot[0] >= first]
        seconds = max(1.0, now - max(first, self._began))
        return sum(slot[1] for slot in recent) / seconds, sum(slot[2] for slot in recent) / seconds
