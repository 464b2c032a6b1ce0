"""The metrics of a bandit: what each arm's were, and which arms broke a guardrail.

A guardrail counts the outcomes of each arm in the order of its decisions, and each only when all earlier ones are resolved
(`robandit.anytime.prefix`). A decision that expired, or whose reward came without the metric, is not counted. Decisions that repeat
the arm of a sticky unit are not counted either: their outcomes resemble each other.

A break is a fact of the state. That the arm is paused is an event of its own, so a log is replayed without deciding anything anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from robandit.anytime.prefix import ResolvedPrefix
from robandit.live.arms import ACTIVE, State
from robandit.live.guardrails import Broken, Guardrail, checked_values
from robandit.live.open_decisions import DecisionId


class SavedOutcomes(msgspec.Struct, array_like=True):
    """The saved form of `Outcomes`."""

    names: tuple[str, ...]
    guardrails: tuple[Guardrail, ...]
    sums: list[list[tuple[int, float]]]
    seen: list[list[tuple[int, float]]]
    broken: dict[int, Broken]
    alarmed: list[int]
    waiting: list[list[tuple[bool, str | int | list[float | None] | None]]]


class Outcomes:
    """The metrics of the arms of one bandit. Not thread-safe: callers hold a lock."""

    def __init__(self, names: tuple[str, ...], guardrails: tuple[Guardrail, ...], arms: int) -> None:
        """Start without outcomes."""
        from robandit.anytime.bernoulli import log_e_value  # SciPy takes a tenth of a second

        self._log_e_value = log_e_value
        self.names = names
        self.guardrails = guardrails
        self.sums = [[(0, 0.0) for _ in names] for _ in range(arms)]
        """The number and the sum of the values of each metric, for each arm."""
        self.seen = [[(0, 0.0) for _ in guardrails] for _ in range(arms)]
        """The number and the sum of the violations that count, for each arm."""
        self.broken: dict[int, Broken] = {}
        """What each arm broke first, since it was last resumed."""
        self.alarmed: set[int] = set()
        """Arms that broke a guardrail while no other arm was active, and for which that was said."""
        self._prefix = ResolvedPrefix(arms, lost=[0.0] * len(guardrails))

    def checked(self, metrics: Mapping[str, Any] | None) -> dict[str, float] | None:
        """Return the metrics of one reward, if they are valid. None if there are none."""
        return checked_values(metrics, self.names, self.guardrails) or None if metrics is not None else None

    def add_arm(self) -> None:
        """Add an arm."""
        self.sums.append([(0, 0.0) for _ in self.names])
        self.seen.append([(0, 0.0) for _ in self.guardrails])
        self._prefix.add_arm()

    def resumed(self, arm: int) -> None:
        """Start anew with an arm that broke a guardrail: only decisions from now on count."""
        if self.broken.pop(arm, None) is not None:
            self.alarmed.discard(arm)
            self.seen[arm] = [(0, 0.0) for _ in self.guardrails]
            self._prefix.restart(arm)

    def decided(self, arm: int, id: DecisionId) -> None:
        """Add a decision."""
        if self.guardrails:
            self._count(arm, self._prefix.decided(arm, id))

    def resolved(self, arm: int, id: DecisionId | None, metrics: Mapping[str, float] | None) -> None:
        """Take the metrics of a decision that ends, or (without an id) of a pull without a decision. None: there are none."""
        known = metrics or {}
        for place, name in enumerate(self.names):
            if name in known:
                count, total = self.sums[arm][place]
                self.sums[arm][place] = count + 1, total + known[name]
        if self.guardrails and (known or id is not None):
            rails = self.guardrails
            outcome = [each.violation(known[each.metric]) if each.metric in known else None for each in rails]
            given = outcome if known else None
            prefix = self._prefix
            self._count(arm, prefix.observed(arm, given) if id is None else prefix.resolved(arm, id, given))

    def _count(self, arm: int, outcomes: Sequence[Sequence[float | None]]) -> None:
        for outcome in outcomes:
            for place, violation in enumerate(outcome):
                if violation is None:
                    continue
                count, total = self.seen[arm][place]
                self.seen[arm][place] = count, total = count + 1, total + violation
                if not violation or arm in self.broken:  # a value of 0 only lowers the evidence
                    continue
                rail = self.guardrails[place]
                log_e = self._log_e_value(total, count, rail.limit)
                if log_e >= math.log(len(self.seen) / rail.alpha):
                    self.broken[arm] = Broken(rail, total / count, count, log_e)

    def due(self, states: Sequence[State]) -> tuple[int, Broken, bool] | None:
        """Return an active arm that broke a guardrail, the reason, and whether it must be paused: not if no other is active.

        An alarm about an arm that goes on is due once.
        """
        for arm, broken in sorted(self.broken.items()):
            if states[arm] == ACTIVE and (arm not in self.alarmed or states.count(ACTIVE) > 1):
                return arm, broken, states.count(ACTIVE) > 1
        return None

    # --- saving -----------------------------------------------------------------------------------------------------

    def save(self) -> SavedOutcomes:
        """Return the state as plain data."""
        broken = dict(sorted(self.broken.items()))
        alarmed, waiting = sorted(self.alarmed), self._prefix.save()
        return SavedOutcomes(self.names, self.guardrails, self.sums, self.seen, broken, alarmed, waiting)

    @classmethod
    def load(cls, saved: SavedOutcomes, arms: int) -> Self | None:
        """Return what `save` wrote, or None if it is inconsistent, or does not fit this number of arms."""
        found = cls(saved.names, saved.guardrails, arms)
        prefix = ResolvedPrefix.load(saved.waiting, lost=[0.0] * len(saved.guardrails))
        outcomes = [item for line in saved.waiting for is_open, item in line if not is_open and item is not None]
        fit = (
            len(saved.waiting) == arms
            and _fit(saved.sums, arms, len(saved.names))
            and _fit(saved.seen, arms, len(saved.guardrails))
            and all(isinstance(each, list) and len(each) == len(saved.guardrails) for each in outcomes)
            and all(0 <= arm < arms for arm in [*saved.broken, *saved.alarmed])
        )
        if prefix is None or not fit:
            return None
        found.sums, found.seen, found._prefix = saved.sums, saved.seen, prefix
        found.broken, found.alarmed = saved.broken, set(saved.alarmed)
        return found


def _fit(rows: list[list[tuple[int, float]]], arms: int, columns: int) -> bool:
    return len(rows) == arms and all(len(row) == columns and all(count >= 0 for count, _ in row) for row in rows)
