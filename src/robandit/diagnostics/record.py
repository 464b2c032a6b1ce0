"""What a live bandit keeps of its rewards, so that it can say later what they were like.

Per arm: how many rewards there were, how many of them were 0, and a uniform random sample of at most ``SIZE``. The
newest up to ``CHUNK`` rewards wait in a plain list and are folded in together, since one call per reward would cost
as much as learning from it.

The sample is Vitter's algorithm R with a hash in place of a generator: the n-th reward of an arm takes the place
hash(n) mod n, if the sample has such a place. It depends on the arm's rewards and their order alone, not on when they
were folded in, saved or loaded; the policy's random numbers are not touched; and the places of many n are computed at
once and shared by all arms, so that a fold costs about 10 us.

The alarm. Each time that a fold brings the leading arm to ``FIRST``, 2 ``FIRST``, 4 ``FIRST``, ... rewards, its
sample is tested (`robandit.diagnostics.assumption`). The j-th test of an arm (from 1) has the level ``RISK`` / (arms
j (j + 1)); the sum over all tests of all arms is ``RISK``. In each of them the number of rewards is fixed in advance,
so that it does not matter that the policy chose when to pull: the probability that a bandit ever warns, although the
assumption is right for every arm, is at most ``RISK`` (for the laws for which the test is exact).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np

from robandit.diagnostics.assumption import Nonpositivity, Point, judge
from robandit.diagnostics.samples import hashed
from robandit.kernel.types import Floats
from robandit.policies.assumptions import CENTRED, NONPOSITIVE, SYMMETRIC

__all__ = ["CHUNK", "POINTS", "Record", "Saved", "leading_arm"]

SIZE = 2048
WINDOW = 4096  # rewards whose places are looked up together
CHUNK = 256
FIRST = 256
RISK = 1e-3
POINTS: dict[str, Point] = {a.text: a.point for a in (NONPOSITIVE, CENTRED, SYMMETRIC) if a.point is not None}
"""The assumptions that rewards can contradict, and where `judge` has to look."""


class Saved(msgspec.Struct):
    """A record in a file."""

    rewards: list[int]
    zeros: list[int]
    samples: list[bytes]
    fresh: list[bytes]
    warned: bool


class Record:
    """The rewards of a live bandit, in bounded memory: at most 2,048 numbers and 256 objects per arm."""

    __slots__ = ("fresh", "rewards", "samples", "warned", "zeros")

    def __init__(self, arms: int) -> None:
        """Nothing has been seen."""
        self.rewards = [0] * arms
        self.zeros = [0] * arms
        self.samples = [array("d") for _ in range(arms)]
        self.fresh: list[list[float]] = [[] for _ in range(arms)]
        """Rewards that are not folded in yet; whoever appends the `CHUNK`-th folds them."""
        self.warned = False

    def fold(self, arm: int) -> None:
        """Move the arm's fresh rewards into its sample and counts."""
        values, held, before = self.fresh[arm], self.samples[arm], self.rewards[arm]
        after = before + len(values)
        if before < SIZE:
            held.extend(values[: SIZE - before])
        if after > SIZE:
            for window in range(before // WINDOW, (after - 1) // WINDOW + 1):
                numbers, places = _replacements(window)
                for j in range(bisect_right(numbers, before), bisect_right(numbers, after)):
                    held[places[j]] = values[numbers[j] - before - 1]
        self.rewards[arm] = after
        self.zeros[arm] += values.count(0.0)
        values.clear()

    def sample(self, arm: int) -> Floats:
        """The arm's sample, as an array that shares its memory with nothing."""
        return np.array(self.samples[arm], dtype=np.float64)

    def settled(self) -> Record:
        """A copy with everything folded in."""
        copy = Record(len(self.rewards))
        copy.rewards, copy.zeros = list(self.rewards), list(self.zeros)
        copy.samples = [array("d", held) for held in self.samples]
        copy.fresh = [list(values) for values in self.fresh]
        copy.warned = self.warned
        for arm, values in enumerate(copy.fresh):
            if values:
                copy.fold(arm)
        return copy

    def alarm(self, arm: int, received: Sequence[int], assumption: str) -> Nonpositivity | None:
        """After a fold: the contradiction to warn of, if it is time to look, and there is one. At most one in a bandit's life."""
        times, rest = divmod(self.rewards[arm], FIRST)
        due = rest == 0 and times > 0 and times & (times - 1) == 0  # a power of 2
        if not due or self.warned or assumption not in POINTS or arm != leading_arm(received):
            return None
        look = times.bit_length()
        found = judge(self.sample(arm), POINTS[assumption], RISK / (len(self.rewards) * look * (look + 1)))
        if found:
            return None
        self.warned = True
        return found

    def save(self) -> Saved:
        """The record as plain data; nothing changes."""
        return Saved(
            rewards=self.rewards,
            zeros=self.zeros,
            samples=[_bytes(held) for held in self.samples],
            fresh=[_bytes(values) for values in self.fresh],
            warned=self.warned,
        )

    @classmethod
    def load(cls, saved: Saved | None, arms: int) -> Record | None:
        """What `save` wrote (None, of an older file: an empty record), or None if it does not fit together."""
        record = cls(arms)
        if saved is None:
            return record
        if any(len(part) != arms for part in (saved.rewards, saved.zeros, saved.samples, saved.fresh)):
            return None
        for i in range(arms):
            sizes = (len(saved.samples[i]), len(saved.fresh[i]))
            if sizes[0] != 8 * min(saved.rewards[i], SIZE) or sizes[1] % 8 or sizes[1] >= 8 * CHUNK:
                return None
            if not 0 <= saved.zeros[i] <= saved.rewards[i]:
                return None
            record.samples[i] = array("d", np.frombuffer(saved.samples[i], dtype="<f8").tolist())
            record.fresh[i] = np.frombuffer(saved.fresh[i], dtype="<f8").tolist()
        record.rewards, record.zeros, record.warned = saved.rewards, saved.zeros, saved.warned
        return record


def leading_arm(received: Sequence[int]) -> int:
    """The arm with the most rewards; the first of several."""
    return max(range(len(received)), key=received.__getitem__)


def _bytes(values: Sequence[float]) -> bytes:
    return np.asarray(values, dtype="<f8").tobytes()


@lru_cache(maxsize=64)
def _replacements(window: int) -> tuple[list[int], list[int]]:
    """Of the rewards with numbers in (window WINDOW, (window + 1) WINDOW]: those that enter a full sample, and where."""
    number = np.arange(window * WINDOW + 1, (window + 1) * WINDOW + 1, dtype=np.uint64)
    place = hashed(number) % number
    kept = (place < SIZE) & (number > SIZE)
    return number[kept].tolist(), place[kept].tolist()
