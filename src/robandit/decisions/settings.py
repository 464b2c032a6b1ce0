"""The settings of an experiment: they are given once, when it is created, and never change."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from robandit import validation
from robandit.anytime.evidence import checked_cap
from robandit.errors import InvalidInput, InvalidReward, RobanditError
from robandit.experiments.notation import policies_from
from robandit.features import Encoder
from robandit.inputs import checked_reward
from robandit.live.deadlines import checked_deadline
from robandit.live.guardrails import Guardrail, checked_metrics
from robandit.live.objective import policy_for
from robandit.objectives import MEAN
from robandit.policies.base import Policy
from robandit.policies.default import DEFAULT
from robandit.policies.floor.floor import Floor
from robandit.policies.linear.ada_clip import AdaClipTS
from robandit.policies.linear.columns import for_columns

MOST_ARMS = 1_000
MOST_OPEN = 1_000_000
LONGEST_NAME = 100
LONGEST_UNIT = 20
LONGEST_FEATURES = 65_536  # bytes of JSON: they are saved with every snapshot
DEFAULT_OPEN = 100_000
DEFAULT_POLICY = DEFAULT.tag()
SHORTEST_WINDOW = 0.001
LONGEST_WINDOW = 10 * 366 * 86_400.0
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")

ARM = re.compile(rf"[^\x00-\x1f\x7f-\x9f]{{1,{LONGEST_NAME}}}")
UNIT = re.compile(rf"[^\x00-\x1f\x7f-\x9f]{{0,{LONGEST_UNIT}}}")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings as they are stored: checked, and with all defaults filled in."""

    arms: tuple[str, ...]
    policy: dict[str, Any]
    """The form of `Policy.to_dict`."""
    minimize: bool
    seed: int | None
    """The seed that was given. Without one, `drawn` was taken from the system."""
    reward_window: float | None
    on_expiry: float | Literal["drop"]
    max_open: int
    drawn: int
    """The seed that the bandit is made with."""
    unit: str = ""
    """What the rewards are measured in, for people."""
    fallback: str | None = None
    """The arm that is used while the store cannot be reached."""
    sticky_for: float | None = None
    """Seconds for which the unit of a decision, such as a user, keeps its arm."""

    cap: float | None = None
    """The size from which on rewards count alike in claims about means (`robandit.Bandit`)."""
    floor: float | None = None
    """The share of decisions that is drawn uniformly."""
    control: dict[str, float] | None = None
    """The shares of all decisions that single arms get."""
    metrics: tuple[str, ...] | None = None
    """The names of other numbers that rewards come with."""
    guardrails: tuple[Guardrail, ...] | None = None
    objective: str | None = None
    """What is optimised, in the notation of `robandit.objectives`. None: the mean."""
    deadline: float | None = None
    """Seconds after which a decision times out: rewards are elapsed times."""
    failure_cost: float | None = None
    """The cost of a failure or a time-out. None: the deadline."""
    features: dict[str, dict[str, Any]] | None = None
    """The forms of `Number.to_dict` and `Category.to_dict`, in the order of the columns of x."""

    @property
    def window(self) -> float | None:
        """Seconds after which a decision expires or times out."""
        return self.reward_window if self.deadline is None else self.deadline

    @property
    def expiry(self) -> float | None:
        """The value that is learned from a decision without a reward; None if nothing is learned."""
        if self.deadline is not None:
            return self.deadline if self.failure_cost is None else self.failure_cost
        return None if self.on_expiry == "drop" else float(self.on_expiry)

    def first_difference(self, other: Settings) -> str | None:
        """Return the first setting that differs, with both values, for a message. None if the same request made both."""
        for name in self.__struct_fields__:
            own, others = getattr(self, name), getattr(other, name)
            if name == "policy":  # as values, because earlier versions wrote other parameters
                own, others = repr(self.made_policy()), repr(other.made_policy())
            if name != "drawn" and own != others:
                return f"{name} is {_as_json(own)}, not {_as_json(others)}"
        return None

    def made_policy(self) -> Policy:
        """Return the policy."""
        policy = Policy.from_dict(self.policy)
        return _with_floor(policy, self.floor, self.control) if self.has_floor else policy

    @property
    def has_floor(self) -> bool:
        """Whether `made_policy` puts a floor around the policy."""
        return self.floor is not None or self.control is not None

    def inner_policy(self, made: Policy) -> Policy:
        """Return the policy that was asked for, from one that `made_policy` returned."""
        return made.of if self.has_floor and isinstance(made, Floor) else made


