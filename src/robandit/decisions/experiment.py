"""One experiment: a bandit whose state is a fold of the experiment's log.

`LiveExperiment.apply` takes a stored event. `decide`, `reward` and the others make a new event, apply it in the same way, and pass
it to ``emit``, which sees that it is stored. Recorded arms and marks are applied, never chosen again, since another processor or
version may round differently. So a state can be rebuilt from the log, or from a snapshot and the events after it, with the same
bytes.

Not thread-safe: all calls come from one thread. Nothing here waits.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from robandit import __version__
from robandit.decisions import events
from robandit.decisions.edges import Allocation, Edges, Meter, Observation, Observed, SavedEdges
from robandit.decisions.events import KINDS, Context, Payload, decoded, encode, payload_of
from robandit.decisions.settings import MOST_ARMS, Settings, checked_arm
from robandit.errors import (
    Conflict,
    CorruptFile,
    DecisionError,
    InvalidInput,
    InvalidReward,
    NotFound,
    Overloaded,
    RobanditError,
    formatted,
)
from robandit.inputs import checked_reward
from robandit.live.amounts import PART, checked_part
from robandit.live.bandit import NOT_GIVEN, RULE, Bandit
from robandit.live.deadlines import check_time
from robandit.live.engine import Compile
from robandit.live.events import NO_TIME
from robandit.live.ledger import Decision
from robandit.storage import Event
from robandit.storage.base import Snapshot, StoredExperiment
from robandit.validation import invalid

LONGEST_ID = 200
ID = re.compile(rf"[ -~]{{1,{LONGEST_ID}}}")
STORED_ID = re.compile(events.amount_id(ID.pattern, PART.pattern) + f"|{ID.pattern}")
"""The id of an event about a decision."""
EXPIRED_AT_ONCE = 200  # decisions that one sweep closes: in about 2 ms, or 40 ms before the policy is compiled
SNAPSHOT_FORMAT = 1
RECENT_ENDS = 1_000  # at this number the counts of recent ends are halved, so that old ones soon weigh little
ENDS = ("expired", "rewarded")
OBSERVED = KINDS[events.Observations]
CHEAP = 5  # decisions of an edge that take the time of one event

_ARM_CHANGES: dict[type[Any], Callable[[Bandit, str], None]] = {
    events.ArmAdded: Bandit.add_arm,
    events.ArmPaused: Bandit.pause_arm,
    events.ArmResumed: Bandit.resume_arm,
    events.ArmRetired: Bandit.retire_arm,
}


class MadeEvent(NamedTuple):
    """An event, and whether it was stored before, so that the call that led to it is a repetition."""

    event: Event
    payload: Any
    replayed: bool = False


class _Saved(msgspec.Struct, array_like=True):
    """A snapshot."""

    seq: int
    epoch: int
    paused: bool
    time: float
    created: float
    version: str
    counts: dict[str, int]
    aliases: dict[str, str]
    bandit: bytes
    ends: dict[str, int] | None = None
    """None in snapshots of 0.2."""
    edges: SavedEdges | None = None


class GivenAllocation(NamedTuple):
    """An allocation as it is given to edges, with all its arms, and the window of the experiment."""

    allocation: Allocation
    arms: tuple[str, ...]
    reward_window: float | None


class LiveExperiment:
    """An experiment in memory. `find` looks up a stored event, and `emit` stores a new one."""

    def __init__(
        self,
        stored: StoredExperiment,
        settings: Settings,
        *,
        clock: Callable[[], float],
        find: Callable[[int, str, str], Event | None],
        emit: Callable[[Event], object],
        compile: Compile = "background",
    ) -> None:
        """Start at the beginning of the log."""
        self.number = stored.number
        self.name = stored.name
        self.settings = settings
        self.epoch = 0
        self.seq = 0
        """The number of the last event."""
        self.paused = False
        self.time = 0.0
        """The time of the last event. Times never decrease, even if the clock does."""
        self.created = 0.0
        self.version = ""
        """The version of Robandit that decided last."""
        self.counts: Counter[str] = Counter()
        """The number of events of each kind since the last reset; of decisions that repeat an arm ("repeat"), and of rewards that
        were not learned because of another one of the same assignment ("unlearned"). Decisions of edges count like others."""
        self.ends = dict.fromkeys(ENDS, 0)
        """How many of the recent decisions ended with each of `ENDS`."""
        self.edges = Edges()
        self.meter = Meter()
        self.extra = 0
        """By how many events the time of folding those since the last snapshot is longer than their number says."""
        self._renewed = ("", 0.0)
        """The version of the newest allocation, and when it was found to be still the right one."""
        self.recent: dict[tuple[str, str], MadeEvent] = {}
        """Events that may not be stored yet, by kind and id."""
        self.has_archive = True
        """Whether events may be archived, so that the log may lack the beginning of a decision."""
        self._own_ids: dict[str, str] = {}
        """The ids in the bandit of open decisions with an id of the client."""
        self._public_ids: dict[str, str] = {}
        """The other way round."""
        self._clock = clock
        self._find = find
        self._emit = emit
        self._compile = compile
        try:
            self._policy = settings.made_policy()
        except InvalidInput as error:  # such as a policy of an earlier version
            raise InvalidInput(
                f"experiment {stored.name!r}: {error}", parameter=error.parameter, rule=error.rule
            ) from None
        self.bandit = self._new_bandit(settings.arms, settings.drawn)

    def _new_bandit(self, arms: Sequence[str], seed: int) -> Bandit:
        return Bandit(
            arms,
            self._policy,
            seed,
            minimize=self.settings.minimize,
            max_open=self.settings.max_open,
            sticky_for=self.settings.sticky_for,
            cap=self.settings.cap,
            metrics=self.settings.metrics,
            guardrails=self.settings.guardrails,
            objective=self.settings.objective,
            deadline=self.settings.deadline,
            failure_cost=self.settings.failure_cost,
            features=self.settings.features,  # type: ignore[arg-type]  # as data
            clock=lambda: self.time,
            compile=self._compile,
        )

    def now(self) -> float:
        """Return the time of the next event: that of the clock, unless it went backwards."""
        return max(self._clock(), self.time)

    # --- calls that make events -----------------------------------------------------------------------------------------

    def create(self) -> MadeEvent:
        """Make the first event."""
        return self._record("", events.Created(version=__version__))

    def upgrade(self) -> None:
        """Record that another version of Robandit decides from here on, if one does."""
        if self.version != __version__:
            self._record("", events.Upgraded(version=__version__))

    def decide(
        self,
        id: str | None = None,
        *,
        among: Sequence[str] | None = None,
        arm: str | None = None,
        context: Context = msgspec.UNSET,
        unit: str | None = None,
    ) -> MadeEvent:
        """Choose an arm, or record the arm of a choice that was made elsewhere. A repeated id gives the first decision again.

        A ``unit`` that keeps an arm gets it again. Of the ``context``, the declared features are learned from; all of it is stored.
        """
        names = None if among is None else tuple(among)
        if id is not None:
            checked_id(id)
            earlier = self.recorded(events.Decided, id)
            if earlier is not None:
                return _same_request(earlier, names, arm, context, unit)
            if self.is_open(id) or (self.has_archive and self._has_ended(id)):
                raise Conflict(
                    f"decision {formatted(id)} was made before, and is archived: use a new id for a new decision",
                    parameter="id",
                )
            if self.bandit.may_issue(id):
                raise invalid("id", id, "an id that is not of the form of this server's own", hint="choose another one")
        if unit is not None and self.settings.sticky_for is None:
            rule = f"left out: experiment {self.name!r} has no sticky_for"
            raise invalid("unit", unit, rule, hint="create an experiment with sticky_for")
        if self.paused and arm is None:
            raise Conflict(
                f"experiment {self.name!r} is paused: resume it, or report the arm of a choice made elsewhere",
                code="paused",
            )
        if self.settings.deadline is not None or self.bandit.open_count >= self.settings.max_open:
            self.expire_due()
        declared = self.declared(context)
        before, self.time = self.time, self.now()
        try:
            made = self.bandit.decided(names, arm=NOT_GIVEN if arm is None else arm, unit=unit, context=declared)
        except BaseException as error:
            self.time = before
            if isinstance(error, DecisionError) and error.parameter == "max_open":
                rule = f"{self.settings.max_open:,} decisions of {self.name!r} are open, the most that max_open allows"
                hint = "send their rewards; if rewards get lost, create experiments with a reward_window"
                raise Overloaded(f"{rule}: {hint}", code="too-many-open") from None
            raise
        public = id or str(made.id)
        payload = msgspec.structs.replace(
            made,
            id="",
            time=NO_TIME,
            propensity=_known(made.propensity_or_nan),
            own="" if public == made.id else str(made.id),
            among=names,
            context=context,
        )
        self._opened(public, payload)
        recorded = self._made(public, payload)
        while (scaled := self.bandit.scale_event()) is not None:
            self._record("", scaled)
        return recorded

    def declared(self, context: Context) -> dict[str, Any] | None:
        """Return the part of a context that the policy learns from; None if the experiment has no features."""
        if self.settings.features is None:
            return None
        given = decoded(context)
        if given is None:
            given = {}
        elif not isinstance(given, dict):
            raise invalid("context", given, f"an object with the features {', '.join(self.settings.features)}")
        return {name: given[name] for name in self.settings.features if name in given}

    def explained(self, context: Context) -> dict[str, Any]:
        """Return what would be decided for a context; see `Bandit.explain`."""
        return self.bandit.explain(context=self.declared(context))

    def reward(self, id: str, value: Any, metrics: dict[str, float] | None = None) -> MadeEvent:
        """Learn the reward of a decision, or record it only (`events.Late`). The same reward again changes nothing.

        If amounts were added before, their sum is learned.
        """
        checked = checked_reward(value)
        if self.settings.deadline is not None:
            check_time(checked)
        extra = self.bandit.measured(metrics)
        decision = self._open_decision(id)
        if decision is not None:
            if not self._is_too_late(decision.time):
                facts = extra | {"value": checked, "arm": decision.arm, "decided": decision.time}
                if self.bandit.amounts(decision.id):
                    facts |= {"value": self.bandit.total(decision.id, checked), "amount": checked}
                if not self.bandit.teaches(decision.id):
                    return self._record(id, events.Late(**facts, reason="assignment"))
                return self._record(id, events.Rewarded(**facts, propensity=_known(decision.propensity)))
            self._expire(id, decision)
        for kind in (events.Rewarded, events.Late):
            earlier = self.recorded(kind, id)
            if earlier is not None:
                return _same_reward(earlier, id, checked, extra.get("metrics"))
        return self._record_late(id, id, extra | {"value": checked})

    def fail(self, id: str, metrics: dict[str, float] | None = None) -> MadeEvent:
        """Learn that a decision failed. The same failure again changes nothing, nor does one after the time-out."""
        cost = self.settings.expiry
        if self.settings.deadline is None or cost is None:
            text = f"experiment {self.name!r} has no deadline, which gives a failure its cost"
            raise Conflict(f"{text}: send a reward, or create an experiment with a deadline", parameter="id")
        extra = self.bandit.measured(metrics)
        decision = self._open_decision(id)
        if decision is not None:
            if not self._is_too_late(decision.time):
                facts = extra | {"value": cost, "failed": True, "arm": decision.arm, "decided": decision.time}
                return self._record(id, events.Rewarded(**facts, propensity=_known(decision.propensity)))
            self._expire(id, decision)
        for kind in (events.Rewarded, events.Expired, events.Late):
            earlier = self.recorded(kind, id)
            if earlier is not None:
                if kind is events.Rewarded and not earlier.payload.failed:
                    text = f"decision {formatted(id)} has the reward {earlier.payload.value!r}"
                    raise Conflict(f"{text}: it cannot fail any more", parameter="id")
                if kind is events.Rewarded:
                    return _same_reward(earlier, id, earlier.payload.value, extra.get("metrics"))
                return earlier
        return self._record_late(id, id, extra | {"value": cost})

    def add(self, id: str, value: Any, part: Any) -> MadeEvent:
        """Add an amount to the reward of an open decision. The same amount again under the same name changes nothing.

        An amount that comes after the expiry is recorded only. One that comes after the final reward is refused.
        """
        checked = checked_reward(value)
        if self.settings.deadline is not None:
            raise invalid("final", False, "true: with a deadline, a reward is one elapsed time")
        key = events.amount_id(id, checked_part(part))
        decision = self._open_decision(id)
        if decision is not None and self._is_too_late(decision.time):
            self._expire(id, decision)
            decision = None
        for kind in (events.Added, events.Late):
            earlier = self.recorded(kind, key)
            if earlier is not None:
                return _same_reward(earlier, id, checked, None, f"amount {part!r}")
        if decision is not None:
            if part in self.bandit.amounts(decision.id):
                text = f"amount {part!r} of decision {formatted(id)} was added before, and is archived"
                raise Conflict(f"{text}: use a new part for a new amount", parameter="part")
            return self._record(key, events.Added(value=checked, part=part, arm=decision.arm, decided=decision.time))
        if any(self.recorded(kind, id) is not None for kind in (events.Rewarded, events.Late)):
            raise Conflict(f"decision {formatted(id)} has its final reward: it takes no more amounts", parameter="id")
        return self._record_late(id, key, {"value": checked, "part": part})

    def _record_late(self, id: str, key: str, facts: dict[str, Any]) -> MadeEvent:
        """Record a reward of a decision that has expired, or was made before a reset."""
        expired = self.recorded(events.Expired, id)
        if expired is not None:
            arm, decided = expired.payload.arm, expired.payload.decided
            return self._record(key, events.Late(**facts, arm=arm, decided=decided, reason="window"))
        made = self.recorded(events.Decided, id)
        if made is None:
            raise NotFound(
                f"decision {formatted(id)} is not known in experiment {self.name!r}: send the id of a decision",
                code="unknown-decision",
            )
        return self._record(key, events.Late(**facts, arm=made.payload.arm, decided=made.event.time, reason="reset"))

    def is_due(self) -> bool:
        """Return whether `expire_due` would close decisions."""
        window = self.settings.window
        return window is not None and bool(self.bandit.opened_before(self.now() - window, 1))

    def expire_due(self) -> int:
        """Close decisions whose rewards did not come in time, up to `EXPIRED_AT_ONCE` of them. Return their number."""
        if self.settings.window is None:
            return 0
        due = self.bandit.opened_before(self.now() - self.settings.window, EXPIRED_AT_ONCE)
        for own in due:
            decision = self.bandit.open_decision(own)
            assert decision is not None
            self._expire(self._public_ids.get(str(own), str(own)), decision)
        return len(due)

    def _expire(self, id: str, decision: Decision) -> None:
        value = self.settings.expiry
        if self.bandit.amounts(decision.id):
            value = self.bandit.total(decision.id)
        if not self.bandit.teaches(decision.id):
            value = None
        chance = _known(decision.propensity)
        self._record(id, events.Expired(arm=decision.arm, decided=decision.time, value=value, propensity=chance))

    def _is_too_late(self, decided: float) -> bool:
        """Return whether a reward that comes now is too late. At the end of the window it is not."""
        window = self.settings.window
        return window is not None and decided < self.now() - window

    # --- edges ------------------------------------------------------------------------------------------------------------

    def allocation(self, valid_for: float) -> GivenAllocation | None:
        """Return the newest allocation, unless a new one is due.

        It is due after ``valid_for`` seconds, if the arms have changed, and if new edges could not report what they decide by it.
        """
        if self.settings.features is not None:
            fact = f"experiment {self.name!r} has features, so its probabilities differ from context to context"
            raise Conflict(f"{fact}: ask the service for each decision", code="no-allocation")
        if self.paused:
            raise Conflict(f"experiment {self.name!r} is paused: resume it", code="paused")
        newest = self.edges.newest
        if newest is None or not self.edges.arms or newest.seq <= self.edges.forgotten:
            return None
        valid_for = self.edges.validity(valid_for, self.now())
        version, renewed = self._renewed
        made = renewed if version == newest.version else newest.made
        return self.newest_allocation() if self.now() < made + min(valid_for, newest.valid_for) else None

    def newest_allocation(self) -> GivenAllocation | None:
        """Return the newest allocation, however old."""
        newest = self.edges.newest
        return None if newest is None else GivenAllocation(newest, self.edges.arms, self.settings.window)

    def allocating(self, valid_for: float) -> Callable[[], events.Allocated]:
        """Return a function that computes an allocation for the present state. Any thread may call it.

        While no decisions are measured, such as after a start of the server, half the rate of the last allocation is assumed, and
        at least one decision for each arm.
        """
        bandit, newest = self.bandit, self.edges.newest
        valid_for = self.edges.validity(valid_for, self.now())
        rate, flying = self.meter.rates(self.now())
        decisions = max(1, round(rate * valid_for))
        if rate == 0.0:
            active = sum(state == "active" for state in bandit.states.values())
            earlier = 0.0 if newest is None else 0.5 * newest.decisions * valid_for / newest.valid_for
            decisions = max(active, round(earlier))
        before, allocate = round(flying), bandit.allocating()

        def computed() -> events.Allocated:
            shares = allocate(decisions, before)
            arms, probabilities = tuple(map(str, shares)), tuple(shares.values())
            return events.Allocated(
                arms=arms, probabilities=probabilities, valid_for=valid_for, decisions=decisions, before=before
            )

        return computed

    def allocate(self, made: events.Allocated, epoch: int, version: str) -> GivenAllocation | None:
        """Record an allocation, unless the newest one has the same probabilities. Return None if the arms have changed since."""
        active = tuple(arm for arm, state in self.bandit.states.items() if state == "active")
        if active != made.arms or epoch != self.epoch:
            return None
        current = self.allocation(made.valid_for)  # that of another server
        if current is not None:
            return current
        newest = self.edges.newest
        same = newest is not None and (self.edges.arms, newest.shares) == (made.arms, _possible(made))
        if newest is not None and same and newest.valid_for == made.valid_for and newest.seq > self.edges.forgotten:
            self._renewed = newest.version, self.now()
        else:
            self._record(version, made)
        return self.newest_allocation()

    def observe(self, given: Sequence[tuple[int, Observation]], seen: dict[str, Observation]) -> Observed:
        """Learn decisions that edges made, and their ends. Each is counted once. One that is refused does not stop the others.

        They come with their positions in a batch, and ``seen`` has those before them that were counted. A reward that comes too
        late is not learned; its decision expires. With a deadline none comes too late: the reward says how long it took.
        """
        edges, positions, result = self.edges, self._positions(), Observed()
        oldest = -math.inf if self.settings.reward_window is None else self.now() - self.settings.reward_window
        lives: dict[str, int] = {}
        draws: dict[tuple[str, str, float], int] = {}
        kept: list[Observation] = []
        arms = ""
        life_of, numbers, draw_of, late = [], [], [], []
        for place, each in given:
            life, _, digits = each.id.partition("-")
            number = int(digits)
            if each.id in seen:
                if seen[each.id] == each:
                    result.replayed += 1
                else:
                    text = f"decision {formatted(each.id)} is given twice, with other content: use an id once"
                    result.refused.append((place, Conflict(text, parameter="id")))
                continue
            if edges.is_known(life, number):
                result.replayed += 1
                continue
            if each.arm not in positions:
                arms = arms or formatted(list(positions))
                text = f"experiment {self.name!r} has no arm {formatted(each.arm)}: it has {arms}"
                result.refused.append((place, InvalidInput(text, parameter="arm")))
                continue
            refusal = edges.refusal(each, life, number) or self._refused_value(each.value)
            if refusal is not None:
                result.refused.append((place, refusal))
                continue
            seen[each.id] = each
            if each.value is None:
                result.expired += 1
            elif each.decided < oldest:
                result.late += 1
                late.append(len(kept))
            else:
                result.learned += 1
            kept.append(each)
            life_of.append(lives.setdefault(life, len(lives)))
            numbers.append(number)
            share = edges.allocations[each.allocation].shares[each.arm]
            draw_of.append(draws.setdefault((each.allocation, each.arm, share), len(draws)))
        if kept:
            payload = events.Observations(
                lives=tuple(lives),
                draws=tuple(draws),
                numbers=tuple(numbers),
                decided=tuple([each.decided for each in kept]),
                values=tuple([each.value for each in kept]),
                life=tuple(life_of) if len(lives) > 1 else (),
                draw=tuple(draw_of) if len(draws) > 1 else (),
                rewarded=tuple([each.rewarded for each in kept]) if any(each.rewarded for each in kept) else (),
                late=tuple(late),
                expiry=self.settings.expiry,
                rule=RULE,
            )
            self._record("", payload)
            rewarded = [each for each in kept if each.value is not None]
            result.delays = [max(0.0, (each.rewarded or self.time) - each.decided) for each in rewarded]
        return result

    def _refused_value(self, value: float | None) -> InvalidInput | None:
        """Return why a reward cannot be learned that is valid for other experiments."""
        cap, deadline = self.settings.cap, self.settings.deadline
        if value is None or value >= 0.0 or (cap is None and deadline is None):
            return None
        rule = "at least 0, since " + (f"cap = {cap:g} was declared" if deadline is None else "it is an elapsed time")
        return invalid("value", value, rule, error=InvalidReward)

    def _positions(self) -> dict[str, int]:
        return {str(arm): i for i, arm in enumerate(self.bandit.arms)}

    # --- arms and states --------------------------------------------------------------------------------------------------

    def add_arm(self, arm: str) -> MadeEvent:
        """Add an arm."""
        name = checked_arm(arm)
        if name in self.bandit.states:
            raise Conflict(
                f"arm {name!r} exists and is {self.bandit.states[name]}: choose another name", parameter="arm"
            )
        if len(self.bandit.arms) >= MOST_ARMS:
            raise Conflict(f"experiment {self.name!r} has {MOST_ARMS:,} arms, the most that are possible")
        return self._record("", events.ArmAdded(arm=name))

    def change_arm(self, arm: str, state: str) -> MadeEvent | None:
        """Pause, resume or retire an arm. Return None if it has that state already."""
        present = self.bandit.states.get(arm)
        if present is None:
            raise NotFound(
                f"experiment {self.name!r} has no arm {formatted(arm)}: it has {formatted(list(self.bandit.arms))}"
            )
        if present == state:
            return None
        if present == "retired":
            raise Conflict(
                f"arm {arm!r} is retired and cannot come back: add an arm with another name", parameter="arm"
            )
        changes: dict[str, Any] = {
            "active": events.ArmResumed,
            "paused": events.ArmPaused,
            "retired": events.ArmRetired,
        }
        return self._record("", changes[state](arm=arm))

    def pause(self) -> MadeEvent | None:
        """Make no more decisions. Return None if the experiment is paused already."""
        return None if self.paused else self._record("", events.Paused())

    def resume(self) -> MadeEvent | None:
        """Make decisions again. Return None if the experiment is not paused."""
        return self._record("", events.Resumed()) if self.paused else None

    def reset(self, drawn: int) -> MadeEvent:
        """Forget all that was learned. The seed is that of the settings, or ``drawn`` if they have none."""
        seed = self.settings.seed
        return self._record("", events.Reset(seed=drawn if seed is None else seed))

    def _record(self, id: str, payload: Payload) -> MadeEvent:
        """Apply a new event and emit it. An empty id stands for the number of the event."""
        before, self.time = self.time, self.now()
        try:
            self._fold(id, payload, self.time)
        except BaseException:
            self.time = before
            raise
        made = self._made(id or str(self.seq + 1), payload)
        due = self.bandit.guardrail_event()
        if due is not None:
            self._record("", due)
        return made

    def _made(self, id: str, payload: Payload) -> MadeEvent:
        """Emit an event that is applied."""
        self.seq += 1
        kind = KINDS[type(payload)]
        self._count(kind, payload)
        event = Event(self.number, self.seq, kind, id, encode(payload), self.time)
        made = self.recent[kind, id] = MadeEvent(event, payload)
        self._emit(event)
        return made

    # --- the fold ---------------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Apply the next event of the log."""
        _, seq, kind, id, _, self.time = event
        if seq != self.seq + 1:
            raise CorruptFile(f"event {self.seq + 1} of experiment {self.name!r} is missing: restore a backup")
        payload = payload_of(event)
        try:
            self._fold(id, payload, self.time)
        except RobanditError as error:
            reason = f"does not fit the events before it ({str(error)[:200]})"
            raise CorruptFile(f"event {seq} of experiment {self.name!r} {reason}: restore a backup") from error
        self.seq = seq
        self._count(kind, payload)

    def _count(self, kind: str, payload: Payload) -> None:
        self.counts[kind] += 1
        if isinstance(payload, events.Decided) and payload.repeat:
            self.counts["repeat"] += 1
        elif isinstance(payload, events.Late) and payload.reason == "assignment":
            self.counts["unlearned"] += 1
        elif isinstance(payload, events.Rewarded) and payload.failed:
            self.counts["failed"] += 1
        if kind in ENDS:
            summed = isinstance(payload, events.Expired) and payload.value is not None and self.settings.expiry is None
            self.ends["rewarded" if summed else kind] += 1  # a sum of amounts is a reward
            self._weaken_old_ends()
        elif kind == "decided":
            self.meter.add(self.time, 1)
        elif isinstance(payload, events.Observations):
            self._count_observed(payload)

    def _count_observed(self, payload: events.Observations) -> None:
        """Count decisions of edges and their ends as if each were an event."""
        number, late = len(payload.numbers), len(payload.late)
        rewarded = number - late - payload.values.count(None)
        counted = {"decided": number, "rewarded": rewarded, "late": late, "expired": number - rewarded}
        self.counts.update({kind: count for kind, count in counted.items() if count})
        for kind in ENDS:
            self.ends[kind] += counted[kind]
        self._weaken_old_ends()
        window = self.settings.window or math.inf
        versions = [version for version, _, _ in payload.draws]
        of_each = zip(payload.draw or (0,) * number, payload.decided, payload.rewarded or (None,) * number, strict=True)
        flights = (
            self.edges.time_in_flight(versions[draw], decided, rewarded, self.time)
            for draw, decided, rewarded in of_each
        )
        self.meter.add(self.time, number, sum(min(seconds, window) for seconds in flights))
        self.extra += number // CHEAP

    def _weaken_old_ends(self) -> None:
        while self.ends["expired"] + self.ends["rewarded"] >= RECENT_ENDS:
            self.ends = {kind: count // 2 for kind, count in self.ends.items()}

    def _fold(self, id: str, payload: Payload, time: float) -> None:
        if isinstance(payload, events.Rewarded | events.Expired):
            self._close(id, payload)
        elif isinstance(payload, events.Late):
            if payload.reason == "assignment":  # its decision is open
                self._close(id, events.Rewarded(value=payload.value, metrics=payload.metrics))
        elif isinstance(payload, events.Added):
            decision = events.decision_id(id)
            self.bandit.apply(msgspec.structs.replace(payload, id=self._own_ids.get(decision, decision)))
        elif isinstance(payload, events.Decided):
            self.bandit.apply(msgspec.structs.replace(payload, id=payload.own or id, time=time))
            self._opened(id, payload)
        elif isinstance(payload, events.ArmAdded | events.ArmPaused | events.ArmResumed | events.ArmRetired):
            if isinstance(payload, events.ArmPaused) and payload.guardrail is not None:
                self.bandit.apply(payload)
            else:
                _ARM_CHANGES[type(payload)](self.bandit, payload.arm)
            self.edges.arms = ()
        elif isinstance(payload, events.ArmAlarmed | events.Scaled):
            self.bandit.apply(payload)
        elif isinstance(payload, events.Observations):
            self._learn_observed(payload)
        elif isinstance(payload, events.Allocated):
            made = (self.seq + 1, id, _possible(payload), time, payload.valid_for, payload.decisions)
            self.edges.allocate(Allocation(*made), payload.arms)
        elif isinstance(payload, events.Created | events.Upgraded):
            self.version = payload.version
            self.created = self.created or time
        elif isinstance(payload, events.Paused | events.Resumed):
            self.paused = isinstance(payload, events.Paused)
        elif isinstance(payload, events.Reset):
            self._start_anew(payload.seed)

    def _learn_observed(self, payload: events.Observations) -> None:
        """Learn what edges observed, and remember that it is counted."""
        positions, late, edges = self._positions(), set(payload.late), self.edges
        draws = payload.draw or (0,) * len(payload.numbers)
        arms = [positions[arm] for _, arm, _ in payload.draws]
        ends = enumerate(zip(draws, payload.values, strict=True))
        lost = payload.expiry if self.settings.deadline is None else None  # the bandit knows what a time-out costs
        pulls = [(arms[draw], lost if value is None or place in late else value) for place, (draw, value) in ends]
        self.bandit.learn_pulls(pulls, payload.rule)
        made = [
            edges.allocations[version].seq if version in edges.allocations else 0 for version, _, _ in payload.draws
        ]
        lives = payload.life or (0,) * len(payload.numbers)
        for life, number, draw in zip(lives, payload.numbers, draws, strict=True):
            edges.count(payload.lives[life], number, made[draw])

    def _opened(self, id: str, payload: events.Decided) -> None:
        if payload.own:
            self._own_ids[id] = payload.own
            self._public_ids[payload.own] = id

    def _close(self, id: str, payload: events.Rewarded | events.Expired) -> None:
        """Let the bandit learn a value for an open decision, or expire it."""
        self.bandit.apply(msgspec.structs.replace(payload, id=self._own_ids.get(id, id)))
        own = self._own_ids.pop(id, None)
        if own is not None:
            del self._public_ids[own]

    def _start_anew(self, seed: int) -> None:
        states, broken = self.bandit.states, self.bandit.broken_guardrails()
        self.bandit = self._new_bandit(list(states), seed)
        for arm, state in states.items():
            if state == "paused":
                self.bandit.apply(events.ArmPaused(arm=arm, guardrail=broken.get(arm)))
            elif state == "retired":
                self.bandit.retire_arm(arm)
        self._own_ids.clear()
        self._public_ids.clear()
        self.edges = Edges()
        self.counts.clear()
        self.ends = dict.fromkeys(ENDS, 0)
        self.epoch += 1

    # --- what is known ------------------------------------------------------------------------------------------------------

    def _open_decision(self, id: str) -> Decision | None:
        own = self._own_ids.get(id)
        if own is None and id in self._public_ids:  # the bandit's name of a decision that has one of the client
            return None
        return self.bandit.open_decision(own or id)

    def is_open(self, id: str) -> bool:
        """Return whether a decision waits for its reward."""
        return self._open_decision(id) is not None

    def _has_ended(self, id: str) -> bool:
        """Return whether the log has the end of a decision. It has one end of a kind, so the id cannot be used again."""
        return any(self.recorded(kind, id) is not None for kind in (events.Rewarded, events.Expired, events.Late))

    def recorded(self, kind: type[Any], id: str) -> MadeEvent | None:
        """Return the event of a kind with an id, also if it is not stored yet."""
        name = KINDS[kind]
        made = self.recent.get((name, id))
        if made is not None:
            return made._replace(replayed=True)
        event = self._find(self.number, name, id)
        return None if event is None else MadeEvent(event, payload_of(event), replayed=True)

    def forget_recent(self, kind: str, id: str) -> None:
        """Forget an event that is stored now, so that `find` finds it."""
        self.recent.pop((kind, id), None)

    # --- snapshots ------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the state. The same events give the same bytes."""
        saved = _Saved(
            seq=self.seq,
            epoch=self.epoch,
            paused=self.paused,
            time=self.time,
            created=self.created,
            version=self.version,
            counts=dict(sorted(self.counts.items())),
            aliases=self._own_ids,
            bandit=self.bandit.to_bytes(),
            ends=self.ends,
            edges=self.edges.save(),
        )
        content = msgspec.msgpack.encode(saved)
        seal = hashlib.sha256(content).digest()
        return Snapshot(self.number, self.seq, SNAPSHOT_FORMAT.to_bytes(4, "little") + seal + content)

    def restore(self, content: bytes) -> None:
        """Continue from a snapshot. Raise `CorruptFile` if it is damaged, or of another format: the log can replace it."""
        form, seal, body = int.from_bytes(content[:4], "little"), content[4:36], content[36:]
        if form != SNAPSHOT_FORMAT or hashlib.sha256(body).digest() != seal:
            raise CorruptFile(f"a snapshot of experiment {self.name!r} is damaged, or has another format")
        saved = msgspec.msgpack.decode(body, type=_Saved)
        self.bandit = Bandit.from_bytes(saved.bandit, clock=lambda: self.time, compile=self._compile)
        self.seq, self.epoch, self.paused = saved.seq, saved.epoch, saved.paused
        self.time, self.created, self.version = saved.time, saved.created, saved.version
        self.counts = Counter(saved.counts)
        ends = self.counts if saved.ends is None else saved.ends
        self.ends = {kind: ends.get(kind, 0) for kind in ENDS}
        self._weaken_old_ends()
        self.edges = Edges.load(saved.edges)
        self._own_ids = saved.aliases
        self._public_ids = {own: public for public, own in saved.aliases.items()}

    def apply_all(self, stored: Iterable[Event]) -> None:
        """Apply several events."""
        for _ in self.applying(stored):
            pass

    def applying(self, stored: Iterable[Event]) -> Iterator[None]:
        """Apply several events. Yields after each one that takes the time of many."""
        for event in stored:
            self.apply(event)
            if event.kind == OBSERVED:
                yield


def checked_id(id: str) -> str:
    """Return an id of a client, if it is valid."""
    if not ID.fullmatch(id):
        raise invalid("id", id, f"1 to {LONGEST_ID} printable ASCII characters", hint="a UUIDv7 is a good choice")
    return id


def _known(propensity: float | None) -> events.Propensity:
    return "unknown" if propensity != propensity else propensity


def _possible(made: events.Allocated) -> dict[str, float]:
    """Return the probability of each arm that is possible."""
    shares = zip(made.arms, made.probabilities, strict=True)
    return {arm: share for arm, share in shares if share > 0.0}


def _same_request(
    made: MadeEvent, among: tuple[str, ...] | None, arm: str | None, context: Context, unit: str | None
) -> MadeEvent:
    """Return an earlier decision, if this request is the same."""
    first: Any = made.payload
    given = first.arm if first.given else None
    same = (first.among, given, first.unit) == (among, arm, unit) and _canonical(first.context) == _canonical(context)
    if not same:
        raise Conflict(
            f"decision {formatted(made.event.id)} was made before with another body: use a new id for a new decision",
            parameter="id",
        )
    return made


def _canonical(context: Context) -> bytes:
    """Return a context in a form that does not depend on spaces and on the order of fields, but tells 1 from 1.0 and true."""
    return msgspec.json.encode(decoded(context), order="sorted")


def _same_reward(
    earlier: MadeEvent, id: str, value: float, metrics: dict[str, float] | None, noun: str = "reward"
) -> MadeEvent:
    """Return an earlier reward or amount, if this one is the same."""
    known: Any = earlier.payload
    former = getattr(known, "amount", None)
    former = known.value if former is None else former
    if former != value:
        fact = f"decision {formatted(id)} has the {noun} {former!r}, not {value!r}"
        way_out = "a decision has one reward" if noun == "reward" else "use a new part for a new amount"
        raise Conflict(f"{fact}: {way_out}", parameter="value")
    if getattr(known, "metrics", None) != metrics:
        raise Conflict(f"decision {formatted(id)} has a reward with other metrics: send each once", parameter="metrics")
    return earlier
