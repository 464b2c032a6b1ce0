"""The summary of recorded rewards: the counts, the mean, a sample and the extremes of each arm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, InvalidReward, formatted
from robandit.kernel.loops import LARGEST_REWARD, SMALLEST_REWARD, playable
from robandit.kernel.types import Floats
from robandit.recorded.notes import name_questions, negative_costs
from robandit.recorded.where import Filtered
from robandit.validation import check_items, column, flag, invalid, mapping
from robandit.wording import counted, listed

EXTREMES = 1_000
"""The number of smallest and of largest rewards that are kept per arm, in addition to the sample."""


@dataclass(frozen=True)
class BadRows:
    """The rows without a usable arm, reward or time."""

    count: int = 0
    first: tuple[tuple[int, str], ...] = ()
    """The number and the fault of each of the first few."""
    unit: str = "row"
    """"line" if the numbers count lines of a file (the header of a CSV file is line 1), or "row" if they count rows from 1."""
    arms: tuple[str, ...] = ()
    """The arms without any good row, which are excluded."""

    def __str__(self) -> str:
        if not self.count:
            return "no bad rows"
        parts = [f"{self.unit} {number:,}: {fault}" for number, fault in self.first]
        if self.count > len(self.first):
            parts.append(f"and {self.count - len(self.first):,} more")
        if self.arms:
            parts.append(f"no good row for {listed([repr(arm) for arm in self.arms], 5)}")
        return f"{counted(self.count, 'bad row')}: {'; '.join(parts)}"


@dataclass(frozen=True, eq=False)
class ArmRecord:
    """The rewards of one arm."""

    arm: str
    n: int
    zeros: int
    mean: float
    least: float
    greatest: float
    sample: Floats
    """All rewards, or a uniform random sample of them without replacement, in the order of the file."""
    whole: bool
    """Whether the sample has all rewards. The other fields are always about all."""
    smallest: Floats
    """The 1,000 smallest rewards in ascending order, or all if there are fewer."""
    largest: Floats
    """The same of the largest, in descending order."""

    def __repr__(self) -> str:
        return (
            f"<ArmRecord {self.arm!r}: {self.n:,} values from {self.least:g} to {self.greatest:g}, mean {self.mean:g}>"
        )

    @classmethod
    def of(
        cls, arm: str, n: int, zeros: int, mean: float, sample: Floats, smallest: Floats, largest: Floats
    ) -> ArmRecord:
        """Return the record, and compute its other fields."""
        ends = float(smallest[0]), float(largest[0])
        return cls(arm, n, zeros, mean, *ends, sample, sample.size == n, smallest, largest)


@dataclass(frozen=True, eq=False)
class Recorded:
    """The rewards of all arms, sorted by name."""

    arms: tuple[ArmRecord, ...]
    rows: int
    """The number of rewards, without bad rows."""
    bad: BadRows
    """The rows that were skipped."""
    source: str
    """The name of the table in messages."""
    minimize: bool = False
    """Whether the rewards are costs, in their own sign, that are minimised."""
    filtered: Filtered | None = None
    notes: tuple[str, ...] = ()
    """Questions about names of arms that look alike, and about negative costs."""

    def __repr__(self) -> str:
        return f"<Recorded: {self.rows:,} rows of {counted(len(self.arms), 'arm')}, {self.source}>"

    @classmethod
    def of(cls, rewards: Mapping[str, ArrayLike], source: str = "memory", *, minimize: bool = False) -> Recorded:
        """Summarise a mapping from arms to rewards, or to costs that are minimised. The sample has all rewards.

        Examples
        --------
        >>> recorded = Recorded.of({"a": [0.0, 3.0], "b": [1.0]})
        >>> [(arm.arm, arm.n, arm.zeros, arm.mean) for arm in recorded.arms]
        [('a', 2, 1, 1.5), ('b', 1, 0, 1.0)]
        """
        rule = "a mapping from at least one arm to its rewards"
        rewards = mapping(rewards, "rewards", rule)
        if not rewards:
            raise invalid("rewards", rewards, rule)
        arms = tuple(_arm_record(str(arm), rewards[arm]) for arm in sorted(rewards, key=str))
        if len({arm.arm for arm in arms}) < len(arms):
            raise InvalidInput("two arms have the same name after conversion to text: rename one", parameter="rewards")
        sign = flag(minimize, "minimize")
        total = sum(arm.n for arm in arms)
        notes = name_questions({arm.arm: arm.n for arm in arms})
        if sign:
            notes += negative_costs({arm.arm: int(np.count_nonzero(arm.sample < 0.0)) for arm in arms}, total)
        return cls(arms, total, BadRows(), source, minimize=sign, notes=tuple(notes))


def _arm_record(arm: str, rewards: ArrayLike) -> ArmRecord:
    name = f"rewards[{formatted(arm)}]"
    try:
        values = column(rewards, name, LARGEST_REWARD) + 0.0  # no negative zeros
        check_items(values, playable(values), name, f"within the limits: 0 or at least {SMALLEST_REWARD:g} in size")
    except InvalidInput as error:
        hint = "; remove it or scale all rewards, because rewards are squared"
        message = str(error) + (hint if "within" in str(error.rule) else "")
        raise InvalidReward(message, parameter=error.parameter, value=error.value, rule=error.rule) from None
    ordered = np.sort(values)
    smallest, largest = ordered[:EXTREMES].copy(), ordered[-EXTREMES:][::-1].copy()
    zeros, mean = int(np.count_nonzero(values == 0.0)), math.fsum(values.tolist()) / values.size
    return ArmRecord.of(arm, values.size, zeros, mean, values, smallest, largest)
