"""What `Probing` and `Restarting` share: a policy around another policy, with its parameters, state and hooks."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from functools import cache, partial
from typing import Any, ClassVar, Self, get_args

import numpy as np

from robandit.drift.alarm import Alarm, Kind, Summary
from robandit.drift.detector import DELTA, new_state, restarted
from robandit.errors import InvalidInput, NotApplicable
from robandit.policies.base import Policy, check_policy_given, growing_fields, with_allowed, without_allowed
from robandit.policies.drift import schedule
from robandit.policies.facts import Facts
from robandit.validation import within

_HOOKS: dict[str, Any] = {
    "select": schedule.select_probing,
    "take": schedule.take_probing,
    "expire": schedule.expire_probing,
    "update": schedule.update_probing,
    "full": schedule.full_probing,
    "chance": schedule.chance_probing,
}
_BOUND = {"update": ("update", "take")}  # hooks of the other policy that are bound to a hook, if not just its namesake
FIELDS = ("drift_watch", "drift_arms", "drift_book", "drift_log")
PARAMS = ("drift_rate", "drift_delta")
KINDS: tuple[Kind, ...] = get_args(Kind)  # their order is a saved format


def _inner(name: str) -> Any:
    """Return a property that is that of the other policy, or None."""
    return property(lambda self: getattr(self.of, name, None))


class Wrapping:
    """A policy that plays another policy, the field ``of``, and adds pulls of its own."""

    of: Any
    rate: float
    about: ClassVar[Facts]
    delta: float = DELTA
    select: ClassVar[Any]  # `hooks` returns all hooks
    update: ClassVar[Any]
    suffix: ClassVar[str]  # after the name of the other policy
    replaced_machinery: ClassVar[tuple[str, ...]] = ("hooks", "grown")

    def validate(self) -> None:
        """Check that the other policy can be wrapped."""
        owner = type(self).__name__
        check_policy_given(self.of, "of")
        within(self.rate, "rate", 0.0, 1.0, owner=owner)
        if isinstance(self.of, Wrapping):
            raise InvalidInput(f"{owner} of {self.of!r}: probes and restarts cannot be nested; Restarting has both")
        if self.of.weighted:
            reason = "it weights a reward by the probability of its own choice, and a probe is not its choice"
            raise NotApplicable(f"{owner} cannot wrap {self.of!r}: {reason}; take a policy without weights")

    def __getattr__(self, name: str) -> Any:
        """Return a required parameter of the other policy."""
        if name != "of" and not name.startswith("_") and name in (*self.of.facts.knows, "horizon"):
            return getattr(self.of, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # --- facts -------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the other policy, with the suffix and the parameters that differ from their defaults."""
        fields = [field for field in dataclasses.fields(self) if field.name != "of"]  # type: ignore[arg-type]
        values = [(field.name, getattr(self, field.name), field.default) for field in fields]
        changed = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{self.of.name} {self.suffix}" + (f" ({changed})" if changed else "")

    @property
    def facts(self) -> Facts:
        """The facts about the other policy, without its bounds: they do not cover probes and restarts."""
        own: Facts = self.about
        inner: Facts = self.of.facts
        title = f"{inner.title} {self.suffix}"
        none: dict[str, Any] = {"bound": "", "instance": "", "worst": "", "matches": (None, None), "row": 0}
        return dataclasses.replace(
            inner, title=title, citation=own.citation, source=own.source, notes=own.notes, **none
        )

    respects_allowed: ClassVar[Any] = _inner("respects_allowed")
    grows: ClassVar[Any] = property(lambda self: growing_fields(self.of))
    former_fields: ClassVar[Any] = _inner("former_fields")
    columns: ClassVar[Any] = _inner("columns")
    chance: ClassVar[Any] = _inner("chance")

    @property
    def longest(self) -> int | None:
        """The largest number of pulls of the other policy."""
        return self.of.longest

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        """Return this policy with the required parameters of the other policy taken from a problem."""
        return self._with(self.of.informed_by(problem, eps=eps))

    def prepared(self, horizon: int | None) -> Self:
        """Return this policy with the other policy ready for ``horizon`` pulls."""
        return self._with(self.of.prepared(horizon))

    def _with(self, of: Policy) -> Self:
        changed: dict[str, Any] = {"of": of}
        return self if of == self.of else dataclasses.replace(self, **changed)  # type: ignore[type-var]

    # --- parameters, state and hooks ---------------------------------------------------------------------------------

    def params(self) -> Any:
        """Return the parameters of the other policy and of the schedule."""
        inner = self.of.params()
        return _record((*inner._fields, *PARAMS))(*inner, float(self.rate), float(self.delta))

    def init(self, arms: int, horizon: int | None) -> Any:
        """Return the state of the other policy with the fields of the schedule."""
        return _merged(self.of.init(arms, horizon), schedule.new_fields(arms, horizon))

    def hooks(self, *names: str) -> tuple[Any, ...]:
        """Return the hooks of the schedule, with those of the other policy bound to them."""
        return tuple(_bound(self.of, name) for name in names)

    def grown(self, state: Any) -> Any:
        """Make room in the state of the other policy, and handle an alarm."""
        (full,) = self.of.hooks("full")
        if full(self.of.params(), state):
            state = state._replace(**self.of.grown(inner_state(state))._asdict())
        alarmed = int(state.drift_book[schedule.ALARMED])
        if alarmed >= 0:
            _log(state, Alarm.raised(state.drift_watch, alarmed))
            state = self.react(state, alarmed)
            restarted(state.drift_watch, alarmed)
            state.drift_book[schedule.ALARMED] = -1.0
        return state

    def react(self, state: Any, alarmed: int) -> Any:
        """Return the state after an alarm of an arm. The detector's row of the arm is as the alarm left it."""
        return state

    def alarms(self, state: Any) -> tuple[Alarm, ...]:
        """Return the newest alarms, at most 32, the oldest first. The arms are numbers."""
        count = int(state.drift_book[schedule.ALARMS])
        rows = [state.drift_log[i % schedule.LOGGED] for i in range(max(0, count - schedule.LOGGED), count)]
        if not all(0 <= row[0] < len(state.allowed) for row in rows):
            raise ValueError("drift_log has an arm that does not exist")
        return tuple(_alarm(row) for row in rows)

    def forget_choice(self, state: Any) -> None:
        """Discard what the other policy and the schedule cache about the set of allowed arms."""
        self.of.forget_choice(state)
        state.drift_book[schedule.CHECK] = 0.0

    def paused(self, state: Any, arm: int) -> None:
        """Tell the other policy that an arm is paused."""
        self.of.paused(state, arm)

    def resumed(self, state: Any, arm: int) -> None:
        """Tell the other policy that an arm is back. It is due for a probe if it was away for long."""
        self.of.resumed(state, arm)
        state.drift_book[schedule.CHECK] = 0.0

    def extended(self, state: Any) -> Any:
        """Return the state with one more arm, which the schedule treats as if it had just been pulled."""
        inner = self.of.extended(inner_state(state))
        row = np.zeros((1, schedule.COLUMNS), dtype=np.int64)
        row[0, schedule.LAST] = int(state.drift_book[schedule.CLOCK])
        book = state.drift_book.copy()
        book[schedule.CHECK] = 0.0
        own = (
            np.vstack([state.drift_watch, new_state(1)]),
            np.vstack([state.drift_arms, row]),
            book,
            state.drift_log.copy(),
        )
        return with_allowed(_merged(without_allowed(inner), own), inner.allowed)

    def counters(self, state: Any) -> dict[str, int]:
        """Return the counters of the other policy, and the numbers of probes, alarms and restarts."""
        own = {"probes": schedule.PROBES, "alarms": schedule.ALARMS, "restarts": schedule.RESTARTS}
        counts: dict[str, int] = self.of.counters(inner_state(state))
        return counts | {name: int(state.drift_book[entry]) for name, entry in own.items()}