def _as_json(value: Any) -> str:
    """Return a setting as in a request, at most 80 characters."""
    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:60]} ... {text[-10:]}"


def checked_name(name: str) -> str:
    """Return the name of an experiment, if it is valid."""
    if not NAME.fullmatch(name):
        rule = f"1 to {LONGEST_NAME} of the characters A-Z a-z 0-9 . _ -, starting with a letter or a digit"
        raise validation.invalid("name of an experiment", name, rule)
    return name


def checked_arm(arm: Any) -> str:
    """Return the name of an arm, if it is valid."""
    rule = f"a string of 1 to {LONGEST_NAME} characters, without control characters"
    name = validation.text(arm, "arm", rule)
    if not ARM.fullmatch(name):
        raise validation.invalid("arm", arm, rule)
    return name


def checked_settings(
    *,
    arms: list[str],
    policy: str | None,
    minimize: bool,
    seed: int | None,
    reward_window: float | None,
    on_expiry: float | str,
    max_open: int | None,
    drawn: int,
    unit: str = "",
    fallback: str | None = None,
    sticky_for: float | None = None,
    cap: float | None = None,
    floor: float | None = None,
    control: dict[str, float] | None = None,
    metrics: Sequence[str] | None = None,
    guardrails: Sequence[msgspec.Struct] | None = None,
    objective: str | None = None,
    deadline: float | None = None,
    failure_cost: float | None = None,
    features: dict[str, Any] | None = None,
) -> Settings:
    """Return the settings that a request asks for. ``policy`` has the notation of specs."""
    if not 1 <= len(arms) <= MOST_ARMS:
        raise validation.invalid("number of arms", len(arms), f"from 1 to {MOST_ARMS:,}")
    names = tuple(checked_arm(arm) for arm in arms)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise validation.invalid("arm", twice, "given once")
    if seed is not None:
        seed = validation.integer(seed, "seed", 0, 2**63 - 1)
    for name, value, default in (("reward_window", reward_window, None), ("on_expiry", on_expiry, "drop")):
        if deadline is not None and value != default:
            rule = "left out: with a deadline, a decision without a reward times out after it, and costs failure_cost"
            raise validation.invalid(name, value, rule)
    if reward_window is not None:
        reward_window = validation.within(reward_window, "reward_window", SHORTEST_WINDOW, LONGEST_WINDOW)
    if on_expiry != "drop":
        if isinstance(on_expiry, str):
            raise validation.invalid("on_expiry", on_expiry, '"drop", or the value to learn in place of the reward')
        try:
            on_expiry = checked_reward(on_expiry)
        except InvalidReward as error:
            raise validation.invalid("on_expiry", on_expiry, str(error.rule)) from None
        if reward_window is None:
            raise InvalidInput(f"on_expiry = {on_expiry:g} needs a reward_window: without one, no decision expires")
    if not UNIT.fullmatch(unit):
        rule = f"a string of at most {LONGEST_UNIT} characters, without control characters"
        raise validation.invalid("unit", unit, rule)
    if fallback is not None and fallback not in names:
        raise validation.invalid("fallback", fallback, "one of the arms")
    if sticky_for is not None:
        sticky_for = validation.within(sticky_for, "sticky_for", SHORTEST_WINDOW, LONGEST_WINDOW)
    encoder = None if features is None else _checked_features(features)
    given_policy = None if policy is None else _checked_policy(policy)
    chosen, aim = policy_for(AdaClipTS() if encoder and given_policy is None else given_policy, objective)
    _check_contextual(chosen, policy, encoder)
    cap = checked_cap(cap, aim)
    if cap is not None and isinstance(on_expiry, float) and on_expiry < 0.0:
        raise validation.invalid("on_expiry", on_expiry, "at least 0, since there is a cap", hint="or leave out cap")
    if deadline is not None and aim != MEAN:
        rule = "left out: a deadline is about the mean"
        raise validation.invalid("objective", objective, rule)
    times = checked_deadline(deadline, failure_cost, chosen, minimize=minimize, alone=sticky_for is None)
    if floor is not None or control is not None:
        _check_floor(chosen, floor, control, names)
    rails = _checked_guardrails(guardrails)
    checked_metrics(metrics, rails)
    given = DEFAULT_OPEN if max_open is None else validation.integer(max_open, "max_open", 1, MOST_OPEN)
    return Settings(
        arms=names,
        policy=chosen.to_dict(),
        minimize=minimize,
        seed=seed,
        reward_window=reward_window,
        on_expiry="drop" if on_expiry == "drop" else float(on_expiry),
        max_open=given,
        drawn=drawn if seed is None else seed,
        unit=unit,
        fallback=fallback,
        sticky_for=sticky_for,
        cap=cap,
        floor=floor,
        control=control,
        metrics=None if metrics is None else tuple(metrics),
        guardrails=rails,
        objective=None if aim == MEAN else aim.text,
        deadline=None if times is None else times[0],
        failure_cost=None if times is None or failure_cost is None else times[1],
        features=None if encoder is None else {name: each.to_dict() for name, each in encoder.features.items()},
    )


