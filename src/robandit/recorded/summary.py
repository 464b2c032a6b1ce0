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
    """The rows without a usable arm, reward or time.

    Attributes
    ----------
    count
        The number of such rows.
    first
        The number and the fault of each of the first few.
    unit
        "line" if the numbers count lines of a file (the header of a CSV file is line 1), or "row" if they count rows from 1.
    arms
        The names of arms without any good row. Such arms are excluded.
    """

    count: int = 0
    first: tuple[tuple[int, str], ...] = ()
    unit: str = "row"
    arms: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Describe the rows on one line."""
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
    """The rewards of one arm.

    Attributes
    ----------
    arm
        The name of the arm.
    n, zeros
        The number of rewards, and the number of zeros.
    mean, least, greatest
        The mean, the minimum and the maximum of all rewards, not only of the sample.
    sample
        All rewards, or a uniform random sample of them without replacement, in the order of the file.
    whole
        True if the sample has all rewards.
    smallest, largest
        The 1,000 smallest rewards in ascending order and the 1,000 largest in descending order, or all if there are fewer.
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

    def __repr__(self) -> str:
        """Return one line."""
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
    """The rewards of all arms.

    Attributes
    ----------
    arms
        The records of the arms, sorted by name.
    rows
        The number of rewards, without bad rows.
    bad
        The rows that were skipped.
    source
        The name of the table in messages.
    negated
        Whether the rewards are the negatives of the recorded values.
    minimize
        Whether the rewards are costs, in their own sign, that are minimised.
    filtered
        The numbers of rows that a condition kept and dropped; None without a condition.
    notes
        Questions about names of arms that look alike, and about negative costs.
    """

    arms: tuple[ArmRecord, ...]
    rows: int
    bad: BadRows
    source: str
    negated: bool
    minimize: bool = False
    filtered: Filtered | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return one line."""
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
        return cls(arms, total, BadRows(), source, negated=False, minimize=sign, notes=tuple(notes))


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