@cache
def _bound(of: Policy, name: str) -> Any:
    bound = of.hooks(*_BOUND.get(name, (name,)))
    return partial(_HOOKS[name], *bound) if name in _HOOKS else bound[0]


@cache
def _record(fields: tuple[str, ...]) -> Any:
    return namedtuple("Record", fields)


def _merged(inner: Any, own: tuple[Any, ...]) -> Any:
    """Return a state with the fields of the other policy and of the schedule."""
    return _record((*inner._fields, *FIELDS))(*inner, *own)


def inner_state(state: Any) -> Any:
    """Return the state of the other policy, with ``allowed``, which shares its arrays with this one."""
    names = tuple(name for name in state._fields if name not in FIELDS and name != "allowed")
    return with_allowed(_record(names)(*(getattr(state, name) for name in names)), state.allowed)


def _log(state: Any, alarm: Alarm) -> None:
    """Write an alarm into the log, over the oldest one."""
    book = state.drift_book
    numbers = (alarm.arm, alarm.changed, alarm.noticed, KINDS.index(alarm.kind))
    state.drift_log[int(book[schedule.ALARMS]) % schedule.LOGGED] = [
        *numbers,
        *_numbers(alarm.before),
        *_numbers(alarm.after),
    ]
    book[schedule.ALARMS] += 1.0


def _numbers(summary: Summary) -> tuple[float, ...]:
    return summary.low, summary.median, summary.high, summary.mean


def _alarm(row: Any) -> Alarm:
    """Return an alarm of the log."""
    arm, changed, noticed, kind = (int(number) for number in row[:4])
    return Alarm(arm, changed, noticed, KINDS[kind], Summary(*row[4:8].tolist()), Summary(*row[8:12].tolist()))
