"""Rewards that add up: amounts of open decisions, such as usage and refunds, that are learned as one sum at the end."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from robandit import validation
from robandit.errors import DecisionError, formatted
from robandit.inputs import checked_reward
from robandit.live.open_decisions import DecisionId

LONGEST_PART = 64
MOST_PARTS = 1_000
PART = re.compile(rf"[A-Za-z0-9._:-]{{1,{LONGEST_PART}}}")


class Amounts(dict[DecisionId, dict[str, float]]):
    """The amounts of each open decision, by their names (parts), in the order in which they came."""

    def total(self, id: DecisionId, last: float = 0.0) -> float:
        """Return the sum of the amounts of a decision and the last one, if a policy can learn it. Each sum is rounded once."""
        return checked_reward(math.fsum([*self.get(id, {}).values(), last]))

    def checked_part(self, id: DecisionId, part: Any, value: float) -> str | None:
        """Return the name of a new amount: by default a number. None if the same amount is known.

        Raise `DecisionError` if another amount has this name, or there are too many, and `InvalidReward` if a policy could not
        learn the sum.
        """
        known = self.get(id, {})
        name = (
            next(str(n) for n in range(len(known), -1, -1) if str(n) not in known)
            if part is None
            else checked_part(part)
        )
        if name in known:
            if known[name] == value:
                return None
            message = f"part {name!r} of decision {formatted(id)} is {known[name]!r}, not {value!r}: use another name"
            raise DecisionError(message, parameter="part", value=name, rule="a new name, or the same amount")
        if len(known) >= MOST_PARTS:
            rule = f"one of at most {MOST_PARTS:,}"
            message = f"the decision has {len(known):,} amounts, the most that are possible: add some up"
            raise DecisionError(message, parameter="part", value=name, rule=rule)
        self.total(id, value)
        return name

    def add(self, id: DecisionId, part: str, value: float) -> None:
        """Add an amount that was checked."""
        self.setdefault(id, {})[part] = value

    @classmethod
    def load(cls, saved: Mapping[DecisionId, Mapping[str, float]]) -> Amounts:
        """Return amounts that were saved as they are."""
        return cls({id: dict(parts) for id, parts in saved.items()})


def checked_part(part: Any) -> str:
    """Return the name of an amount, if it is valid."""
    if not isinstance(part, str) or not PART.fullmatch(part):
        raise validation.invalid("part", part, f"1 to {LONGEST_PART} characters of A-Z a-z 0-9 . _ : -")
    return part
