"""What is kept of rewards that go by in batches. Nothing here depends on where one batch ends and the next begins."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robandit.kernel.types import Floats, Ints

__all__ = ["Codes", "Lowest", "Sample", "Sums"]

Codes: TypeAlias = NDArray[np.uint16]
"""The arms of rows, as numbers in the order in which the arms were first seen. Two bytes: NumPy sorts those by radix."""

ROOM = 1 << 16  # entries that may be held in any case; beyond, half as many again as are to stay


class Lowest:
    """For every arm the entries with the lowest keys, in the order in which they came.

    With the rewards as keys, these are the smallest rewards.

    Parameters
    ----------
    most
        So many entries per arm.
    """

    def __init__(self, most: int) -> None:
        """Hold nothing yet."""
        self.most = most
        self._parts: list[tuple[Codes, NDArray[Any], Floats]] = []
        self._held = 0
        self._bounds: NDArray[Any] = np.zeros(0)  # per arm: no key beyond can stay

    def share(self, arms: int) -> int:
        """So many entries of one arm stay, if there are so many arms."""
        return self.most

    def add(self, codes: Codes, keys: NDArray[Any], values: Floats, arms: int) -> None:
        """Take in one batch; there are `arms` arms so far."""
        self._bounds = np.concatenate([self._bounds, np.full(arms - self._bounds.size, np.inf)])
        stay = np.flatnonzero(keys < self._bounds[codes])
        self._take_in(codes[stay], keys[stay], values[stay], arms)

    def take(self, arms: int) -> list[Floats]:
        """The values of every arm. Nothing is held afterwards."""
        if not self._parts:
            return [np.zeros(0) for _ in range(arms)]
        codes, keys, values = self._joined()
        self._parts = []
        return [values[mine] for mine in self._staying(codes, keys, arms)]

    def _take_in(self, codes: Codes, keys: NDArray[Any], values: Floats, arms: int) -> None:
        if codes.size:
            self._parts.append((codes, keys, values))
            self._held += codes.size
        if self._held > max(ROOM, self.share(arms) * arms * 3 // 2):
            self._make_room(arms)

    def _make_room(self, arms: int) -> None:
        self._shrink(arms)

    def _shrink(self, arms: int) -> None:
        """Let go of all entries that are not among the lowest of their arm."""
        codes, keys, values = self._joined()
        stay = np.sort(np.concatenate(self._staying(codes, keys, arms)))
        self._parts = [(codes[stay], keys[stay], values[stay])]
        self._held = stay.size

    def _joined(self) -> tuple[Codes, NDArray[Any], Floats]:
        codes, keys, values = zip(*self._parts, strict=True)
        return np.concatenate(codes), np.concatenate(keys), np.concatenate(values)

    def _staying(self, codes: Codes, keys: NDArray[Any], arms: int) -> list[Ints]:
        """For every arm the positions of its lowest entries, in their order; and its bound is lowered to the greatest of them."""
        most = self.share(arms)
        order = np.argsort(codes, kind="stable")
        positions = np.split(order, np.cumsum(np.bincount(codes, minlength=arms))[:-1])
        for arm, mine in enumerate(positions):
            if mine.size > most:
                own = keys[mine]
                bound = np.partition(own, most - 1)[most - 1]
                stay = own < bound
                stay[np.flatnonzero(own == bound)[: most - np.count_nonzero(stay)]] = True  # of equal ones the first
                positions[arm] = mine[stay]
                self._bounds[arm] = bound
        return positions


class Sample(Lowest):
    """The same with random keys, uniform over all integers of 64 bits: a uniform random sample without replacement.

    Of n keys, the `most` lowest are hardly ever beyond (most + 8 sqrt(most)) / n of all integers: 8 standard deviations. Keys
    beyond are not taken in, which spares most of the sorting.

    Parameters
    ----------
    most
        So many entries per arm.
    total
        And at most so many of all arms together: many arms get fewer each.
    """

    def __init__(self, most: int, total: int) -> None:
        """Hold nothing yet."""
        super().__init__(most)
        self.total = total
        self._n: Ints = np.zeros(0, dtype=np.int64)

    def share(self, arms: int) -> int:
        """So many entries of one arm stay, if there are so many arms."""
        return max(1, min(self.most, self.total // max(arms, 1)))

    def add(self, codes: Codes, keys: NDArray[Any], values: Floats, arms: int) -> None:
        """Take in one batch; there are `arms` arms so far."""
        self._n = _grown(self._n, arms) + np.bincount(codes, minlength=arms)
        most = self.share(arms)
        part = (most + 8.0 * math.sqrt(most) + 64.0) / np.maximum(self._n, 1)
        beyond = np.where(part < 1.0, part, 0.0) * 2.0**64
        self._bounds = np.where(part < 1.0, beyond.astype(np.uint64), np.uint64(2**64 - 1))
        if (part >= 1.0).all():
            self._take_in(codes, keys, values, arms)
        else:
            stay = np.flatnonzero(keys <= self._bounds[codes])
            self._take_in(codes[stay], keys[stay], values[stay], arms)

    def _make_room(self, arms: int) -> None:
        """Let go of what lies beyond the bounds of now; they are lower than those of then."""
        kept = [keys <= self._bounds[codes] for codes, keys, _ in self._parts]
        self._parts = [
            (codes[stay], keys[stay], values[stay])
            for (codes, keys, values), stay in zip(self._parts, kept, strict=True)
        ]
        self._held = sum(codes.size for codes, _, _ in self._parts)


class Sums:
    """Per arm the number of rewards, of zeros among them, and their sum.

    The sum is as good as exact unless rewards differ by more than a factor of 2**35 within a batch: those below that are added
    plainly, with the rounding that a plain sum of them has.
    """

    def __init__(self) -> None:
        """Nothing was added yet."""
        self.n: Ints = np.zeros(0, dtype=np.int64)
        self.zeros: Ints = np.zeros(0, dtype=np.int64)
        self._parts: list[list[float]] = []

    def add(self, codes: Codes, rewards: Floats, arms: int) -> None:
        """Take in one batch; there are `arms` arms so far."""
        self.n = _grown(self.n, arms) + np.bincount(codes, minlength=arms)
        self.zeros = _grown(self.zeros, arms) + np.bincount(codes[rewards == 0.0], minlength=arms)
        self._parts += [[] for _ in range(arms - len(self._parts))]
        top = float(np.abs(rewards).max(initial=0.0))
        if top == 0.0:
            return
        # The head of every reward is a multiple of a fixed power of two, so coarse that the heads add up without rounding.
        # What is left is at most 2**-35 of the largest reward, and rounding its sum hardly matters.
        grid = math.ldexp(1.0, math.frexp(top)[1] + int(rewards.size).bit_length())
        heads = (rewards + grid) - grid
        head_sums = np.bincount(codes, weights=heads, minlength=arms)
        rest_sums = np.bincount(codes, weights=rewards - heads, minlength=arms)
        for arm in np.flatnonzero((head_sums != 0.0) | (rest_sums != 0.0)).tolist():
            mine = self._parts[arm]
            mine += [head_sums[arm], rest_sums[arm]]
            if len(mine) > 64:
                whole = math.fsum(mine)
                self._parts[arm] = [whole, math.fsum([*mine, -whole])]

    def means(self) -> list[float]:
        """The mean of every arm; 0 of one that has no rewards."""
        return [math.fsum(parts) / max(n, 1) for parts, n in zip(self._parts, self.n.tolist(), strict=True)]


def _grown(counts: Ints, size: int) -> Ints:
    return np.pad(counts, (0, size - counts.size))
