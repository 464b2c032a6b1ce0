"""What the client returns and keeps: decisions, rewards and reports. And the checks of what it sends."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from robandit_client.errors import InvalidInput, InvalidReward, RobanditError, formatted

if TYPE_CHECKING:
    from typing import TypeGuard  # Python 3.10

# The limits of the service. It checks them too; here they keep out what could never be delivered.
LONGEST_ID = 200
LONGEST_CONTEXT = 65_536
LARGEST_REWARD, SMALLEST_REWARD = 1e150, 1e-130

_PART = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_ID = re.compile(rf"[ -~]{{1,{LONGEST_ID}}}")


@dataclass(frozen=True)
class Decision:
    """The arm to use, and the id for its reward."""

    id: str
    arm: str
    experiment: str
    propensity: float | None
    """The probability of the choice; None if it was deterministic, or is unknown."""
    time: float
    """Seconds since 1970 (UTC): by the clock of the service, or by that of the client if ``seq`` is None."""
    seq: int | None
    """The number of the decision in the log; None if it is not stored yet."""
    fallback: bool = False
    """Whether the service, or its store, was away, and the arm is a fallback."""
    repeat: bool = False
    """Whether the unit got its arm again."""


@dataclass(frozen=True)
class Reward:
    """What became of a reward."""

    id: str
    experiment: str
    value: float
    outcome: Literal["applied", "added", "late", "kept", "rejected"]
    """applied: learned. added: an amount that is learned at the end, with the others. late: stored, not learned (it came too late,
    or after another reward of the same unit). kept: the client delivers it when the service is back. rejected: the service
    rejected the choice of the fallback, so this reward cannot be learned either; see `Client.rejected`."""


class DecisionRequest(TypedDict, total=False):
    """An item of `Experiment.decide_many`. The fields are those of `Experiment.decide`."""

    id: str
    among: Sequence[str]
    arm: str
    context: Any
    unit: str


ReportKey = tuple[str, str, bool]


@dataclass(frozen=True)
class Report:
    """A choice (``arm``) or a reward (``value``) that the client keeps until the service has it."""

    experiment: str
    id: str
    arm: str | None = None
    value: float | None = None
    context: Any = None
    metrics: dict[str, float] | None = None
    part: str | None = None
    """The name of an amount; None for a final reward, and for a choice."""

    @property
    def is_choice(self) -> bool:
        """Whether it reports a choice, not a reward."""
        return self.arm is not None

    @property
    def key(self) -> ReportKey:
        """What distinguishes it: a decision has one choice, one reward, and amounts with different names."""
        return self.experiment, self.id if self.part is None else f"{self.id}§{self.part}", self.is_choice

    @property
    def body(self) -> bytes:
        """The item of a batch that delivers it."""
        return encoded_choice(self.id, arm=self.arm, context=self.context) if self.is_choice else encoded_reward(self)


@dataclass(frozen=True)
class Observation(Report):
    """What came of a decision of an edge. ``value`` is None if it expired."""

    propensity: float = 1.0
    allocation: str = ""
    """The version of the allocation that it was drawn from."""
    decided: float = field(default=0.0, compare=False)
    """Seconds since 1970."""
    rewarded: float = field(default=0.0, compare=False)

    @property
    def is_choice(self) -> bool:
        """False: the choice is part of the observation."""
        return False

    @cached_property
    def body(self) -> bytes:
        """The item of a batch that delivers it. Always the same bytes, however often it is sent."""
        item = {
            "id": self.id,
            "arm": self.arm,
            "propensity": self.propensity,
            "allocation": self.allocation,
            "decided": self.decided,
        }
        end = {"expired": True} if self.value is None else {"value": self.value, "rewarded": self.rewarded}
        return encoded({**item, **end})


class Allocation(NamedTuple):
    """The next decisions of an experiment's policy, as probabilities."""

    version: str
    arms: tuple[str, ...]
    probabilities: tuple[float, ...]
    """In the order of the arms."""
    made: float
    """Seconds since 1970."""
    valid_for: float
    """Seconds after which the service makes another one."""
    decisions: int
    """The number of decisions that it was made for."""
    reward_window: float | None = None
    """That of the experiment."""


@dataclass(frozen=True)
class Rejection:
    """A report that the service rejected, and why."""

    report: Report
    error: RobanditError


def new_id() -> str:
    """Return a UUIDv7: 48 bits of time in milliseconds, then 74 random bits, so that new ids stand next to each other in an index.

    >>> len(new_id()), new_id()[14]
    (36, '7')
    """
    bits = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    bits = bits & ~(0xF << 76) | 7 << 76  # the version
    bits = bits & ~(0x3 << 62) | 2 << 62  # the variant
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def invalid(
    name: str, value: Any, rule: str, *, hint: str = "", error: type[InvalidInput] = InvalidInput
) -> InvalidInput:
    """Return the error for a value that breaks a rule. (`robandit.validation` has the same, and imports NumPy.)"""
    message = f"{name} = {formatted(value)} must be {rule}"
    return error(f"{message}; {hint}" if hint else message, parameter=name, value=value, rule=rule)


