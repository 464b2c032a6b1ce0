"""The decisions of a live bandit: which are open, and which ids it knows to be closed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from robandit import validation
from robandit.errors import DecisionError, formatted
from robandit.live.arms import Arm
from robandit.live.ids import Life, life_and_number
from robandit.live.open_decisions import DecisionId, OpenDecision, OpenDecisions
from robandit.policies.base import Policy


class Decision(NamedTuple):
    """A pull whose reward comes later."""

    id: DecisionId
    """A short string that no other decision has, of this or of any other bandit. (An integer in files of Robandit 0.1.)"""
    arm: Arm
    propensity: float | None
    """The probability with which the arm was chosen. None: the choice was deterministic. NaN: random, with unknown probability."""
    time: float
    """When the decision was made, in seconds since 1970."""


def many_expired(expired: int, ended: int) -> bool:
    """Return whether so many decisions expired, of those that ended, that a person should know: more than 20 % of at least 50."""
    return ended >= 50 and 5 * expired > ended


class IssuedDecisions:
    """Open decisions, the number of expired ones, and the number of known decisions of each life (`robandit.live.ids`)."""

    def __init__(self, open_decisions: OpenDecisions, issued: dict[str, int], expired: int) -> None:
        """Take over the saved fields, and begin a new life."""
        self.open = open_decisions
        self.issued = issued
        self.expired = expired
        self._life = Life()

    @property
    def ended(self) -> int:
        """The number of decisions that were rewarded or expired."""
        return sum(self.issued.values()) - len(self.open)

    def time_of(self, decision_id: DecisionId | None) -> float:
        """Return when an open decision was made; NaN for none."""
        facts = None if decision_id is None else self.open.facts(decision_id)
        return math.nan if facts is None else facts[2]

    def may_issue(self, decision_id: str) -> bool:
        """Return whether a later decision may get this id."""
        return self._life.may_issue(decision_id)

    def add_new(self, arm: int, mark: float, propensity: float | None, time: float) -> str:
        """Record a new decision and return its id."""
        if type(mark) is not float:
            mark = float(mark)
        decision_id, life, number = self._life.next_id()
        self.open.add_new(decision_id, (arm, mark, propensity, time, life, number))
        self.issued[life] = number + 1
        return decision_id

    def add_known(self, decision_id: DecisionId, decision: OpenDecision, life: str, number: int) -> None:
        """Record a decision that another bandit made. `checked_new` must have returned its life and number."""
        self.open.add(decision_id, *decision)
        self.issued[life] = number + 1

    def checked_new(self, decision_id: Any) -> tuple[str, int]:
        """Return the life and the number of an id. Raise `DecisionError` unless it has the form of one and is not known."""
        life, number = _parsed(decision_id)
        if number < self.issued.get(life, 0):
            raise DecisionError(f"decision {formatted(decision_id)} is known already: each decision is applied once")
        return life, number

    def checked_open(
        self, given: Any, arms: list[Arm], policy: Policy, place: str = ""
    ) -> tuple[int, float, DecisionId]:
        """Return arm, mark and id of a decision, given by itself or its id. Raise `DecisionError` if it is not open here."""
        whole = isinstance(given, Decision)
        decision_id: DecisionId = given.id if whole else given
        if type(decision_id) is not str:
            decision_id = validation.plain(decision_id)
        row = self.open.facts(decision_id) if type(decision_id) in (str, int) else None
        if row is None:
            reason = self._why_not_open(*_parsed(decision_id, place), policy.weighted)
            message = f"{place}decision {formatted(decision_id)} {reason}"
            raise DecisionError(message, parameter="decision", value=decision_id, rule="an open decision")
        arm, mark, time = row
        if whole and not (given.time == time and given.arm == arms[arm]):
            own = Decision(decision_id, arms[arm], self.open[decision_id].propensity, time)
            raise DecisionError(f"{place}{formatted(given)} is not a decision of this bandit: {formatted(own)} is")
        return arm, mark, decision_id

    def _why_not_open(self, life: str, number: int, weighted: bool) -> str:
        if number < self.issued.get(life, 0):
            return "is closed: it was already rewarded or expired"
        cause = "is not known to this bandit: use an id that its decide() returned. A copy, or a process that was not saved, may "
        cause += "have made it"
        if life in self.issued:
            cause = "is unknown here: it was made after this state was saved"
        if weighted:
            return f"{cause}. Its probability is not known here, so its reward cannot be learned"
        return f"{cause}. If you know its arm, learn its reward with update(arm, reward)"


def _parsed(decision_id: Any, place: str = "") -> tuple[str, int]:
    parsed = life_and_number(decision_id)
    if parsed is None:
        rule = "an id that decide() returned"
        message = f"{place}decision {formatted(decision_id)} was never made: use {rule}"
        raise DecisionError(message, parameter="decision", value=decision_id, rule=rule)
    return parsed
