"""The median of means of a stream: equal blocks, which are merged in pairs when there are too many.

**State.** The state has the means of blocks of s = 2^h consecutive values. Once n >= B there are between B and 2 B of them. When
block 2 B is complete, neighbours are merged and s doubles. The fewer than s values after the last complete block are stored as a
binary counter: at most one block of each size 2^0, 2^1, ..., s/2. So all stored numbers are means of pairwise means, with rounding
errors of order log2 n.

**Merging** brings both states to the larger s, adds the two counters with carries, and concatenates the blocks. No value is lost,
every block still holds exactly s values, and the assignment of values to blocks does not depend on the values.

**Why the bound holds with these blocks.** For delta the theorem needs k blocks of N = floor(n/k) values. Here block i ends at the
multiple of s at or below i N. So it is a union of stored blocks and holds at least N' = s floor(N/s) = s floor(n / (k s)) values.
As n >= k s (there are at least B >= k blocks), floor(y) > y/2 gives N' > n/(2 k). The proof uses only this. Each block mean is
within (12 v)^(1/(1+eps)) N'^(-eps/(1+eps)) of the mean except with probability 1/4. Hence on either side, except with probability
delta/2, this holds for more than half of k >= 8 log(2/delta) independent blocks. Finally 1/N' < 2 k/n <= 16 log(e^(1/8)
2/delta)/n gives the printed width. The blocks need not have equal sizes, but must be independent and have at least N' values.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np

from robandit.errors import InvalidInput
from robandit.estimators.block_means import MANY, lemma, median_of_means_blocks
from robandit.estimators.estimate import Estimate, interval
from robandit.estimators.streaming.accumulator import Accumulator, Saved, checked_delta
from robandit.hints import guided
from robandit.kernel import compiled
from robandit.kernel.types import Floats, Ints
from robandit.validation import probability

FINER = 16  # ratio of B to the largest number of blocks; ends of blocks then move by less than N/16

# Entries of `counts`.
N = 0
LEVEL = 1  # log2 of the size of a block
STORED = 2
COUNTS = 3


@guided
class MedianOfMeans(Accumulator):
    """The median of the means of many blocks: the streaming form of `median_of_means`.

    Use it for any law with a finite moment of order 1 + eps about its mean. It bounds both sides and assumes nothing about
    symmetry or sign. If a narrow interval matters most, use `Catoni`, whose constants are smaller.

    The value equals the one-shot function's, up to rounding, whenever the size s of the stored blocks divides N = floor(n/k).
    That is always so while n < 2 B (then s = 1). Otherwise each block begins and ends up to s - 1 < N/16 values earlier. The
    bounds are always valid (the top of this file has a proof). Shards whose sizes are multiples of the final s merge into exactly
    the blocks of one stream. Other shards merge into blocks of other values, which have the same guarantee.

    Memory: at most 2 B + 64 doubles with B = 16 floor(1 + 8 log(2/delta_min)). By default B is 3632, which takes 57 KiB.

    Parameters
    ----------
    delta_min
        The smallest delta that `estimate` accepts.

    Guarantee
    ---------
    The same as for `median_of_means`. Requires eps and v; without them there is a value but no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from robandit.estimators.streaming import MedianOfMeans
    >>> mean = MedianOfMeans()
    >>> mean.update_many(np.arange(3000.0) % 7.0)
    >>> estimate = mean.estimate(0.05, eps=1.0, v=4.0)
    >>> round(estimate.value, 6), round(estimate.upper - estimate.value, 6)
    (3.0, 0.988106)
    """

    settings = ("delta_min",)

    def __init__(self, *, delta_min: float = 1e-12) -> None:
        """Start without values."""
        self.delta_min = probability(delta_min, "delta_min")
        self._room = 2 * FINER * median_of_means_blocks(MANY, self.delta_min)
        self._one = np.zeros(1)
        self._counts: Ints = np.zeros(COUNTS, dtype=np.int64)
        self._slots: Floats = np.zeros(64)
        self._blocks: Floats = np.zeros(self._room)

    @property
    def n(self) -> int:
        """The number of values taken."""
        return int(self._counts[N])

    def estimate(self, delta: float = 0.05, *, eps: float | None = None, v: float | None = None) -> Estimate:
        """Return the median of means for this delta and, if eps and v are given, its bounds. It has no side effects."""
        delta = checked_delta(self._name, delta, self.delta_min)
        n = self.n
        if n == 0:
            raise InvalidInput("there are no values yet: at least 1 is needed")
        width, assumed = lemma(n, eps, v, delta)
        k = median_of_means_blocks(n, delta)
        value = self._median(k, n // k)
        return interval(value, width, delta=delta if width < math.inf else None, assumed=assumed, n=n)

    def _median(self, k: int, size: int) -> float:
        """Return the median of k blocks that end at the multiples of the stored size at or below ``size``, 2 ``size``, ..."""
        level = int(self._counts[LEVEL])
        blocks = self._blocks[: self._counts[STORED]]
        means = np.empty(k)
        big = float(np.abs(blocks).max()) > 1e290  # a sum of blocks could then overflow
        for i in range(k):
            part = blocks[(i * size) >> level : ((i + 1) * size) >> level]
            means[i] = 2.0**50 * (math.fsum(part * 2.0**-50) / part.size) if big else math.fsum(part) / part.size
        means.sort()
        return _middle(float(means[(k - 1) // 2]), float(means[k // 2]))

    def _take(self, values: Floats) -> None:
        _absorb()(values, self._counts, self._slots, self._blocks)

    def _add(self, other: MedianOfMeans) -> None:
        if other.n == 0:
            return
        level = max(int(self._counts[LEVEL]), int(other._counts[LEVEL]))
        blocks, rest = self._at(level)
        more, other_rest = other._at(level)
        blocks = [*blocks, *more]
        # Add the two counters like binary numbers.
        slots: dict[int, float] = {}
        carried: float | None = None
        for h in range(level):
            means = [x for x in (rest.get(h), other_rest.get(h), carried) if x is not None]
            carried = _middle(means[0], means[1]) if len(means) > 1 else None
            if len(means) % 2:
                slots[h] = means[-1]
        if carried is not None:
            blocks.append(carried)
        while len(blocks) >= self._room:
            blocks = _paired(blocks, slots, level)
            level += 1
        self._counts[N] += other.n
        self._put(level, blocks, slots)

    def _at(self, level: int) -> tuple[list[float], dict[int, float]]:
        """Return the blocks of size 2^level, and the remaining blocks by the log2 of their size."""
        h = int(self._counts[LEVEL])
        blocks = self._blocks[: self._counts[STORED]].tolist()
        slots = {j: float(self._slots[j]) for j in range(h) if (self.n >> j) & 1}
        while h < level:
            blocks = _paired(blocks, slots, h)
            h += 1
        return blocks, slots

    def _put(self, level: int, blocks: list[float], slots: dict[int, float]) -> None:
        self._counts[LEVEL] = level
        self._counts[STORED] = len(blocks)
        self._blocks[: len(blocks)] = blocks
        for h, mean in slots.items():
            self._slots[h] = mean

    def _save(self) -> dict[str, Any]:
        level = int(self._counts[LEVEL])
        blocks, slots = self._at(level)
        return {"n": self.n, "level": level, "blocks": blocks, "rest": [slots[h] for h in sorted(slots)]}

    def _load(self, saved: Saved) -> None:
        n, level = saved.count("n"), saved.count("level", most=62)
        blocks = saved.numbers("blocks", most=self._room - 1)
        rest = saved.numbers("rest", most=level)
        if len(blocks) != n >> level or (level > 0 and len(blocks) < self._room // 2):
            rule = f"floor(n / 2^level) = {n >> level} numbers, at least half of {self._room}"
            raise saved.damaged("blocks", len(blocks), rule)
        sizes = [h for h in range(level) if (n >> h) & 1]
        if len(rest) != len(sizes):
            raise saved.damaged("rest", len(rest), f"{len(sizes)} numbers, one for each block size in the rest of n")
        self._counts[N] = n
        self._put(level, blocks.tolist(), dict(zip(sizes, rest.tolist(), strict=True)))


def _paired(blocks: list[float], slots: dict[int, float], level: int) -> list[float]:
    """Return the means of neighbouring blocks of size 2^level. A last block without a neighbour goes to the slots."""
    if len(blocks) % 2:
        slots[level] = blocks.pop()
    return [_middle(a, b) for a, b in zip(blocks[::2], blocks[1::2], strict=True)]


def _middle(a: float, b: float) -> float:
    """Return (a + b) / 2, rounded once, without overflow."""
    total = a + b
    if abs(total) > 1.7976931348623157e308:
        return 0.5 * a + 0.5 * b
    return 0.5 * total


def absorb(values: Floats, counts: Ints, slots: Floats, blocks: Floats) -> None:
    """Add each value as a block of size 1. Two blocks of equal size become one of twice the size, up to the stored size."""
    n = counts[N]
    level = counts[LEVEL]
    stored = counts[STORED]
    for value in values:
        mean = value
        h = 0
        while h < level and (n >> h) & 1:
            mean = _middle(slots[h], mean)
            h += 1
        n += 1
        if h < level:
            slots[h] = mean
            continue
        blocks[stored] = mean
        stored += 1
        if stored == blocks.shape[0]:
            stored //= 2
            for i in range(stored):
                blocks[i] = _middle(blocks[2 * i], blocks[2 * i + 1])
            level += 1
    counts[N] = n
    counts[LEVEL] = level
    counts[STORED] = stored


_ARGS = (np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1))
_absorb = cache(partial(compiled, absorb, label="the streaming median of means", args=_ARGS))
