"""The detector of a live bandit: it takes rewards in batches and returns alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy

import msgspec
import numpy as np

from robandit.drift.alarm import Alarm
from robandit.drift.detector import WIDTH, is_valid, new_state, restarted, watch_all
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.shared import Shared
from robandit.kernel.types import Floats
from robandit.validation import LARGEST_COUNT, MOST_ITEMS, array, choice, column, instance, integer, invalid

LAYOUT = 1  # of the columns; a change of `robandit.drift.detector` that moves columns needs another number
KEPT = 100  # newest alarms that a watch keeps


class SavedWatch(msgspec.Struct):
    """The saved form of a `Watch`."""

    layout: int
    salt: int
    rows: list[bytes]
    alarms: list[Alarm]


class Watch:
    """A detector for each of several arms. It depends on the order of all rewards, not on how they are cut into batches.

    The integer ``salt`` selects the random numbers that break ties.

    >>> watch = Watch(arms=1, salt=1)
    >>> before, after = np.random.default_rng(0).normal([[10.0], [13.0]], size=(2, 1_000))
    >>> watch.feed(0, before)
    []
    >>> print(*watch.feed(0, after))
    arm 0 changed around its reward 1,001: median 9.987 -> 13.23 (noticed at reward 1,006)
    """

    __slots__ = ("_compile", "_d", "alarms", "salt", "skipped")

    def __init__(self, arms: int, salt: int) -> None:
        """Start without rewards."""
        arms = integer(arms, "arms", 0, MOST_ITEMS)
        self.salt = integer(salt, "salt", -(2**64), None) % 2**64
        self.skipped = 0
        """How many rewards of each arm came before the first one that it is fed: alarms count them, too."""
        self._d = new_state(arms)
        self._compile = "now"
        self.alarms: list[Alarm] = []
        """The newest alarms of all arms, at most 100, the oldest first."""

    def prepare(self, compile: str) -> None:
        """Compile the detector before it is used (``"now"``), beside the program (``"background"``), or ``"never"``.

        Until it is compiled, it runs interpreted, with the same results. A watch for which this is not called compiles it at once.
        """
        self._compile = choice(compile, "compile", ("background", "now", "never"))
        DETECTOR.prepare(compile)

    def feed(self, arm: int, values: Sequence[float] | Floats) -> list[Alarm]:
        """Take the next rewards of an arm; return the alarms that they raise. Each alarm starts a new segment of the arm."""
        arm = integer(arm, "arm", 0, len(self._d) - 1)
        rewards = array(values, "values")
        if rewards.ndim != 1:
            raise invalid("values", values, "one row of rewards")
        rewards = np.require(rewards, requirements=["C", "A", "W"])  # the types that the detector is compiled for
        entry = DETECTOR.compiled() if self._compile == "now" else DETECTOR.ready()
        salt = np.uint64(self.salt)
        raised: list[Alarm] = []
        end = entry(self._d, arm, rewards, 0, salt)
        if end < 0:
            column(rewards, "values", LARGEST_REWARD)  # raises the error about the first invalid reward
        while end < len(rewards):
            raised.append(Alarm.raised(self._d, arm, self.skipped))
            restarted(self._d, arm)
            end = entry(self._d, arm, rewards, end + 1, salt)
        self.alarms = [*self.alarms, *raised][-KEPT:]
        return raised

    def extended(self) -> Watch:
        """Return a copy with one more arm, which has no rewards."""
        other = copy(self)
        other._d = np.vstack([self._d, new_state(1)])
        return other

    def save(self) -> SavedWatch:
        """Return the watch as plain data. Zeros take no space, so new arms are small."""
        return SavedWatch(LAYOUT, self.salt, [_packed(row) for row in self._d], self.alarms)

    @classmethod
    def load(cls, saved: SavedWatch | None, arms: int, salt: int) -> Watch | None:
        """Return the watch that `save` wrote, or None if it is inconsistent.

        The result is a new watch with this salt if no watch was saved (None, in older files), or one with another layout.
        """
        watch = cls(arms, salt)
        if saved is not None:
            instance(saved, SavedWatch, "saved", "a SavedWatch, or None")
        if saved is None or saved.layout != LAYOUT:
            return watch
        rows = [_unpacked(packed) for packed in saved.rows]
        if len(rows) != arms or not 0 <= saved.salt < 2**64:
            return None
        for i, row in enumerate(rows):
            if row is None:
                return None
            watch._d[i] = row
        if not (is_valid(watch._d) and all(_valid(a, arms) for a in saved.alarms)):
            return None
        watch.salt, watch.alarms = saved.salt, saved.alarms[-KEPT:]
        return watch


DETECTOR = Shared(watch_all, "drift detector", (new_state(1), 0, np.zeros(1), 0, np.uint64(0)))


def _packed(row: Floats) -> bytes:
    """Return a bit for each column, 1 if it is not 0, followed by the columns that are not 0."""
    used = row.view(np.uint64) != 0  # so that -0.0 is kept
    columns: Floats = row[used].astype("<f8")
    return np.packbits(used).tobytes() + columns.tobytes()


def _valid(alarm: Alarm, arms: int) -> bool:
    """Return whether a saved alarm can be one of a bandit with this number of arms."""
    numbers = (number for part in (alarm.before, alarm.after) for number in msgspec.structs.astuple(part))
    counted = 0 <= alarm.changed <= LARGEST_COUNT and 0 <= alarm.noticed <= LARGEST_COUNT
    return type(alarm.arm) is int and 0 <= alarm.arm < arms and counted and all(map(math.isfinite, numbers))


def _unpacked(packed: bytes) -> Floats | None:
    """Return the row that `_packed` wrote, or None if the sizes do not fit."""
    head = (WIDTH + 7) // 8
    bits = np.unpackbits(np.frombuffer(packed[:head], dtype=np.uint8))
    used = bits[:WIDTH].astype(bool)
    if len(packed) < head or bits[WIDTH:].any() or len(packed) != head + 8 * int(used.sum()):
        return None
    row: Floats = np.zeros(WIDTH)
    row[used] = np.frombuffer(packed[head:], dtype="<f8")
    return row
