"""Decisions and rewards over time, counted from the log.

The store counts the log when somebody looks, and from then on only its new events. So a decision costs nothing more, and all
servers of a store show the same. Of a column with very many events, only a sample is counted, so that the first look at a long
log takes less than a second. (It takes longer with large contexts: SQLite needs 10 us for an event with 2 KB of JSON.)
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from robandit.decisions.events import Observations, payload_of
from robandit.decisions.experiment import OBSERVED, LiveExperiment
from robandit.storage import Event, Reader

COLUMNS = 60
FEWEST_COLUMNS = 12  # of an experiment that has just begun
MOST_COUNTED = 5_000  # events of one column; shares are then known to about 1.5 percentage points
PIECES = 50  # of a column with more events
WINDOWS: dict[str, tuple[str, float | None]] = {
    "5m": ("5 minutes", 300.0),
    "1h": ("1 hour", 3_600.0),
    "1d": ("24 hours", 86_400.0),
    "30d": ("30 days", 30 * 86_400.0),
    "all": ("all time", None),
}
"""The windows of time that a person can choose: their names, and their lengths in seconds."""


def default_window(age: float) -> str:
    """Return the window for an experiment of this age: all of it in the first day, later the last day."""
    return "all" if age <= 86_400.0 else "1d"


def _observed(event: Event) -> Counter[tuple[str, str]]:
    """Return how many decisions and learned rewards of each arm edges have sent in an event."""
    found: Counter[tuple[str, str]] = Counter()
    payload = payload_of(event)
    assert isinstance(payload, Observations)
    for _, (_, arm, _), _, value, is_late in payload.rows():
        found["decided", arm] += 1
        found["rewarded", arm] += value is not None and not is_late
    return found


class Column(NamedTuple):
    """What happened in a part of the window."""

    start: float
    decisions: dict[str, int]
    """The number of decisions for each arm."""
    rewards: int
    """The number of rewards that were learned."""


class Timeline:
    """The columns of one experiment and window. Not thread-safe: one call at a time."""

    def __init__(self, experiment: LiveExperiment, span: float | None) -> None:
        """Start without columns. ``span`` is the length of the window; None stands for all time, with columns that widen."""
        self.width = 1.0 if span is None else span / COLUMNS
        self._experiment = experiment
        self._span = span
        self._seq: int | None = None
        """The number of the last event that is counted; None before the first one."""
        self._slots: dict[int, Counter[tuple[str, str]]] = {}
        """Events by kind and arm. A slot is a time divided by the width, rounded down."""
        self._sampled: set[int] = set()
        """Slots with so many events that their numbers are estimates."""

    def catch_up(self, reader: Reader, last: int, now: float) -> None:
        """Count the events up to event ``last``."""
        number, newest = self._experiment.number, self.slot(now)
        if self._span is None:
            while newest - self.slot(self._experiment.created) >= COLUMNS:
                self._widen()
                newest = self.slot(now)
        oldest = newest - COLUMNS + 1
        first = reader.first_since(number, oldest * self.width, last)
        seq = max(first - 1, self._seq or 0)
        while seq < last:
            (event,) = reader.events(number, seq, 1) or (None,)
            if event is None:  # the experiment was removed meanwhile
                return
            slot = self.slot(event.time)
            end = reader.first_since(number, (slot + 1) * self.width, last) - 1
            self._count(reader, slot, seq, end)
            seq = end
        self._seq = last
        self._slots = {slot: counts for slot, counts in self._slots.items() if slot >= oldest}
        self._sampled = {slot for slot in self._sampled if slot >= oldest}

    def _count(self, reader: Reader, slot: int, after: int, end: int) -> None:
        """Count the events of a slot. If they are many, count some pieces of equal size and distance, and scale the numbers up."""
        pieces, scale = [(after, end)], 1.0
        if end - after > MOST_COUNTED:
            self._sampled.add(slot)
            size, step = MOST_COUNTED // PIECES, (end - after) / PIECES
            starts = (after + int(piece * step) for piece in range(PIECES))
            pieces, scale = [(start, start + size) for start in starts], (end - after) / (size * PIECES)
        found: Counter[tuple[str, str]] = Counter()
        for start, stop in pieces:
            for kind, arm, count in reader.tallies(self._experiment.number, start, stop):
                if arm is not None:
                    found[kind, arm] += count
                elif kind == OBSERVED:
                    for event in reader.latest(self._experiment.number, kind, stop, count):
                        found.update(_observed(event))
        self._slots.setdefault(slot, Counter()).update({key: round(scale * count) for key, count in found.items()})

    @property
    def sampled(self) -> bool:
        """Whether some numbers are estimates."""
        return bool(self._sampled)

    def columns(self, now: float) -> list[Column]:
        """Return all columns of the window, the oldest first. The last one is not complete yet."""
        newest = self.slot(now)
        oldest = newest - COLUMNS + 1
        if self._span is None:
            oldest = min(self.slot(self._experiment.created), newest - FEWEST_COLUMNS + 1)
        return [self._column(slot) for slot in range(oldest, newest + 1)]

    def rate(self, kind: str, now: float, seconds: float) -> float:
        """Return the events of a kind per second in about the last ``seconds``, or since the experiment began."""
        oldest = max(self.slot(now - seconds) + 1, self.slot(self._experiment.created))
        slots = (self._slots.get(slot, Counter()) for slot in range(oldest, self.slot(now) + 1))
        count = sum(number for slot in slots for (each, _), number in slot.items() if each == kind)
        return count / max(1.0, now - max(oldest * self.width, self._experiment.created))

    def _column(self, slot: int) -> Column:
        counts = self._slots.get(slot, Counter())
        decisions = {arm: number for (kind, arm), number in counts.items() if kind == "decided"}
        rewards = sum(number for (kind, _), number in counts.items() if kind == "rewarded")
        return Column(slot * self.width, decisions, rewards)

    def slot(self, time: float) -> int:
        """Return the number of the column of a time."""
        return math.floor(time / self.width)

    def _widen(self) -> None:
        """Double the width, which joins two slots at a time."""
        self.width *= 2.0
        joined: dict[int, Counter[tuple[str, str]]] = {}
        for slot, counts in self._slots.items():
            joined.setdefault(slot // 2, Counter()).update(counts)
        self._slots = joined
        self._sampled = {slot // 2 for slot in self._sampled}
