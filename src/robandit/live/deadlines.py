"""Deadlines: bandits whose rewards are elapsed times, where a failure or a time-out has a cost.

The cost of a decision is its reward if this is at most the deadline, and else the cost of a failure: for a reward above the
deadline, for a failure, however fast it was, and for a decision that is open for longer than the deadline. What open decisions say
while they wait, and the bins of the finished costs, are in `robandit.policies._parts.waiting`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self, TypeAlias

import msgspec
import numpy as np

from robandit import validation
from robandit.errors import AssumptionWarning, InvalidInput, InvalidReward, NotApplicable
from robandit.kernel.build import flat
from robandit.kernel.shared import Shared
from robandit.live.ledger import Decision
from robandit.live.open_decisions import DecisionId, OpenDecisions
from robandit.policies import Restarting
from robandit.policies._parts.waiting import ALL, begin, end, look, new_waits
from robandit.policies.base import Policy
from robandit.policies.wrapping import Wrapping
from robandit.validation import LARGEST_COUNT

LONGEST = 10 * 366 * 86_400.0
KEPT = 10_000  # ids of decisions that timed out, whose late outcomes are ignored
Ended: TypeAlias = Literal["failed", "timed out"]
_EXAMPLE = new_waits(1, 1.0)
BEGIN = Shared(begin, "open decisions", (_EXAMPLE, 0, 0.0))
END = Shared(end, "open decisions", (_EXAMPLE, 0, 0.0, 0.0, 0))
LOOK = Shared(look, "open decisions", (_EXAMPLE, 0.0, 0.0))


class SavedDeadline(msgspec.Struct, array_like=True):
    """The saved form of a `Deadline`. ``costs`` has the bins of each arm that are not empty: places, counts and sums."""

    limit: float
    failure_cost: float
    above: int
    ends: list[tuple[int, int]]
    costs: list[tuple[bytes, bytes, bytes]]
    late: list[str] = []


class Deadline:
    """The deadline of a bandit, and what it knows of open and finished decisions. Not thread-safe: callers hold a lock."""

    def __init__(self, limit: float, failure_cost: float, arms: int) -> None:
        """Start without decisions."""
        self.limit = limit
        self.failure_cost = failure_cost
        self.above = 0
        """The number of rewards above the deadline."""
        self.ends = [[0, 0] for _ in range(arms)]
        """The numbers of failures and time-outs of each arm. A reward above the deadline is a time-out."""
        self.late: dict[DecisionId, None] = {}
        """The newest decisions that timed out, oldest first."""
        self._warned = False
        self.oldest = math.inf
        """A time before which no open decision was made."""
        self._use(new_waits(arms, limit))

    def _use(self, waits: Any) -> None:
        self.waits = waits
        self._args = flat((waits,))

    def prepare(self, compile: str) -> None:
        """Compile what is needed, as `robandit.live.engine.Compile` says."""
        for each in (BEGIN, END, LOOK):
            each.prepare(compile)

    # --- what a decision costs ----------------------------------------------------------------------------------------

    @staticmethod
    def check(value: float, place: str = "") -> float:
        """Return a reward, as `check_time`."""
        return check_time(value, place)

    def cost(self, value: float, ended: Ended | None) -> float:
        """Return what is learned from a reward."""
        return check_time(value) if ended is None and value <= self.limit else self.failure_cost

    # --- open and finished decisions ------------------------------------------------------------------------------------

    def opened(self, arm: int, time: float) -> None:
        """Add an open decision."""
        if not BEGIN.fast()(*self._args, arm, time):
            waits = self.waits
            self._use(waits._replace(times=np.hstack([waits.times, np.zeros_like(waits.times)])))
        if time < self.oldest:
            self.oldest = time

    def closed(self, arm: int, time: float) -> None:
        """Close an open decision from which nothing is learned."""
        END.fast()(*self._args, arm, time, math.nan, 0)

    def learned(self, arm: int, value: float, time: float, ended: Ended | None) -> None:
        """Learn the end of a decision that was made at a time (NaN: it never was open here)."""
        failed = ended is not None or value > self.limit
        if failed:
            self.ends[arm][ended != "failed"] += 1
            self.above += ended is None
        END.fast()(*self._args, arm, time, self.failure_cost if failed else value, int(failed))

    def none_before(self, time: float) -> bool:
        """Return whether no open decision was made before a time. Faster than to look for them."""
        return self.overdue(time + self.limit) is None and self.oldest >= time

    def overdue(self, now: float) -> float | None:
        """Return the time before which decisions were made that are open for longer than the deadline; None if there are none."""
        before = now - self.limit
        if self.oldest < before:  # it may be closed
            opened = self.waits.opened
            self.oldest = min(
                (float(row[0]) for row, n in zip(self.waits.times, opened, strict=True) if n), default=math.inf
            )
        return before if self.oldest < before else None

    def timed_out(self, id: DecisionId) -> None:
        """Remember a decision whose late outcome is to be ignored."""
        self.late[id] = None
        if len(self.late) > KEPT:
            del self.late[next(iter(self.late))]

    def was_late(self, decision: Any) -> bool:
        """Return whether a decision, given by itself or its id, timed out."""
        id = decision.id if isinstance(decision, Decision) else decision
        return isinstance(id, str) and id in self.late

    def look(self, now: float) -> None:
        """Compute what open decisions add to the mean cost of each arm."""
        LOOK.fast()(*self._args, now, self.failure_cost)

    def describe(self, arm: int) -> dict[str, float]:
        """Return the columns of estimates: failures, time-outs, and what open decisions added to the mean cost at the last look."""
        failures, timeouts = self.ends[arm]
        return {"failures": failures, "timeouts": timeouts, "waiting": float(self.waits.shifts[arm])}

    def warning(self) -> list[tuple[type[Warning], str]]:
        """Return a warning, once, if rewards were above the deadline."""
        if self._warned or not self.above:
            return []
        self._warned = True
        fact = f"{self.above:,} of {int(self.waits.counts[:, ALL].sum()):,} rewards are above deadline = {self.limit:g}"
        hint = "if they are not time-outs, check that rewards and deadline are in seconds"
        return [(AssumptionWarning, f"{fact}, and cost failure_cost = {self.failure_cost:g} each: {hint}")]

    # --- arms, saving -----------------------------------------------------------------------------------------------------

    def add_arm(self) -> None:
        """Add an arm without decisions."""
        old, arms = self.waits, len(self.ends)
        new = new_waits(arms + 1, self.limit)._replace(times=np.vstack([old.times, np.zeros_like(old.times[:1])]))
        for name in ("opened", "counts", "sums"):
            getattr(new, name)[:arms] = getattr(old, name)
        new.shifts[-1] = old.shifts[-1]
        self.ends.append([0, 0])
        self._use(new)

    def save(self) -> SavedDeadline:
        """Return the deadline as plain data. Open decisions are saved elsewhere."""
        costs = []
        for counts, sums in zip(self.waits.counts, self.waits.sums, strict=True):
            places = np.flatnonzero(counts)
            columns = places.astype("<i2"), counts[places].astype("<i8"), sums[places].astype("<f8")
            costs.append(tuple(column.tobytes() for column in columns))
        ends = [(failures, timeouts) for failures, timeouts in self.ends]
        late = list(map(str, self.late))
        return SavedDeadline(self.limit, self.failure_cost, self.above, ends, costs, late)  # type: ignore[arg-type]

    @classmethod
    def load(cls, saved: SavedDeadline, decisions: OpenDecisions, arms: int) -> Self | None:
        """Return the deadline that `save` wrote, or None if it is inconsistent."""
        numbers = [saved.above, *(n for pair in saved.ends for n in pair)]
        if not all(0 <= n <= LARGEST_COUNT for n in numbers) or not len(saved.ends) == len(saved.costs) == arms:
            return None
        deadline = cls(saved.limit, saved.failure_cost, arms)
        deadline.above, deadline._warned = saved.above, saved.above > 0
        deadline.ends = [list(pair) for pair in saved.ends]
        deadline.late = dict.fromkeys(saved.late)
        for arm, (places, counts, sums) in enumerate(saved.costs):
            if not len(counts) == len(sums) == 4 * len(places) or len(counts) % 8:
                return None
            at = np.frombuffer(places, dtype="<i2")
            if not (np.diff(at, prepend=-1) > 0).all() or not (at <= ALL).all():
                return None
            n, total = np.frombuffer(counts, dtype="<i8"), np.frombuffer(sums, dtype="<f8")
            sound = (n > 0).all() and (total >= 0.0).all() and np.isfinite(total).all()
            if not sound or (len(at) and (at[-1] != ALL or n[:-1].sum() != n[-1])):
                return None
            deadline.waits.counts[arm, at], deadline.waits.sums[arm, at] = n, total
        for decision_id in decisions:
            arm, _, time = decisions.facts(decision_id) or (0, 0.0, 0.0)
            deadline.opened(arm, time)
        return deadline


def check_time(value: float, place: str = "") -> float:
    """Return a reward. Raise `InvalidReward` if it is no elapsed time."""
    if value < 0.0:
        rule = "at least 0: with a deadline, rewards are elapsed times"
        text = f"{place}reward = {value!r} must be {rule}; omit deadline if rewards are something else"
        raise InvalidReward(text, parameter="reward", value=value, rule=rule)
    return value


def checked_deadline(
    deadline: Any, failure_cost: Any, policy: Policy, *, minimize: bool, alone: bool
) -> tuple[float, float] | None:
    """Return the deadline and the cost of a failure; None without a deadline. ``alone``: units do not keep their arms."""
    if deadline is None:
        if failure_cost is not None:
            rule = "left out: there is no deadline"
            raise validation.invalid("failure_cost", failure_cost, rule, hint="pass deadline, in seconds")
        return None
    limit = validation.within(deadline, "deadline", 0.0, LONGEST, open_low=True, hint="in seconds, or None")
    if not minimize:
        text = f"deadline = {limit:g} needs minimize=True: rewards are elapsed times, of which small ones are good"
        raise InvalidInput(text, parameter="deadline", value=deadline, rule="used with minimize=True")
    if not alone:
        text = f"deadline = {limit:g} and sticky_for exclude each other: a unit's waiting requests are no separate evidence"
        raise InvalidInput(text, parameter="deadline", value=deadline, rule="used without sticky_for")
    inner = policy
    while isinstance(inner, Wrapping) and not isinstance(inner, Restarting):
        inner = inner.of
    if isinstance(inner, Restarting) or getattr(inner.algorithm, "waiting", None) is None:
        hint = "use AdaKLUCB(), UCB1() or another policy with an index, without restarts"
        text = f"deadline: {policy.name} has no index that open decisions could lower; {hint}"
        raise NotApplicable(text, parameter="deadline", value=deadline, rule="used with an index policy")
    if failure_cost is None:
        return limit, limit
    cost = validation.within(failure_cost, "failure_cost", limit, 1e150, hint="a failure costs at least the deadline")
    return limit, cost