def _checked_features(given: dict[str, Any]) -> Encoder:
    """Return the encoder of features, so that their columns are counted, too."""
    size = len(msgspec.json.encode(given))
    if size > LONGEST_FEATURES:
        raise validation.invalid("features", f"{size:,} bytes", f"at most {LONGEST_FEATURES:,} bytes of JSON")
    try:
        return Encoder(given)
    except InvalidInput as error:
        raise InvalidInput(str(error), parameter="features", value=given, rule=error.rule) from error


def _check_contextual(policy: Policy, notation: str | None, encoder: Encoder | None) -> None:
    """Raise `InvalidInput` if the policy does not use features that there are, or needs some."""
    if encoder is None and policy.contextual:
        hint = 'send features, such as {"region": {"type": "category", "values": ["eu", "us"]}}'
        raise validation.invalid("features", None, f"given: {policy.name} learns from them", hint=hint)
    if encoder is None:
        return
    if not policy.contextual:
        hint = f"leave policy out, take PerCell({policy!r}) for a few categories, or leave features out"
        raise validation.invalid("policy", notation, "one that learns from features", hint=hint)
    try:
        for_columns(policy, len(encoder.columns))
    except InvalidInput as error:
        raise InvalidInput(str(error), parameter="policy", value=notation, rule=error.rule) from error


def _checked_guardrails(given: Sequence[msgspec.Struct] | None) -> tuple[Guardrail, ...] | None:
    try:
        return None if given is None else tuple(Guardrail(**msgspec.structs.asdict(each)) for each in given)
    except InvalidInput as error:
        raise InvalidInput(str(error), parameter="guardrails", value=given, rule=error.rule) from error


def _with_floor(policy: Policy, floor: float | None, control: dict[str, float] | None) -> Floor:
    return Floor(policy, share=math.fsum([floor or 0.0, *(control or {}).values()]), arms=control)


def _check_floor(policy: Policy, floor: float | None, control: dict[str, float] | None, names: tuple[str, ...]) -> None:
    """Raise `InvalidInput` if the policy cannot have this floor."""
    if floor is not None:
        validation.within(floor, "floor", 0.0, 1.0, open_low=True)
    if control is not None and not control:
        raise validation.invalid("control", control, 'arms with their shares, such as {"a": 0.05}', hint="or null")
    for arm, share in (control or {}).items():
        if arm not in names:
            raise validation.invalid("control", arm, "one of the arms")
        validation.within(share, "control", 0.0, 1.0, open_low=True)
    total = math.fsum([floor or 0.0, *(control or {}).values()])
    if total > 1.0:
        raise validation.invalid("control", total, "shares that sum to at most 1, floor included")
    try:
        _with_floor(policy, floor, control)
    except RobanditError as error:  # such as a policy that weights rewards
        raise InvalidInput(str(error), parameter="floor", value=floor, rule=error.rule) from error


def _checked_policy(notation: str) -> Policy:
    try:
        chosen = policies_from(notation)
    except InvalidInput as error:  # about the notation, or a parameter of the policy
        raise InvalidInput(str(error), parameter="policy", value=notation, rule=error.rule) from error
    if len(chosen) != 1:
        names = " or ".join(repr(policy) for policy in chosen[:3])
        raise validation.invalid("policy", notation, f"one policy, not {len(chosen)}", hint=f"write {names}")
    return chosen[0]
