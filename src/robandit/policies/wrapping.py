"""What policies around another policy share: they pass through its parameters, state and hooks, and add their own.

The state has the fields of the other policy, and after them those of the wrapper. So hooks of both work on one state.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from functools import cache, partial
from typing import Any, ClassVar, Self, TypeAlias

from robandit.drift.alarm import Alarm
from robandit.errors import NotApplicable
from robandit.policies.base import Policy, check_policy_given, growing_fields, with_arms, without_arms
from robandit.policies.facts import Facts

Around: TypeAlias = tuple[Any, tuple[str, ...]]
"""A hook, and the hooks of the other policy that are its first arguments."""


def notices_changes(policy: Policy) -> bool:
    """Return whether a policy has a detector of changes of its own."""
    return isinstance(policy, Wrapping) and policy.notices


def _inner(name: str) -> Any:
    """Return a property that is that of the other policy, or None."""
    return property(lambda self: getattr(self.of, name, None))


class Wrapping:
    """A policy that plays another policy, the field ``of``, and adds pulls of its own."""

    of: Any
    about: ClassVar[Facts]
    select: ClassVar[Any]  # `hooks` returns all hooks
    update: ClassVar[Any]
    suffix: ClassVar[str]  # after the name of the other policy
    own_pull: ClassVar[str]  # what its own pulls are called
    first_field: ClassVar[str]  # of its own fields of the state
    replaced_machinery: ClassVar[tuple[str, ...]] = ("hooks", "grown", "start")

    def validate(self) -> None:
        check_policy_given(self.of, "of")
        if self.of.weighted:
            reason = f"it weights a reward by the probability of its own choice, and {self.own_pull} is not its choice"
            fact = f"{type(self).__name__} cannot wrap {self.of!r}: {reason}"
            raise NotApplicable(f"{fact}; take a policy without weights")

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
        """The facts about the other policy, without its bounds: they do not cover the pulls that are added."""
        own: Facts = self.about
        inner: Facts = self.of.facts
        changed: dict[str, Any] = {"bound": "", "instance": "", "worst": "", "matches": (None, None), "row": 0}
        changed |= {"title": f"{inner.title} {self.suffix}", "random": inner.random or own.random}
        changed |= {name: getattr(own, name) for name in ("citation", "source", "notes")}
        return dataclasses.replace(inner, **changed)

    respects_allowed: ClassVar[Any] = _inner("respects_allowed")
    grows: ClassVar[Any] = property(lambda self: growing_fields(self.of))
    later_fields: ClassVar[Any] = _inner("later_fields")
    former_fields: ClassVar[Any] = _inner("former_fields")
    columns: ClassVar[Any] = _inner("columns")
    objective: ClassVar[Any] = _inner("objective")
    chance: ClassVar[Any] = _inner("chance")
    contextual: ClassVar[Any] = _inner("contextual")
    switches: ClassVar[Any] = _inner("switches")
    clips_gains: ClassVar[Any] = _inner("clips_gains")
    notices: ClassVar[Any] = property(lambda self: notices_changes(self.of))

    @property
    def longest(self) -> int | None:
        return self.of.longest

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        return self._with(self.of.informed_by(problem, eps=eps))

    def prepared(self, horizon: int | None) -> Self:
        return self._with(self.of.prepared(horizon))

    def signed(self, minimize: bool) -> Self:
        return self._with(self.of.signed(minimize))

    def _with(self, of: Policy) -> Self:
        changed: dict[str, Any] = {"of": of}
        return self if of == self.of else dataclasses.replace(self, **changed)  # type: ignore[type-var]

    # --- parameters, state and hooks ---------------------------------------------------------------------------------

    def own_params(self) -> dict[str, float]:
        """Return the parameters that are added for hooks."""
        raise NotImplementedError

    def own_fields(self, inner: Any, arms: int, horizon: int | None) -> dict[str, Any]:
        """Return the fields that are added to a new state of the other policy."""
        raise NotImplementedError

    def own_extended(self, state: Any) -> dict[str, Any]:
        """Return these fields with one more arm."""
        raise NotImplementedError

    def around(self, name: str) -> Around | None:
        """Return the hook with this name, or None for that of the other policy."""
        raise NotImplementedError

    def params(self) -> Any:
        """Return the parameters of the other policy and the own ones."""
        inner, own = self.of.params(), self.own_params()
        return _record((*inner._fields, *own))(*inner, *own.values())

    def init(self, arms: int, horizon: int | None) -> Any:
        """Return the state of the other policy with the own fields."""
        inner = self.of.init(arms, horizon)
        return _merged(inner, self.own_fields(inner, arms, horizon))

    def hooks(self, *names: str) -> tuple[Any, ...]:
        """Return the own hooks, with those of the other policy bound to them."""
        return tuple(_bound(self.of, name, self.around(name)) for name in names)

    def inner_state(self, state: Any) -> Any:
        """Return the state of the other policy, with the fields of `with_arms`, which shares its arrays with this one."""
        own = state._fields.index(self.first_field)
        return with_arms(_record(state._fields[:own])(*state[:own]), state.allowed, state.unrewarded)

    def grown(self, state: Any) -> Any:
        """Make room in the state of the other policy."""
        (full,) = self.of.hooks("full")
        if full(self.of.params(), state):
            state = state._replace(**self.of.grown(self.inner_state(state))._asdict())
        return state

    def extended(self, state: Any) -> Any:
        """Return the state with one more arm."""
        inner = self.of.extended(self.inner_state(state))
        return with_arms(_merged(without_arms(inner), self.own_extended(state)), inner.allowed, inner.unrewarded)

    def forget_choice(self, state: Any) -> None:
        self.of.forget_choice(state)

    def paused(self, state: Any, arm: int) -> None:
        self.of.paused(state, arm)

    def resumed(self, state: Any, arm: int) -> None:
        self.of.resumed(state, arm)

    def counters(self, state: Any) -> dict[str, int]:
        counts: dict[str, int] = self.of.counters(self.inner_state(state))
        return counts

    def alarms(self, state: Any) -> tuple[Alarm, ...]:
        """Return the newest alarms of a policy that `notices_changes`, the oldest first. The arms are numbers."""
        return self.of.alarms(state) if isinstance(self.of, Wrapping) else ()


@cache
def _bound(of: Policy, name: str, around: Around | None) -> Any:
    if around is None:
        return of.hooks(name)[0]
    hook, inner = around
    return partial(hook, *of.hooks(*inner))


@cache
def _record(fields: tuple[str, ...]) -> Any:
    return namedtuple("Record", fields)


def _merged(inner: Any, own: dict[str, Any]) -> Any:
    """Return a state with the fields of the other policy and the own ones."""
    return _record((*inner._fields, *own))(*inner, *own.values())
