"""A sample of many values, with the mean of all of them and the most extreme ones on both sides.

A sample may miss a rare loss that is most of the mean. So the most extreme values are all kept, and each counts once. The sampled
values between them, the body, represent all other values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robandit.kernel.types import Floats

if TYPE_CHECKING:
    from robandit.recorded.summary import ArmRecord

SEED = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """See the module."""

    sample: Floats  # drawn without replacement, in the order of the values
    n: int  # number of all values; the next three also refer to all values
    mean: float
    smallest: Floats  # in increasing order
    largest: Floats  # in decreasing order

    @cached_property
    def extremes(self) -> Floats:
        """All values beyond the last kept value on each side. (Some values equal to the last may not have been kept.)"""
        low, high = self.smallest[self.smallest < self.smallest[-1]], self.largest[self.largest > self.largest[-1]]
        return np.concatenate([low, high])

    @cached_property
    def body(self) -> Floats:
        """The sample without extremes, or the last kept value on each side if that is empty."""
        between = self.sample[(self.sample >= self.smallest[-1]) & (self.sample <= self.largest[-1])]
        return between if len(between) else np.array([self.smallest[-1], self.largest[-1]])

    @property
    def inside(self) -> int:
        """The number of all values that are not extremes."""
        return self.n - len(self.extremes)

    def farthest(self, count: int) -> Part:
        """Return the same with at most ``count`` extremes on each side."""
        return replace(self, smallest=self.smallest[:count], largest=self.largest[:count])

    def scaled(self, power: int) -> Part:
        """Return the same with all values multiplied by 2^power."""
        sample, smallest, largest = (np.ldexp(each, power) for each in (self.sample, self.smallest, self.largest))
        return replace(self, sample=sample, mean=math.ldexp(self.mean, power), smallest=smallest, largest=largest)


def rewards(record: ArmRecord) -> Floats | Part:
    """Return all rewards of an arm if the record has them, else a `Part` of them.

    >>> import numpy as np
    >>> from robandit.recorded.summary import ArmRecord
    >>> values = np.arange(10.0)
    >>> few = ArmRecord("a", 10, 1, 4.5, 0.0, 9.0, values[:3], False, values[:6], values[::-1][:6])
    >>> sorted(rewards(few)) == values.tolist()
    True
    """
    if record.whole:
        return record.sample
    missing = record.n - len(record.smallest)
    if missing <= len(record.largest):  # the extremes include all rewards, but not their order
        known = np.concatenate([record.smallest, record.largest[: max(missing, 0)]])
        return np.random.default_rng(SEED).permutation(known)
    return Part(sample=record.sample, n=record.n, mean=record.mean, smallest=record.smallest, largest=record.largest)
