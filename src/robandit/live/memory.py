"""The record of a live bandit's rewards, for `Bandit.diagnose` and the warnings about drift and about its policy's assumption.

For each arm, it keeps the numbers of rewards and zeros, a uniform random sample of at most ``SIZE`` rewards, and the detector of
changes (:mod:`robandit.drift`). A call per reward would be too slow: the newest rewards, up to ``CHUNK``, stay in an array until
one call adds all of them to the sample (a fold). The detector takes them in groups of ``WATCHED``. Rewards have the user's sign.

The sample is drawn by Vitter's algorithm R with a hash instead of a generator: the n-th reward of an arm gets the position
hash(n) mod n, if the sample has that position. So the sample does not depend on the times of folds, saves or loads.

When a fold brings the leading arm to ``FIRST``, 2 ``FIRST``, 4 ``FIRST``, ... rewards, the alarm tests its sample
(`robandit.diagnostics.assumption`), or asks whether the rewards are costs (`robandit.diagnostics.costs`) if the policy has no
assumption. The j-th test of an arm has the level ``RISK`` / (arms j (j + 1)). All levels add up to ``RISK``, which bounds the
probability of a false warning (for the laws for which the test is exact; if arms are added later, it is ``RISK`` (1 + 1/2 + ... +
1/arms)).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from robandit.diagnostics.assumption import Nonpositivity, judge
from robandit.diagnostics.costs import sign_question
from robandit.diagnostics.diagnosis import KeptRewards, leading_arm
from robandit.diagnostics.gains import hides_gains
from robandit.diagnostics.profile import Profile
from robandit.drift.alarm import Alarm
from robandit.drift.watch import SavedWatch, Watch
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.random import hashed
from robandit.policies.assumptions import Assumption
from robandit.validation import LARGEST_COUNT

SIZE = 2048
WINDOW = 4096  # rewards whose positions are computed together
CHUNK = 256
WATCHED = 64
SALT = 0  # of the detector's random numbers, which break ties; fixed, so that the same rewards give the same bytes
FIRST = 256
RISK = 1e-3


class SavedMemory(msgspec.Struct):
    """The saved form of a `Memory`."""

    rewards: list[int]
    zeros: list[int]
    samples: list[bytes]
    fresh: list[bytes]
    warned: bool
    watch: SavedWatch | None = None
    residuals: list[bytes] | None = None


SETTLING = CHUNK
"""The number of an arm's first residuals that the detector does not read. The model changes in this time, and the contexts that the
policy gives to the arm: where noise depends on the context, residuals of early and of later ones follow different laws."""


class Memory:
    """The record of a live bandit's rewards, with at most 2,048 numbers and 10 kB for the detector per arm."""

    __slots__ = ("fresh", "rewards", "samples", "warned", "watch", "watched", "zeros")

    def __init__(self, arms: int, *, watching: bool = True, residuals: bool = False) -> None:
        """Start without rewards. Without ``watching``, there is no detector, because the policy has its own.

        With ``residuals``, the detector reads ``watched``, to which the caller adds the residual of each reward: rewards themselves
        change with the contexts.
        """
        self.rewards = [0] * arms
        self.zeros = [0] * arms
        self.samples = [array("d") for _ in range(arms)]
        self.fresh = [array("d") for _ in range(arms)]
        """Rewards not folded in yet. After each `WATCHED` of them, the caller calls `watch_fresh`, and at `CHUNK` also `fold`."""
        self.watched = [array("d") for _ in range(arms)] if residuals else self.fresh
        self.warned = False
        self.watch = Watch(arms, SALT) if watching else None
        self._skip()

    def _skip(self) -> None:
        if self.watch is not None and self.watched is not self.fresh:
            self.watch.skipped = SETTLING

    def add_arm(self) -> None:
        """Add an arm without rewards."""
        self.rewards.append(0)
        self.zeros.append(0)
        self.samples.append(array("d"))
        self.fresh.append(array("d"))
        if self.watched is not self.fresh:
            self.watched.append(array("d"))
        if self.watch is not None:
            self.watch = self.watch.extended()

    def watch_fresh(self, arm: int) -> list[Alarm]:
        """Let the detector take in the arm's newest rewards that it has not seen; return its new alarms."""
        values = self.watched[arm]
        if self.watch is None or not values or self.rewards[arm] < self.watch.skipped:
            return []
        seen = (len(values) - 1) // WATCHED * WATCHED
        return self.watch.feed(arm, np.frombuffer(values[seen:], dtype=np.float64))

    def fold(self, arm: int) -> None:
        """Move the arm's fresh rewards into its sample and counts."""
        values, sample, before = self.fresh[arm], self.samples[arm], self.rewards[arm]
        after = before + len(values)
        if before < SIZE:
            sample.extend(values[: SIZE - before])
        if after > SIZE:
            for window in range(before // WINDOW, (after - 1) // WINDOW + 1):
                numbers, places = _replacements(window)
                for j in range(bisect_right(numbers, before), bisect_right(numbers, after)):
                    sample[places[j]] = values[numbers[j] - before - 1]
        self.rewards[arm] = after
        self.zeros[arm] += values.count(0.0)
        del values[:], self.watched[arm][:]

    def counts(self) -> list[int]:
        """Return the number of rewards of each arm."""
        return [folded + len(fresh) for folded, fresh in zip(self.rewards, self.fresh, strict=True)]

    def settled(self) -> Memory:
        """Return a copy in which all rewards are folded in, and seen by the detector."""
        settled = deepcopy(self)
        for arm, values in enumerate(settled.fresh):
            if len(values) % WATCHED:
                settled.watch_fresh(arm)
            settled.fold(arm)
        return settled

    def kept(
        self, arms: Sequence[Any], states: Sequence[str], received: Sequence[int], most: float
    ) -> list[KeptRewards]:
        """Return the record of each arm, with its name, its state and the number of its rewards. Call it on a `settled` memory."""
        samples = map(np.array, self.samples)
        rows = zip(arms, received, self.rewards, self.zeros, samples, states, strict=True)
        return [KeptRewards(*row)._replace(most=most) for row in rows]

    def alarm(
        self, arm: int, received: Sequence[int], assumption: Assumption, *, minimize: bool
    ) -> tuple[Nonpositivity | None] | None:
        """Return what to warn of after a fold: a contradiction, or (None,) for the question whether the rewards are costs.

        Return None if no test is due, nothing is found, or the bandit has warned.
        """
        times, rest = divmod(self.rewards[arm], FIRST)
        due = rest == 0 and times > 0 and times & (times - 1) == 0  # a power of 2
        if not due or self.warned or arm != leading_arm(received):
            return None
        if assumption.point is None:
            if minimize:
                return None
            seen = (sample + fresh for sample, fresh in zip(self.samples, self.fresh, strict=True))
            self.warned = bool(sign_question(Profile(np.array(values), minimize) for values in seen))
            return (None,) if self.warned else None
        number = times.bit_length()
        level = RISK / (len(self.rewards) * number * (number + 1))
        verdict = judge(np.array(self.samples[arm]), assumption.point, level, minimize)
        self.warned = not verdict
        return None if verdict else (verdict,)

    def hidden_gains(self, leader: int, received: Sequence[int], *, minimize: bool) -> tuple[int] | None:
        """Return an arm that may hide its mean in rare large rewards (`hides_gains`), after a fold of the leading arm, once."""
        if self.warned or leader != leading_arm(received):
            return None
        seen = [np.array(sample + fresh) for sample, fresh in zip(self.samples, self.fresh, strict=True)]
        found = hides_gains([-values if minimize else values for values in seen], leader)
        self.warned = found is not None
        return None if found is None else (found,)

    def save(self) -> SavedMemory:
        """Return the memory as plain data."""
        return SavedMemory(
            rewards=self.rewards,
            zeros=self.zeros,
            samples=[_bytes(sample) for sample in self.samples],
            fresh=[_bytes(values) for values in self.fresh],
            warned=self.warned,
            watch=None if self.watch is None else self.watch.save(),
            residuals=None if self.watched is self.fresh else [_bytes(values) for values in self.watched],
        )

    @classmethod
    def load(cls, saved: SavedMemory | None, arms: int, *, watching: bool) -> Memory | None:
        """Return the memory that `save` wrote (empty for None, from an older file), or None if it is inconsistent."""
        memory = cls(arms, watching=watching, residuals=saved is not None and saved.residuals is not None)
        if saved is None:
            return memory
        if saved.residuals is not None:
            if [len(part) for part in saved.residuals] != [len(part) for part in saved.fresh]:
                return None
            for i, part in enumerate(saved.residuals):
                memory.watched[i].frombytes(part)
        parts: tuple[list[Any], ...] = (saved.rewards, saved.zeros, saved.samples, saved.fresh)
        if any(len(part) != arms for part in parts):
            return None
        for i, (rewards, zeros, sample, fresh) in enumerate(zip(*parts, strict=True)):
            sizes_fit = len(sample) == 8 * min(rewards, SIZE) and len(fresh) % 8 == 0 and len(fresh) < 8 * CHUNK
            if not sizes_fit or not 0 <= zeros <= rewards <= LARGEST_COUNT:
                return None
            kept = [np.frombuffer(part, dtype="<f8") for part in (sample, fresh)]
            if not all((np.abs(values) <= LARGEST_REWARD).all() for values in kept):
                return None
            memory.samples[i], memory.fresh[i] = (array("d", values.tolist()) for values in kept)
        memory.rewards, memory.zeros, memory.warned = saved.rewards, saved.zeros, saved.warned
        if watching:
            memory.watch = Watch.load(saved.watch, arms, SALT)
            if memory.watch is None:
                return None
            memory._skip()
        return memory


def _bytes(values: Sequence[float]) -> bytes:
    return np.asarray(values, dtype="<f8").tobytes()


@lru_cache(maxsize=64)
def _replacements(window: int) -> tuple[list[int], list[int]]:
    """Return the n in (window WINDOW, (window + 1) WINDOW] whose reward enters a full sample, and their positions in it."""
    number = np.arange(window * WINDOW + 1, (window + 1) * WINDOW + 1, dtype=np.uint64)
    place = hashed(number) % number
    kept = (place < SIZE) & (number > SIZE)
    return number[kept].tolist(), place[kept].tolist()
