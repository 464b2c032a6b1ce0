"""The events of an experiment's log, as they are stored.

The log is the truth, and a state is a fold of it (`robandit.decisions.experiment`). An event has a number (``seq``), a kind, an id
and a time. What else it holds is its payload in JSON: an event of the bandit (`robandit.live.events`) without its id and time, or
one of the structures below. A field that has its default is not written, so fields with defaults can be added without a new format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from robandit.errors import CorruptFile
from robandit.live.events import Added as Added
from robandit.live.events import ArmAdded as ArmAdded
from robandit.live.events import ArmAlarmed as ArmAlarmed
from robandit.live.events import ArmPaused as ArmPaused
from robandit.live.events import ArmResumed as ArmResumed
from robandit.live.events import ArmRetired as ArmRetired
from robandit.live.events import Context as Context
from robandit.live.events import Decided as Decided
from robandit.live.events import Expired as Expired
from robandit.live.events import Propensity as Propensity
from robandit.live.events import Rewarded as Rewarded
from robandit.live.events import Scaled as Scaled
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
    """A reward that was not learned: it came too late, or (``assignment``) after another reward of the unit's assignment."""

    value: float
    arm: str
    decided: float
    reason: Literal["window", "reset", "assignment"]
    metrics: dict[str, float] | None = None
    amount: float | None = None
    """As in `Rewarded`."""
    part: str = ""
    """As in `Added`: what came too late is an amount."""


class Allocated(_Payload, frozen=True, kw_only=True):
    """An allocation was made: the probabilities with which edges draw arms. Its version is the id of the event."""

    arms: tuple[str, ...]
    probabilities: tuple[float, ...]
    valid_for: float
    """Seconds."""
    decisions: int
    """The number of decisions that it was made for: those expected in this time."""
    before: int = 0
    """The number of decisions of edges that were in flight, by the measured rate and delay."""


class Observations(_Payload, frozen=True, kw_only=True):
    """Decisions that edges made, with their ends, in columns."""

    lives: tuple[str, ...]
    draws: tuple[tuple[str, str, float], ...]
    """The different versions, arms and propensities."""
    numbers: tuple[int, ...]
    """The numbers of the decisions in their lives. Their ids are LIFE-NUMBER."""
    decided: tuple[float, ...]
    values: tuple[float | None, ...]
    """The rewards. None: the decision expired."""
    life: tuple[int, ...] = ()
    """The position of each life. Empty: all decisions are of the first one."""
    draw: tuple[int, ...] = ()
    """The position of each draw. Empty: all decisions have the first one."""
    rewarded: tuple[float | None, ...] = ()
    """When each reward came. Empty: this is not known."""
    late: tuple[int, ...] = ()
    """The positions of rewards that came too late. They are not learned; their decisions expired."""
    expiry: float | None = None
    """The value that is learned from a decision that expired; None if nothing is learned."""
    rule: int = 0
    """As in `Decided`."""

    def rows(self) -> Iterator[tuple[str, tuple[str, str, float], float, float | None, bool]]:
        """Yield id, draw, time of the decision, reward (None: it expired), and whether the reward is late, for each decision."""
        late = set(self.late)
        lives = self.life or (0,) * len(self.numbers)
        draws = self.draw or (0,) * len(self.numbers)
        rows = zip(lives, self.numbers, draws, self.decided, self.values, strict=True)
        for place, (life, number, draw, decided, value) in enumerate(rows):
            yield f"{self.lives[life]}-{number}", self.draws[draw], decided, value, place in late


class Paused(_Payload, frozen=True, kw_only=True):
    """The experiment makes no decisions until it is resumed."""


class Resumed(_Payload, frozen=True, kw_only=True):
    """The experiment makes decisions again."""


class Reset(_Payload, frozen=True, kw_only=True):
    """All that was learned is forgotten. The arms stay, with their states."""

    seed: int


Payload: TypeAlias = (
    Created | Upgraded | Decided | Scaled | Rewarded | Added | Expired | Late
    | Allocated | Observations
    | ArmAdded | ArmPaused | ArmAlarmed | ArmResumed | ArmRetired | Paused | Resumed | Reset
)  # fmt: skip

KINDS: dict[type[Any], str] = {
    Created: "created",
    Upgraded: "upgraded",
    Decided: "decided",
    Scaled: "scaled",
    Rewarded: "rewarded",
    Added: "added",
    Expired: "expired",
    Late: "late",
    Allocated: "allocated",
    Observations: "observed",
    ArmAdded: "arm_added",
    ArmPaused: "arm_paused",
    ArmAlarmed: "arm_alarmed",
    ArmResumed: "arm_resumed",
    ArmRetired: "arm_retired",
    Paused: "paused",
    Resumed: "resumed",
    Reset: "reset",
}
"""The kind of each payload in the store."""

_decoders = {kind: msgspec.json.Decoder(payload).decode for payload, kind in KINDS.items()}
encode = msgspec.json.Encoder().encode


_SEPARATOR = "§"  # which no id of a decision has: they are ASCII


def amount_id(decision: str, part: str) -> str:
    """Return the id of the event of an amount."""
    return f"{decision}{_SEPARATOR}{part}"


def decision_id(id: str) -> str:
    """Return the id of the decision that an event is about, from the id of the event."""
    return id.partition(_SEPARATOR)[0]


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