def checked_id(id: Any) -> str:
    """Return an id, if the service accepts it."""
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise invalid("id", id, f"a string of 1 to {LONGEST_ID} printable ASCII characters")
    return id


def checked_text(name: str, value: Any) -> str:
    """Return the name of an arm, an experiment or a unit, if it is a string that is not empty and can be written in UTF-8."""
    if not is_text(value):
        raise invalid(name, value, "a non-empty string")
    return value


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is a string that is not empty and can be written in UTF-8."""
    if not isinstance(value, str):
        return False
    try:
        return bool(value.encode())
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def checked_value(value: Any) -> float:
    """Return a reward as a float, if a policy can learn from it.

    >>> checked_value(2), checked_value(-0.5)
    (2.0, -0.5)
    >>> checked_value(float("nan"))
    Traceback (most recent call last):
    robandit...InvalidReward: reward = nan must be a finite number; skip it, or give a failure a finite cost
    """
    number = None
    if not isinstance(value, (str, bytes, bytearray)) and "bool" not in type(value).__name__:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is not None and (number == 0.0 or SMALLEST_REWARD <= abs(number) <= LARGEST_REWARD):
        return number
    if number is None and type(value) is not int:  # an int of 400 digits is a number
        raise invalid("reward", value, "a number", hint="pass a float", error=InvalidReward)
    if number is not None and not math.isfinite(number):
        hint = "skip it, or give a failure a finite cost"
        raise invalid("reward", value, "a finite number", hint=hint, error=InvalidReward)
    rule = f"a finite number within +-{LARGEST_REWARD:g}: 0, or at least {SMALLEST_REWARD:g} in size"
    raise invalid("reward", value, rule, error=InvalidReward)


def checked_metrics(metrics: Any) -> dict[str, float] | None:
    """Return the metrics of a reward, if they can be sent. None if there are none."""
    if not (metrics is None or isinstance(metrics, Mapping)):
        raise invalid("metrics", metrics, 'a dict of numbers, such as {"error": 0}')
    checked = {}
    for name, value in (metrics or {}).items():
        number = value if isinstance(value, (int, float)) else float("nan")
        if not abs(number) <= LARGEST_REWARD:
            raise invalid(f"metrics[{name!r}]", value, f"a number within +-{LARGEST_REWARD:g}, or a bool")
        checked[checked_text("metric", name)] = float(number)
    return checked or None


def checked_part(part: Any, final: Any, metrics: Any) -> str | None:
    """Return the name of an amount, by default a new one. None for the final reward."""
    if not isinstance(final, bool):
        raise invalid("final", final, "True or False")
    if final and part is not None:
        raise invalid("part", part, "left out, unless final is False")
    if not final and metrics is not None:
        raise invalid("metrics", metrics, "left out, unless final is True", hint="pass them at the end")
    if not (part is None or (isinstance(part, str) and _PART.fullmatch(part))):
        raise invalid("part", part, "1 to 64 characters of A-Z a-z 0-9 . _ : -")
    return None if final else new_id() if part is None else part


def checked_seconds(name: str, value: Any) -> float:
    """Return a duration, if it is positive and finite."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 < value <= sys.float_info.max:
        return float(value)
    raise invalid(name, value, "a finite number of seconds > 0")


def encoded_choice(
    id: str,
    *,
    among: Sequence[str] | None = None,
    arm: str | None = None,
    context: Any = None,
    unit: str | None = None,
) -> bytes:
    """Return the body of a request for a decision. A context of None is not sent."""
    body: dict[str, Any] = {"id": checked_id(id)}
    if among is not None and arm is not None:
        raise InvalidInput("arm and among exclude each other: pass one of them", parameter="arm", value=arm)
    if among is not None:
        if isinstance(among, str):
            raise invalid("among", among, "a list of arms", hint=f"pass [{formatted(among)}]")
        body["among"] = [checked_text("among", each) for each in among]
    if arm is not None:
        body["arm"] = checked_text("arm", arm)
    if unit is not None:
        if arm is not None:
            raise InvalidInput("arm and unit exclude each other: pass one of them", parameter="unit", value=unit)
        body["unit"] = checked_text("unit", unit)
    if context is not None:
        size = len(encoded(context, "context"))
        if size > LONGEST_CONTEXT:
            rule = f"at most {LONGEST_CONTEXT:,} bytes of JSON"
            raise InvalidInput(f"context has {size:,} bytes and must be {rule}", parameter="context", rule=rule)
        body["context"] = context
    return encoded(body)


def encoded_reward(report: Report) -> bytes:
    """Return the body of a request that sends a reward."""
    body: dict[str, Any] = {"id": checked_id(report.id), "value": report.value}
    if report.metrics is not None:
        body["metrics"] = report.metrics
    return encoded(body if report.part is None else {**body, "final": False, "part": report.part})


def encoded(value: Any, name: str = "body") -> bytes:
    """Return a value as JSON in UTF-8. Floats have the shortest form that reads back the same."""
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        rule = "of the types of JSON: dict, list, str, int, finite float, bool and None"
        raise invalid(name, value, rule, hint=str(error)[:100]) from error
