"""The events of an experiment's log, as they are stored.

The log is the truth, and a state is a fold of it (`robandit.decisions.experiment`). An event has a number (``seq``), a kind, an id
and a time. What else it holds is its payload in JSON: an event of the bandit (`robandit.live.events`) without its id and time, or
one of the structures below. A field that has its default is not written, so fields with defaults can be added without a new format.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from robandit.errors import CorruptFile
from robandit.live.events import ArmAdded as ArmAdded
from robandit.live.events import ArmPaused as ArmPaused
from robandit.live.events import ArmResumed as ArmResumed
from robandit.live.events import ArmRetired as ArmRetired
from robandit.live.events import Context as Context
from robandit.live.events import Decided as Decided
from robandit.live.events import Expired as Expired
from robandit.live.events import Propensity as Propensity
from robandit.live.events import Rewarded as Rewarded
from robandit.storage import Event
from robandit.wording import visible


class _Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event holds beyond its kind, its id and its time."""


class Created(_Payload, frozen=True, kw_only=True):
    """The experiment was created. Its settings stand beside the log."""

    version: str
    """The version of Robandit that decides from here on."""


class Upgraded(_Payload, frozen=True, kw_only=True):
    """Another version of Robandit decides from here on."""

    version: str


class Late(_Payload, frozen=True, kw_only=True):
    """A reward that came too late, and was not learned."""

    value: float
    arm: str
    decided: float
    reason: Literal["window", "reset"]


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
