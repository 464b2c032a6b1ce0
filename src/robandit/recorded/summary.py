"""What a table of recorded rewards comes to: per arm the counts, the mean, a sample and the extremes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, InvalidReward
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.types import Floats
from robandit.wording import counted

__all__ = ["EXTREMES", "ArmRecord", "BadRows", "Recorded"]

EXTREMES = 1_000
"""So many of an arm's smallest and largest rewards are kept, whatever the sample."""


@dataclass(frozen=True)
class BadRows:
    """The rows that have no reward to learn from, or no arm.

    Attributes
    ----------
    count
        How many there are.
    first
        The first few: the number of the row as a person counts, and what is wrong with it.
    unit
        What the numbers count: "line" of a file (a CSV's header is line 1), or "row" of the data (from 1, no header).
    arms
        Arms that have no good row at all, and are therefore not among the others.
    """

    count: int = 0
    first: tuple[tuple[int, str], ...] = ()
    unit: str = "row"
    arms: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In words, on one line."""
        if not self.count:
            return "no bad rows"
        shown = "; ".join(f"{self.unit} {number:,}: {what}" for number, what in self.first)
        more = self.count - len(self.first)
        if more:
            shown += f"; and {more:,} more"
        if self.arms:
            shown += f"; no good row of {', '.join(map(repr, self.arms[:5]))}" + ", ..." * (len(self.arms) > 5)
        return f"{counted(self.count, 'bad row')}: {shown}"


@dataclass(frozen=True, eq=False)
class ArmRecord:
    """The rewards of one arm.

    Attributes
    ----------
    arm
        Its name.
    n, zeros
        How many rewards there are, and how many of them are exactly zero.
    mean, least, greatest
        Of all rewards, not of the sample.
    sample
        All rewards, or a uniform random sample of them without replacement; in the order of the file.
    whole
        Whether the sample is all of them.
    smallest, largest
        The 1,000 smallest, from the smallest up, and the 1,000 largest, from the largest down (fewer if there are fewer).
    """

    arm: str
    n: int
    zeros: int
    mean: float
    least: float
    greatest: float
    sample: Floats
    whole: bool
    smallest: Floats
    largest: Floats


@dataclass(frozen=True, eq=False)
class Recorded:
    """The rewards of all arms.

    Attributes
    ----------
    arms
        In the order of their names.
    rows
        How many rewards there are in all; the bad rows are not among them.
    bad
        The rows that were left out.
    source
        Where the rewards come from, for people.
    negated
        Whether the rewards are the negatives of what is recorded.
    """

    arms: tuple[ArmRecord, ...]
    rows: int
    bad: BadRows
    source: str
    negated: bool

    @classmethod
    def of(cls, rewards: Mapping[str, ArrayLike], source: str = "memory") -> Recorded:
        """From rewards in memory: arm -> its rewards. All of them are the sample.

        Examples
        --------
        >>> recorded = Recorded.of({"a": [0.0, 3.0], "b": [1.0]})
        >>> [(arm.arm, arm.n, arm.zeros, arm.mean) for arm in recorded.arms]
        [('a', 2, 1, 1.5), ('b', 1, 0, 1.0)]
        """
        if not isinstance(rewards, Mapping) or not rewards:
            given = "an empty mapping" if isinstance(rewards, Mapping) else f"a {type(rewards).__name__}"
            raise InvalidInput(f"rewards is {given}: there are no arms; give a mapping from arms to their rewards")
        arms = tuple(_arm_record(str(arm), _checked(str(arm), rewards[arm])) for arm in sorted(rewards, key=str))
        if len({arm.arm for arm in arms}) < len(arms):
            raise InvalidInput("two arms have the same name once they are text: rename one")
        return cls(arms, sum(arm.n for arm in arms), BadRows(), source, negated=False)


def _checked(arm: str, rewards: ArrayLike) -> Floats:
    """The rewards as floats; a zero has no sign."""
    try:
        given = np.asarray(rewards)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"their type is {given.dtype}")
        values = np.asarray(given, dtype=np.float64) + 0.0
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidReward(f"the rewards of arm {arm!r} are not numbers: {error}") from None
    if values.ndim != 1 or not values.size:
        raise InvalidReward(
            f"the rewards of arm {arm!r} have shape {values.shape}: give one row of at least one number"
        )
    wrong = np.flatnonzero(~(np.abs(values) <= LARGEST_REWARD))
    if wrong.size:
        raise InvalidReward(
            f"arm {arm!r} has the reward {values[wrong[0]]:g} at position {wrong[0]}: rewards are finite numbers within "
            f"+-{LARGEST_REWARD:g}, because they are squared; leave it out or scale all rewards down"
        )
    return values


def _arm_record(arm: str, values: Floats) -> ArmRecord:
    ordered = np.sort(values)
    return ArmRecord(
        arm=arm,
        n=values.size,
        zeros=int(np.count_nonzero(values == 0.0)),
        mean=math.fsum(values.tolist()) / values.size,
        least=float(ordered[0]),
        greatest=float(ordered[-1]),
        sample=values,
        whole=True,
        smallest=ordered[:EXTREMES].copy(),
        largest=ordered[-EXTREMES:][::-1].copy(),
    )
