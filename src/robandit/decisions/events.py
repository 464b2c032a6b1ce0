"""The events of an experiment's log, as they are stored.

The log is the truth, and a state is a fold of it (`robandit.decisions.experiment`). An event has a number (``seq``), a kind, an id
and a time. What else it holds is its payload, one of the structures below, in JSON. A field that has its default is not written, so
fields with defaults can be added without a new format.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from robandit.errors import CorruptFile
from robandit.storage import Event
from robandit.wording import visible

Propensity: TypeAlias = float | Literal["unknown"] | None
Context: TypeAlias = msgspec.Raw | msgspec.UnsetType
"""JSON as it was sent, or UNSET."""


class _Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event holds beyond its kind, its id and its time."""


class Created(_Payload, frozen=True, kw_only=True):
    """The experiment was created. Its settings stand beside the log."""

    version: str
    """The version of Robandit that decides from here on."""


class Upgraded(_Payload, frozen=True, kw_only=True):
    """Another version of Robandit decides from here on."""

    version: str


class Decided(_Payload, frozen=True, kw_only=True):
    """A decision. The id of the event is its public id."""

    arm: str
    mark: float
    propensity: Propensity = None
    own: str = ""
    """The id in the bandit, if it differs from the public id, which the client chose."""
    asked: tuple[tuple[str, ...] | None, ...] = (None,)
    """See `robandit.events`."""
    given: bool = False
    """The arm was chosen elsewhere."""
    among: tuple[str, ...] | None = None
    """The names in the request."""
    context: Context = msgspec.UNSET
    """What the client sent with the request."""


class Rewarded(_Payload, frozen=True, kw_only=True):
    """A reward that was learned. The id of the event is that of the decision, as in the next two."""

    value: float
    arm: str
    decided: float
    """When the decision was made."""
    propensity: Propensity = None


class Expired(_Payload, frozen=True, kw_only=True):
    """A decision whose reward did not come in time."""

    arm: str
    decided: float
    value: float | None = None
    """The value that was learned in place of the reward; None if nothing was learned."""
    propensity: Propensity = None


class Late(_Payload, frozen=True, kw_only=True):
    """A reward that came too late, and was not learned."""

    value: float
    arm: str
    decided: float
    reason: Literal["window", "reset"]


class ArmAdded(_Payload, frozen=True, kw_only=True):
    """A new arm."""

    arm: str


class ArmPaused(_Payload, frozen=True, kw_only=True):
    """An arm is not chosen until it is resumed."""

    arm: str


class ArmResumed(_Payload, frozen=True, kw_only=True):
    """A paused arm may be chosen again."""

    arm: str


class ArmRetired(_Payload, frozen=True, kw_only=True):
    """An arm is never chosen again."""

    arm: str


class Paused(_Payload, frozen=True, kw_only=True):
    """The experiment makes no decisions until it is resumed."""


class Resumed(_Payload, frozen=True, kw_only=True):
    """The experiment makes decisions again."""


class Reset(_Payload, frozen=True, kw_only=True):
    """All that was learned is forgotten. The arms stay, with their states."""

    seed: int


Payload: TypeAlias = (
    Created | Upgraded | Decided | Rewarded | Expired | Late
    | ArmAdded | ArmPaused | ArmResumed | ArmRetired | Paused | Resumed | Reset
)  # fmt: skip

KINDS: dict[type[Any], str] = {
    Created: "created",
    Upgraded: "upgraded",
    Decided: "decided",
    Rewarded: "rewarded",
    Expired: "expired",
    Late: "late",
    ArmAdded: "arm_added",
    ArmPaused: "arm_paused",
    ArmResumed: "arm_resumed",
    ArmRetired: "arm_retired",
    Paused: "paused",
    Resumed: "resumed",
    Reset: "reset",
}
"""The kind of each payload in the store."""

_decoders = {kind: msgspec.json.Decoder(payload).decode for payload, kind in KINDS.items()}
encode = msgspec.json.Encoder().encode


def decoded(context: Context) -> Any:
    """Return a context as Python values; None if there is none."""
    return None if context is msgspec.UNSET else msgspec.json.decode(context)


def payload_of(event: Event) -> Payload:
    """Return the payload of a stored event."""
    try:
        payload: Payload = _decoders[event[2]](event[4])
    except KeyError:
        text = f"event {event.seq} of experiment {event.experiment} is of the unknown kind {visible(event.kind)[:40]!r}"
        raise CorruptFile(f"{text}: upgrade robandit, or restore a backup") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        text = f"event {event.seq} of experiment {event.experiment} is damaged ({visible(str(error))[:120]})"
        raise CorruptFile(f"{text}: restore a backup") from error
    return payload
