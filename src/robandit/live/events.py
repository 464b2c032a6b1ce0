"""The events of a live bandit's life: decisions, rewards, expiries, and arms that come and go.

A bandit passes each event to its ``log``, and `robandit.Bandit.apply` repeats an event. So a state is a fold of its log: a bandit
made with the same arguments that applies the same events has the same bytes. Events are plain data: ``to_dict`` returns JSON-able
data, which `Bandit.apply` also accepts.

``asked`` lists the choices that the policy was asked for since the last event: None for all arms that are available, or the names
that were passed as ``among``. Asking changes caches and random streams, so it is repeated, and its answer is ignored.

The log of the decision service has the same events (`robandit.decisions.events`). It stores ids and times beside them, and fills in
some fields that a bandit leaves empty.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from robandit.live.arms import hashable
from robandit.live.guardrails import Broken
from robandit.validation import invalid, mapping
from robandit.wording import visible

__all__ = [
    "Added",
    "ArmAdded",
    "ArmAlarmed",
    "ArmPaused",
    "ArmResumed",
    "ArmRetired",
    "Decided",
    "Event",
    "Expired",
    "Observed",
    "Rewarded",
    "Scaled",
    "event_from",
]

Asked: TypeAlias = tuple[tuple[Any, ...] | None, ...]
Propensity: TypeAlias = float | Literal["unknown"] | None
Context: TypeAlias = msgspec.Raw | msgspec.UnsetType
"""JSON as it was sent, or UNSET."""
NO_TIME = 0.0
"""The time of an event whose time is stored beside it. It is not written, unlike an equal number."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    asked: Asked = ()
    asked_x: tuple[tuple[float, ...], ...] = ()
    """In a bandit with features: the x of each of ``asked``. Empty: all have the x of the event."""

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able data."""
        data: dict[str, Any] = {"event": type(self).__name__, **msgspec.to_builtins(self)}
        return data


class Decided(_Event, frozen=True, kw_only=True):
    """A decision: its id, arm, mark (see `robandit.Policy.take`), propensity, and time in seconds since 1970.

    ``given``: the arm was not chosen by the bandit, but passed to `robandit.Bandit.decide`.
    """

    id: str | int = ""
    arm: Any
    mark: float
    propensity: Propensity = None
    time: float = NO_TIME
    own: str = ""
    """The id in the bandit, if it differs from the id in the log, which a client of the service chose."""
    asked: Asked = (None,)  # the usual decision is chosen among all arms
    given: bool = False
    rule: int = 0
    """1: pulls without a reward counted when it was made (`robandit.policies.base`). 0: they did not, as in Robandit 0.2."""
    unit: str | None = None
    """Who it was made for, if the bandit is sticky (`robandit.live.sticky`)."""
    repeat: bool = False
    """Whether it repeats the arm, the mark and the propensity of the unit's assignment, and is not a pull."""
    among: tuple[Any, ...] | None = None
    """The names in the request to the service."""
    context: Context = msgspec.UNSET
    """What the client of the service sent with the request."""
    x: tuple[float, ...] = ()
    """The encoded features (`robandit.features`), if the bandit has features."""
    unscaled: tuple[float | None, ...] = ()
    """The values of the numbers that have no scale yet, None for those that are missing."""

    @property
    def propensity_or_nan(self) -> float | None:
        """The propensity as a number: NaN if it is not known."""
        return math.nan if self.propensity == "unknown" else self.propensity

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON-able data. JSON has no NaN, so a probability that is not known becomes "unknown"."""
        data = {"propensity": None, "time": 0.0, "asked": [None]} | super().to_dict()
        return data if data["propensity"] == data["propensity"] else data | {"propensity": "unknown"}


class Rewarded(_Event, frozen=True, kw_only=True):
    """The reward of an open decision. It is learned, unless an earlier reward of the same assignment of a unit was."""

    id: str | int = ""
    value: float
    arm: Any = None
    decided: float = 0.0
    """When the decision was made."""
    propensity: Propensity = None
    metrics: dict[str, float] | None = None
    """What else is known of the outcome."""
    amount: float | None = None
    """The last amount, if others were added before (`Added`): ``value`` is their sum. None: there are no others."""
    failed: bool = False
    """Whether the decision failed, and the value is the cost of a failure (`robandit.Bandit.fail`)."""


class Added(_Event, frozen=True, kw_only=True):
    """An amount of the reward of an open decision, which will be learned with the others as one sum."""

    id: str | int = ""
    part: str = ""
    """The name of the amount."""
    value: float
    arm: Any = None
    decided: float = 0.0
    """When the decision was made."""


class Expired(_Event, frozen=True, kw_only=True):
    """An open decision whose reward will never come, or that is older than the deadline of its bandit."""

    id: str | int = ""
    arm: Any = None
    decided: float = 0.0
    """When the decision was made."""
    value: float | None = None
    """The value that is learned in place of the reward; None if nothing is learned."""
    propensity: Propensity = None


class Observed(_Event, frozen=True, kw_only=True):
    """A pull with its reward, without a decision before it (`robandit.Bandit.update`)."""

    arm: Any
    value: float
    metrics: dict[str, float] | None = None
    x: tuple[float, ...] = ()
    unscaled: tuple[float | None, ...] = ()
    """Both as in `Decided`."""


class Scaled(_Event, frozen=True, kw_only=True):
    """The scale of a number among the features, which is fixed from now on."""

    feature: str
    center: float
    scale: float


class ArmAdded(_Event, frozen=True, kw_only=True):
    """A new arm."""

    arm: Any


class ArmPaused(_Event, frozen=True, kw_only=True):
    """An arm that is not available until it is resumed."""

    arm: Any
    guardrail: Broken | None = None
    """The guardrail that it broke. None: it was paused by hand."""


class ArmAlarmed(_Event, frozen=True, kw_only=True):
    """An arm broke a guardrail, and goes on, because no other arm is active."""

    arm: Any
    guardrail: Broken


class ArmResumed(_Event, frozen=True, kw_only=True):
    """A paused arm that is available again."""

    arm: Any


class ArmRetired(_Event, frozen=True, kw_only=True):
    """An arm that will never be available again."""

    arm: Any


Event: TypeAlias = (
    Decided
    | Rewarded
    | Added
    | Expired
    | Observed
    | Scaled
    | ArmAdded
    | ArmPaused
    | ArmAlarmed
    | ArmResumed
    | ArmRetired
)
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}
# Fields that only an event in the log of the service may lack.
_NEEDED = {"Decided": {"id", "propensity", "time"}, "Rewarded": {"id"}, "Added": {"id", "part"}, "Expired": {"id"}}


def event_from(data: Any) -> Event:
    """Return an event, given as itself or as the data of its ``to_dict``."""
    if isinstance(data, _Event):
        return data  # type: ignore[return-value]
    rule = "an event, or the data of its to_dict()"
    fields = mapping(data, "event", rule)
    try:
        kind = _KINDS[fields.pop("event")]
        missing = _NEEDED.get(kind.__name__, set()) - set(fields)
        if missing:
            raise KeyError(*sorted(missing))
        event: Event = msgspec.convert({"asked": ()} | fields, kind)
    except KeyError as error:
        raise invalid("event", data, rule, hint=f"{visible(str(error))[:110]} is missing, or unknown") from None
    except Exception as error:  # msgspec.ValidationError, or an error of the caller's own type
        raise invalid("event", data, rule, hint=visible(str(error))[:110]) from error
    names: dict[str, Any] = {"asked": tuple(None if each is None else hashable(each) for each in event.asked)}
    if hasattr(event, "arm"):
        names["arm"] = hashable(event.arm)
    return msgspec.structs.replace(event, **names)
