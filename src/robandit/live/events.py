"""The events of a live bandit's life: decisions, rewards, expiries, and arms that come and go.

A bandit passes each event to its ``log``, and `robandit.Bandit.apply` repeats an event. So a state is a fold of its log: a bandit
made with the same arguments that applies the same events has the same bytes. Events are plain data: ``to_dict`` returns JSON-able
data, which `Bandit.apply` also accepts.

``asked`` lists the choices that the policy was asked for since the last event: None for all arms that are available, or the names
that were passed as ``among``. Asking changes caches and random streams, so it is repeated, and its answer is ignored.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import msgspec

from robandit.live.arms import hashable
from robandit.validation import invalid, mapping
from robandit.wording import visible

__all__ = [
    "ArmAdded",
    "ArmPaused",
    "ArmResumed",
    "ArmRetired",
    "Decided",
    "Event",
    "Expired",
    "Observed",
    "Rewarded",
    "event_from",
]

Asked: TypeAlias = tuple[tuple[Any, ...] | None, ...]


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    asked: Asked = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able data."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data


class Decided(_Event, frozen=True, kw_only=True):
    """A decision: its id, arm, mark (see `robandit.Policy.take`), propensity, and time in seconds since 1970.

    ``given``: the arm was not chosen by the bandit, but passed to `robandit.Bandit.decide`.
    """

    id: str | int
    arm: Any
    mark: float
    propensity: float | Literal["unknown"] | None
    time: float
    given: bool = False

    @property
    def propensity_or_nan(self) -> float | None:
        """The propensity as a number: NaN if it is not known."""
        return math.nan if self.propensity == "unknown" else self.propensity

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able data. JSON has no NaN, so a probability that is not known becomes "unknown"."""
        data = super().to_dict()
        return data if data["propensity"] == data["propensity"] else data | {"propensity": "unknown"}


class Rewarded(_Event, frozen=True, kw_only=True):
    """The reward of an open decision."""

    id: str | int
    value: float


class Expired(_Event, frozen=True, kw_only=True):
    """An open decision whose reward will never come."""

    id: str | int


class Observed(_Event, frozen=True, kw_only=True):
    """A pull with its reward, without a decision before it (`robandit.Bandit.update`)."""

    arm: Any
    value: float


class ArmAdded(_Event, frozen=True, kw_only=True):
    """A new arm."""

    arm: Any


class ArmPaused(_Event, frozen=True, kw_only=True):
    """An arm that is not available until it is resumed."""

    arm: Any


class ArmResumed(_Event, frozen=True, kw_only=True):
    """A paused arm that is available again."""

    arm: Any


class ArmRetired(_Event, frozen=True, kw_only=True):
    """An arm that will never be available again."""

    arm: Any


Event: TypeAlias = Decided | Rewarded | Expired | Observed | ArmAdded | ArmPaused | ArmResumed | ArmRetired


def event_from(data: Any) -> Event:
    """Return an event, given as itself or as the data of its ``to_dict``.

    >>> event_from({"event": "Rewarded", "id": "k3m9qd2x7wfa-12", "value": 0.5}).value
    0.5
    """
    if isinstance(data, _Event):
        return data  # type: ignore[return-value]
    rule = "an event, or the data of its to_dict()"
    fields = mapping(data, "event", rule)
    try:
        event: Event = msgspec.convert(fields, Event)
    except Exception as error:  # msgspec.ValidationError, or an error of the caller's own type
        raise invalid("event", data, rule, hint=visible(str(error))[:110]) from error
    names: dict[str, Any] = {"asked": tuple(None if each is None else hashable(each) for each in event.asked)}
    if hasattr(event, "arm"):
        names["arm"] = hashable(event.arm)
    return msgspec.structs.replace(event, **names)
