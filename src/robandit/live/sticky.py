"""Sticky units: a unit, such as a user, keeps its arm for a while, and teaches the policy once.

The first decision of a unit is a pull of the policy, and makes an assignment. While the assignment holds, later decisions repeat
its arm. They are not pulls. The first reward of any of these decisions is learned as the reward of that pull; the others are not.

An assignment is in memory while it holds, or while a decision of it is open. At most `MOST_UNITS` hold: one more ends the oldest.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Self

import msgspec
import numpy as np

from robandit import validation
from robandit.live.open_decisions import DecisionId, OpenDecision, OpenDecisions

MOST_UNITS = 100_000
"""Units that keep their arm at the same time, per bandit: about 30 MB of memory."""
LONGEST_UNIT = 200
_ENDED_AT_ONCE = 8  # assignments that a new one may end, since to end 100,000 would take tenths of a second
_UNIT = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{1,{LONGEST_UNIT}}}")


class Assignment(msgspec.Struct, array_like=True, gc=False):
    """The arm of a unit, and what the policy knows of its pull."""

    unit: str
    arm: int
    mark: float
    propensity: float | None
    time: float
    """When the first decision was made."""
    taught: bool = False
    """Whether a reward was learned."""
    open: int = 0
    """The number of its decisions that are open."""


class SavedAssignments(msgspec.Struct, array_like=True):
    """Assignments that hold, oldest first, and those that ended while decisions are open.

    ``places`` has the place of each open decision's assignment in both lists together as a little-endian number of 4 bytes; -1 for
    a decision without a unit.
    """

    sticky_for: float
    extra: int
    holding: list[Assignment]
    ended: list[Assignment]
    places: bytes


class Assignments:
    """The assignments of a bandit. Not thread-safe: callers hold a lock."""

    __slots__ = ("_of_decision", "_of_unit", "extra", "sticky_for")

    def __init__(self, sticky_for: float) -> None:
        """Start without assignments."""
        self.sticky_for = sticky_for
        self.extra = 0
        """The number of decisions that are open or expired, and are not pulls."""
        self._of_unit: OrderedDict[str, Assignment] = OrderedDict()  # a dict takes long to find its oldest entry
        self._of_decision: dict[DecisionId, Assignment] = {}

    def __len__(self) -> int:
        """Return the number of units that are in memory as holding an arm."""
        return len(self._of_unit)

    def of(self, unit: str, now: float) -> Assignment | None:
        """Return the assignment of a unit, if there is one and its time is not over."""
        held = self._of_unit.get(unit)
        return held if held is not None and now - held.time < self.sticky_for else None

    def begin(self, id: DecisionId, unit: str, made: OpenDecision) -> list[Assignment]:
        """Assign a unit to the arm of a new decision. Return the assignments that ended, and whose pulls have no reward.

        What ended is an earlier assignment of the unit, and some of the others whose time is over.
        """
        earlier = self._of_unit.pop(unit, None)
        ended = [] if earlier is None else [earlier]
        while self._of_unit and len(ended) < _ENDED_AT_ONCE:
            oldest = next(iter(self._of_unit.values()))
            if len(self._of_unit) < MOST_UNITS and made.time - oldest.time < self.sticky_for:
                break
            ended.append(self._of_unit.pop(oldest.unit))
        self._of_unit[unit] = self._of_decision[id] = Assignment(unit, *made, open=1)
        return [each for each in ended if not each.taught and not each.open]

    def repeat(self, id: DecisionId, unit: str) -> None:
        """Add a decision that repeats the arm of a unit."""
        held = self._of_decision[id] = self._of_unit[unit]
        held.open += 1
        self.extra += 1

    def teaches(self, id: DecisionId) -> bool:
        """Return whether the reward of an open decision would be learned."""
        held = self._of_decision.get(id)
        return held is None or not held.taught

    def rewarded(self, id: DecisionId) -> None:
        """Close a decision that was rewarded. Its reward was learned if `teaches` was true."""
        held = self._of_decision.pop(id, None)
        if held is not None:
            self.extra -= held.taught
            held.taught = True
            held.open -= 1

    def expired(self, id: DecisionId) -> bool:
        """Close a decision without a reward. Return whether its pull can have no reward any more."""
        held = self._of_decision.pop(id, None)
        if held is None:
            return True
        held.open -= 1
        return not (held.taught or held.open or self._of_unit.get(held.unit) is held)

    # --- saving -----------------------------------------------------------------------------------------------------

    def pack(self, open_decisions: Iterable[DecisionId]) -> SavedAssignments:
        """Return the assignments as data for MessagePack. ``open_decisions`` are the ids of all open decisions, in order."""
        holding = list(self._of_unit.values())
        of_each = [self._of_decision.get(id) for id in open_decisions]
        used = set(map(id, of_each))  # most units have no open decision
        places = {id(each): place for place, each in enumerate(holding) if id(each) in used}
        ended: list[Assignment] = []
        for each in of_each:
            if each is not None and id(each) not in places:
                places[id(each)] = len(holding) + len(ended)
                ended.append(each)
        column = np.array([-1 if each is None else places[id(each)] for each in of_each], dtype="<i4")
        return SavedAssignments(self.sticky_for, self.extra, holding, ended, column.tobytes())

    @classmethod
    def unpack(cls, saved: SavedAssignments, decisions: OpenDecisions, arms: int, *, weighted: bool) -> Self | None:
        """Return the assignments that `pack` saved, or None if they are inconsistent or do not fit the bandit."""
        every = [*saved.holding, *saved.ended]
        if len(saved.places) != 4 * len(decisions) or not 0.0 < saved.sticky_for < math.inf:
            return None
        places = np.frombuffer(saved.places, dtype="<i4")
        if not ((places >= -1) & (places < len(every))).all():
            return None
        counts = np.bincount(places + 1, minlength=len(every) + 1)[1:].tolist()
        found = cls(saved.sticky_for)
        found.extra = saved.extra
        found._of_unit.update((each.unit, each) for each in saved.holding)
        of_each = zip(decisions.items(), places.tolist(), strict=True)
        pairs = [(id, row, every[place]) for (id, row), place in of_each if place >= 0]
        fit = (
            [each.open for each in every] == counts
            and all(each.open for each in saved.ended)
            and len(found) == len(saved.holding)
            and all(_fits(each, arms, weighted) for each in every)
            and all(row.arm == held.arm and row.mark == held.mark for _, row, held in pairs)
            and saved.extra >= 0
        )
        found._of_decision.update((id, held) for id, _, held in pairs)
        return found if fit else None


def _fits(each: Assignment, arms: int, weighted: bool) -> bool:
    if each.propensity != each.propensity:
        each.propensity = math.nan  # always the same bits
    chance = each.propensity is None or each.propensity != each.propensity or 0.0 <= each.propensity <= 1.0
    mark = 0.0 < each.mark <= 1.0 if weighted else math.isfinite(each.mark)
    return chance and mark and 0 <= each.arm < arms and math.isfinite(each.time) and bool(_UNIT.fullmatch(each.unit))


def checked_unit(unit: Any) -> str:
    """Return the name of a unit, if it is valid."""
    rule = f"a string of 1 to {LONGEST_UNIT} characters, without control characters"
    name = validation.text(unit, "unit", rule)
    if not _UNIT.fullmatch(name):
        raise validation.invalid("unit", unit, rule)
    return name
