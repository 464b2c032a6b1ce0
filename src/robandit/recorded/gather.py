"""What is kept of rewards that go by in batches. Nothing here depends on where one batch ends and the next begins."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robandit.kernel.types import Floats, Ints

__all__ = ["Codes", "Lowest", "Sums"]

Codes: TypeAlias = NDArray[np.uint16]
"""The arms of rows, as numbers in the order in which the arms were first seen. Two bytes: NumPy sorts those by radix."""

ROOM = 1 << 18  # entries that may be held before the first look at which of them are to stay


class Lowest:
    """For every arm the entries with the lowest keys, in the order in which they came.

    With random keys this is a uniform random sample without replacement; with the rewards as keys, the smallest rewards.

    Parameters
    ----------
    most
        So many entries per arm.
    total
        And at most so many of all arms together: many arms get fewer each.
    """

    def __init__(self, most: int, total: int | None = None) -> None:
        """Hold nothing yet."""
        self.most = most
        self.total = total
        self._parts: list[tuple[Codes, NDArray[Any], Floats]] = []
        self._held = 0
        self._room = ROOM
        self._bounds: NDArray[Any] = np.zeros(0)  # per arm: no key from here on can stay

    def share(self, arms: int) -> int:
        """So many entries of one arm stay, if there are so many arms."""
        return self.most if self.total is None else max(1, min(self.most, self.total // max(arms, 1)))

    def add(self, codes: Codes, keys: NDArray[Any], values: Floats, arms: int) -> None:
        """Take in one batch; there are `arms` arms so far."""
        if self._bounds.size < arms:
            top = np.inf if keys.dtype.kind == "f" else np.iinfo(keys.dtype).max
            grown = np.full(arms, top, dtype=keys.dtype)
            grown[: self._bounds.size] = self._bounds
            self._bounds = grown
        stay = np.flatnonzero(keys < self._bounds[codes])
        if stay.size:
            self._parts.append((codes[stay], keys[stay], values[stay]))
            self._held += stay.size
        if self._held > self._room:
            self._shrink(arms)
            self._room = max(ROOM, self._held + self._held // 2)

    def take(self, arms: int) -> list[Floats]:
        """The values of every arm. Nothing is held afterwards."""
        if not self._parts:
            return [np.zeros(0) for _ in range(arms)]
        self._shrink(arms)
        ((codes, _, values),) = self._parts
        self._parts = []
        order, ends = _by_arm(codes, arms)
        return np.split(values[order], ends[:-1])

    def _shrink(self, arms: int) -> None:
        """Let go of all entries that are not among the lowest of their arm."""
        codes = np.concatenate([part[0] for part in self._parts])
        keys = np.concatenate([part[1] for part in self._parts])
        values = np.concatenate([part[2] for part in self._parts])
        self._parts = [(codes, keys, values)]
        most = self.share(arms)
        order, ends = _by_arm(codes, arms)
        lengths = np.diff(ends, prepend=0)
        gone = []
        for arm in np.flatnonzero(lengths > most).tolist():
            mine = order[ends[arm] - lengths[arm] : ends[arm]]
            own = keys[mine]
            bound = np.partition(own, most - 1)[most - 1]
            equal = np.flatnonzero(own == bound)
            spare = most - np.count_nonzero(own < bound)  # of those at the bound, the first stay
            gone += [mine[own > bound], mine[equal[spare:]]]
            self._bounds[arm] = bound
        if gone:
            stay = np.ones(codes.size, dtype=bool)
            stay[np.concatenate(gone)] = False
            self._parts = [(codes[stay], keys[stay], values[stay])]
        self._held = self._parts[0][0].size


class Sums:
    """Per arm the number of rewards, of zeros among them, and their sum, as good as exact."""

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
        # What is left is 2**-35 as large, and rounding its sum does not matter.
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
        """The mean of every arm that has rewards."""
        return [math.fsum(parts) / n for parts, n in zip(self._parts, self.n.tolist(), strict=True)]


def _grown(counts: Ints, size: int) -> Ints:
    return np.pad(counts, (0, size - counts.size))


def _by_arm(codes: Codes, arms: int) -> tuple[Ints, Ints]:
    """The positions of every arm's entries in their order, one arm after the other, and where each arm's end."""
    return np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=arms))
