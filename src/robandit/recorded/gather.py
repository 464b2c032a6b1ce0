"""Accumulators of rewards that are read in batches. The results do not depend on the batches."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robandit.kernel.types import Floats, Ints

Codes: TypeAlias = NDArray[np.uint16]
"""The number of the arm of each row, in order of first appearance. NumPy sorts two-byte integers by radix sort."""

ROOM = 1 << 16  # the limit on held entries, or 1.5 times the entries to keep if that is more


class Lowest:
    """An accumulator of the entries with the lowest keys of each arm, in order of arrival. The keys may be rewards."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._parts: list[tuple[Codes, NDArray[Any], Floats]] = []
        self._held = 0
        self._bounds: NDArray[Any] = np.zeros(0)  # per arm; entries with greater keys are dropped

    def share(self, arms: int) -> int:
        """Return the number of entries kept per arm."""
        return self.most

    def add(self, codes: Codes, keys: NDArray[Any], values: Floats, arms: int) -> None:
        """Add one batch; `arms` is the number of arms so far."""
        self._bounds = np.concatenate([self._bounds, np.full(arms - self._bounds.size, np.inf)])
        stay = np.flatnonzero(keys < self._bounds[codes])
        self._store(codes[stay], keys[stay], values[stay], arms)

    def take(self, arms: int) -> list[Floats]:
        """Return the values of each arm, and clear the accumulator."""
        if not self._parts:
            return [np.zeros(0) for _ in range(arms)]
        codes, keys, values = self._joined()
        self._parts = []
        return [values[kept] for kept in self._lowest(codes, keys, arms)]

    def _store(self, codes: Codes, keys: NDArray[Any], values: Floats, arms: int) -> None:
        if codes.size:
            self._parts.append((codes, keys, values))
            self._held += codes.size
        if self._held > max(ROOM, self.share(arms) * arms * 3 // 2):
            self._make_room(arms)

    def _make_room(self, arms: int) -> None:
        """Drop the entries that are not among the lowest of their arm."""
        codes, keys, values = self._joined()
        stay = np.sort(np.concatenate(self._lowest(codes, keys, arms)))
        self._parts = [(codes[stay], keys[stay], values[stay])]
        self._held = stay.size

    def _joined(self) -> tuple[Codes, NDArray[Any], Floats]:
        codes, keys, values = zip(*self._parts, strict=True)
        return np.concatenate(codes), np.concatenate(keys), np.concatenate(values)

    def _lowest(self, codes: Codes, keys: NDArray[Any], arms: int) -> list[Ints]:
        """Return the positions of the lowest entries of each arm, in order, and lower its bound to the greatest of them."""
        most = self.share(arms)
        order = np.argsort(codes, kind="stable")
        positions = np.split(order, np.cumsum(np.bincount(codes, minlength=arms))[:-1])
        for arm, entries in enumerate(positions):
            if entries.size > most:
                own = keys[entries]
                bound = np.partition(own, most - 1)[most - 1]
                stay = own < bound
                stay[np.flatnonzero(own == bound)[: most - np.count_nonzero(stay)]] = True  # the first of equal keys
                positions[arm] = entries[stay]
                self._bounds[arm] = bound
        return positions


class Sample(Lowest):
    """A uniform random sample without replacement. The keys are uniform random integers of 64 bits.

    The `most` lowest of n keys lie below the fraction (most + 8 sqrt(most)) / n of all integers, except with the probability of a
    deviation of 8 standard deviations. Greater keys are dropped at once.
    """

    def __init__(self, most: int, total: int) -> None:
        """Start empty; at most ``most`` entries are kept per arm, and ``total`` over all arms."""
        super().__init__(most)
        self.total = total
        self._n: Ints = np.zeros(0, dtype=np.int64)

    def share(self, arms: int) -> int:
        """Return the number of entries kept per arm."""
        return max(1, min(self.most, self.total // max(arms, 1)))

    def add(self, codes: Codes, keys: NDArray[Any], values: Floats, arms: int) -> None:
        """Add one batch; `arms` is the number of arms so far."""
        self._n = grown(self._n, arms) + np.bincount(codes, minlength=arms)
        most = self.share(arms)
        part = (most + 8.0 * math.sqrt(most) + 64.0) / np.maximum(self._n, 1)
        beyond = np.where(part < 1.0, part, 0.0) * 2.0**64
        self._bounds = np.where(part < 1.0, beyond.astype(np.uint64), np.uint64(2**64 - 1))
        if (part >= 1.0).all():
            self._store(codes, keys, values, arms)
        else:
            stay = np.flatnonzero(keys <= self._bounds[codes])
            self._store(codes[stay], keys[stay], values[stay], arms)

    def _make_room(self, arms: int) -> None:
        """Drop the entries above the current bounds, which never rise."""
        for i, (codes, keys, values) in enumerate(self._parts):
            stay = keys <= self._bounds[codes]
            self._parts[i] = (codes[stay], keys[stay], values[stay])
        self._held = sum(codes.size for codes, _, _ in self._parts)


class Sums:
    """The number of rewards, the number of zeros and the sum of rewards, per arm.

    The sum is exact to the last digits unless rewards in a batch differ by more than a factor of 2**35. The smaller rewards are
    then added with the rounding of a plain sum.
    """

    def __init__(self) -> None:
        self.n: Ints = np.zeros(0, dtype=np.int64)
        self.zeros: Ints = np.zeros(0, dtype=np.int64)
        self._parts: list[list[float]] = []

    def add(self, codes: Codes, rewards: Floats, arms: int) -> None:
        """Add one batch; `arms` is the number of arms so far."""
        self.n = grown(self.n, arms) + np.bincount(codes, minlength=arms)
        self.zeros = grown(self.zeros, arms) + np.bincount(codes[rewards == 0.0], minlength=arms)
        self._parts += [[] for _ in range(arms - len(self._parts))]
        top = float(np.abs(rewards).max(initial=0.0))
        if top == 0.0:
            return
        # Heads are rewards rounded to a multiple of a power of two. It is so large that the sum of heads needs no rounding.
        # The rest is at most 2**-35 of the largest reward, so the rounding of its sum hardly matters.
        grid = math.ldexp(1.0, math.frexp(top)[1] + int(rewards.size).bit_length())
        heads = (rewards + grid) - grid
        head_sums = np.bincount(codes, weights=heads, minlength=arms)
        rest_sums = np.bincount(codes, weights=rewards - heads, minlength=arms)
        for arm in np.flatnonzero((head_sums != 0.0) | (rest_sums != 0.0)).tolist():
            parts = self._parts[arm]
            parts += [head_sums[arm], rest_sums[arm]]
            if len(parts) > 64:
                total = math.fsum(parts)
                self._parts[arm] = [total, math.fsum([*parts, -total])]

    def means(self) -> list[float]:
        """Return the mean of each arm; 0 for an arm without rewards."""
        return [math.fsum(parts) / max(n, 1) for parts, n in zip(self._parts, self.n.tolist(), strict=True)]


def grown(counts: Ints, size: int) -> Ints:
    """Pad counts with zeros for new arms."""
    return np.pad(counts, (0, size - counts.size))
