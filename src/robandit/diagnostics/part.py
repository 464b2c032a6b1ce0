"""Many values of which a random sample is at hand, with the mean of all and the farthest of all on both sides.

A sample of a hundredth misses a loss that happens once in a million, and such losses may be most of the mean. So what is said of
the mean and of the tails does not come from the sample alone. Values beyond the last of the kept extremes are all known, and stand
for themselves; the sample's values between them, the body, stand for all the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robandit.kernel.types import Floats
from robandit.recorded.summary import ArmRecord

__all__ = ["Part", "at_hand", "rewards"]

SEED = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """See the module."""

    sample: Floats
    """Drawn without replacement, in their order."""
    n: int
    """How many values there are in all."""
    mean: float
    """Of all."""
    smallest: Floats
    """The smallest of all, from the smallest up."""
    largest: Floats
    """The largest of all, from the largest down."""

    @cached_property
    def extremes(self) -> Floats:
        """All values beyond the last of the kept ones on each side. (Of those equal to it some may not have been kept.)"""
        low, high = self.smallest[self.smallest < self.smallest[-1]], self.largest[self.largest > self.largest[-1]]
        return np.concatenate([low, high])

    @cached_property
    def body(self) -> Floats:
        """The values of the sample that are no extremes; if there is none, the last of the kept ones, which are none either."""
        found = self.sample[(self.sample >= self.smallest[-1]) & (self.sample <= self.largest[-1])]
        return found if len(found) else np.array([self.smallest[-1], self.largest[-1]])

    @property
    def inside(self) -> int:
        """How many values are no extremes, in all."""
        return self.n - len(self.extremes)

    def farthest(self, count: int) -> Part:
        """The same with at most so many extremes on each side."""
        return replace(self, smallest=self.smallest[:count], largest=self.largest[:count])

    def scaled(self, power: int) -> Part:
        """All of it, times a power of two."""
        return replace(
            self,
            sample=np.ldexp(self.sample, power),
            mean=float(np.ldexp(self.mean, power)),
            smallest=np.ldexp(self.smallest, power),
            largest=np.ldexp(self.largest, power),
        )


def rewards(record: ArmRecord) -> Floats | Part:
    """The rewards of an arm: all of them where they are on record, else what is.

    >>> import numpy as np
    >>> values = np.arange(10.0)
    >>> few = ArmRecord("a", 10, 1, 4.5, 0.0, 9.0, values[:3], False, values[:6], values[::-1][:6])
    >>> sorted(rewards(few)) == values.tolist()
    True
    """
    if record.whole:
        return record.sample
    missing = record.n - len(record.smallest)
    if missing <= len(record.largest):  # the extremes are all there is; their order is lost
        return np.random.default_rng(SEED).permutation(
            np.concatenate([record.smallest, record.largest[: max(missing, 0)]])
        )
    return Part(sample=record.sample, n=record.n, mean=record.mean, smallest=record.smallest, largest=record.largest)


def at_hand(values: Floats | Part) -> Floats:
    """The values, or the sample of them."""
    return values.sample if isinstance(values, Part) else values
