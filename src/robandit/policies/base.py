"""What a policy is: an immutable value with parameters, and hooks that are compiled.

A subclass declares its parameters as annotated fields (keyword-only, stored as given) and writes

- ``init(self, arms, horizon)``: a NamedTuple of NumPy arrays, the state; ``horizon`` is None in a live bandit. A field
  ``rng`` of four ``uint64`` is seeded for it and is its own random stream, for `robandit.kernel.random.uniform(s.rng)` and
  its siblings;
- ``select(p, s)``: the arm to pull. It may change caches and ``rng`` only: asking never learns;
- ``update(p, s, arm, reward)``: learn from a reward;

the last two as static methods in the subset of Python that Numba compiles, without allocating. Compiled code does not check
indices: one outside an array reads or writes other memory. ``p`` holds the numeric parameters by name (see
`Policy.params`). That is all for most policies. The rest is optional:

- ``take(p, s, arm)``: a pull is made, its reward is not there yet. Returns a number, the mark, which comes back as fifth argument
  of ``update`` even if rewards arrive late and out of order. For a policy with ``weighted = True`` it is the
  probability with which the arm was chosen;
- ``expire(p, s, arm, mark)``: the reward of that pull will never come;
- ``full(p, s)`` and ``grow(self, state)``: the state needs more room, and gets it;
- ``estimate(p, s, arm, out)``: fills ``out`` with the numbers named in ``columns``, for `Bandit.estimates`;
- ``counters(self, state)``: numbers about the whole run worth showing;
- ``validate(self)``: raises `InvalidInput` for parameters outside their domain;
- ``about``: `Facts`, for the table of all policies. A parameter named in its ``knows`` may be None, "not told yet": such a policy
  is a value like any other, `Policy.informed_by` fills it in, and until then it refuses to play. A parameter ``horizon`` is
  filled in by `simulate`.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, Self, cast, dataclass_transform

import numpy as np

from robandit.errors import InvalidInput, NotApplicable, formatted
from robandit.kernel import loops
from robandit.kernel.types import UInts
from robandit.policies.facts import Facts

__all__ = ["Policy", "also_called", "check_eps", "check_horizon", "check_number", "check_policy_given", "check_whole"]

LEAST_EPS = 1e-9  # formulas have powers of 1/eps, and 1 + eps must differ from 1
_registry: dict[str, type[Policy]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """An algorithm with its parameters: immutable, hashable, JSON-able. See the module for how to write one."""

    label: ClassVar[str] = ""
    """The name that people read; the class name unless set."""
    weighted: ClassVar[bool] = False
    """Whether updates are weighted by the probability of the decision, so that a reward without a decision is refused."""
    uses_rewards: ClassVar[bool] = True
    """False for a policy whose choices do not depend on rewards, such as one that plays arms in turn."""
    columns: ClassVar[tuple[str, ...]] = ()
    about: ClassVar[Facts] = Facts()

    def __init_subclass__(cls) -> None:
        """Make the subclass a frozen, keyword-only dataclass and remember it by its tag."""
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        if "label" not in vars(cls):
            cls.label = cls.__name__
        _registry[cls.tag()] = cls

    def __post_init__(self) -> None:
        """Check the parameters, once, when the policy is made. NumPy's numbers become Python's, and lists tuples: it is a value."""
        for f in dataclasses.fields(self):
            if isinstance(value := getattr(self, f.name), np.generic):
                object.__setattr__(self, f.name, value.item())
        try:
            self.validate()
        except InvalidInput:
            raise
        except (TypeError, ValueError):  # such as of an array, which is neither equal to a word nor different from it
            self._refuse_what_is_no_value()
            raise
        for f in dataclasses.fields(self):
            if isinstance(value := getattr(self, f.name), list):
                object.__setattr__(self, f.name, tuple(value))
        self._refuse_what_is_no_value()

    def _refuse_what_is_no_value(self) -> None:
        for f in dataclasses.fields(self):
            try:
                hash(value := getattr(self, f.name))
            except TypeError:
                raise InvalidInput(
                    f"{type(self).__name__}: {f.name} = {value!r} must be a number, a word, None or a tuple of them: a policy "
                    "is a value, and cannot change"
                ) from None

    def validate(self) -> None:
        """Raise `InvalidInput` for parameters outside their domain."""

    @property
    def facts(self) -> Facts:
        """What is known about the algorithm: what it must be told, its bounds, its source."""
        return self.about

    @property
    def longest(self) -> int | None:
        """The most pulls that it makes in one run: its horizon, if it has one; None: there is no end."""
        longest: int | None = getattr(self, "horizon", None)
        return longest

    @classmethod
    def variants(cls) -> tuple[Policy, ...]:
        """The algorithms that this class holds, with default parameters: one, unless a parameter chooses among several."""
        return (cls(),)

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        """This policy with the parameters that it must be told, where it has none yet, taken from a problem.

        They are the smallest valid ones: u and v are the largest moments of the arms. A policy that needs an order gets ``eps``;
        None: min(1, 0.9 (tail index - 1)), so that the moment exists and is not about to be infinite. Parameters that were
        given stay, and a policy that must know nothing is returned as it is, so a whole list of policies can be informed.

        >>> from robandit import AdaRUCB, RobustMOSS, problems
        >>> problem = problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
        >>> policy = RobustMOSS().informed_by(problem)
        >>> policy.eps, round(policy.u, 6)
        (0.45, 16.664371)
        >>> AdaRUCB().informed_by(problem) == AdaRUCB()
        True
        """
        for name in ("tail_index", "u", "v", "laws"):
            if not hasattr(problem, name):
                raise InvalidInput(f"informed_by: {problem!r} is not a problem: make one with Problem(laws)")
        known: dict[str, Any] = {}
        order = getattr(self, "eps", None)
        if isinstance(eps, np.generic):
            eps = eps.item()
        if eps is not None:
            check_eps("informed_by", eps)
            if order not in (None, eps) and "eps" in self.facts.knows:
                raise InvalidInput(
                    f"{self!r} has an eps already, and eps = {eps!r} is asked for: leave one of them out"
                )
        if order is None:
            order = min(1.0, 0.9 * (problem.tail_index - 1.0)) if eps is None else eps
            if order < LEAST_EPS and "eps" in self.facts.knows:
                raise NotApplicable(
                    f"{type(self).__name__} must be told eps, and a tail index of {problem.tail_index!r} leaves {order:.3g}: "
                    f"it must be at least {LEAST_EPS:g}"
                )
        for name in self.facts.knows:
            if name == "horizon" or getattr(self, name) is not None:
                continue
            known[name] = self.learned(name, problem, order)
            if isinstance(known[name], float) and not 0.0 < known[name] < math.inf:
                way = ", or a smaller eps" if known[name] == math.inf and "eps" in self.facts.knows else ""
                raise NotApplicable(
                    f"{type(self).__name__} must be told {name}, which is {known[name]:g} on this problem (tail index "
                    f"{problem.tail_index:g}), and it must be finite and above 0: take another policy{way}"
                )
        return dataclasses.replace(self, **known) if known else self

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """What a problem says about a parameter that must be told. Override it for parameters other than eps, u and v."""
        values = {"eps": lambda: eps, "u": lambda: float(problem.u(eps)), "v": lambda: float(problem.v(eps))}
        if name not in values:
            raise NotApplicable(f"{type(self).__name__} must be told {name}, which a problem does not say: pass it")
        return values[name]()

    def prepared(self, horizon: int | None) -> Self:
        """This policy, ready for that many pulls (None: until its own horizon, if it has one), or an error that says why not."""
        if isinstance(horizon, np.generic):
            horizon = horizon.item()
        check_horizon(type(self).__name__, horizon)
        missing = [name for name in self.facts.knows if getattr(self, name) is None]
        own = getattr(self, "horizon", None)
        if own is None and hasattr(self, "horizon") and horizon is not None:
            filled: dict[str, Any] = {"horizon": horizon}
            return dataclasses.replace(self, **filled).prepared(horizon)
        if missing:
            example = ", ".join(f"{name}=..." for name in missing)
            way = ".prepared(horizon)" if missing == ["horizon"] else ".informed_by(problem)"
            raise InvalidInput(
                f"{self!r} cannot play before it is told {', '.join(missing)}: make it with {example}, or use {way}"
            )
        if own is not None and horizon is not None and horizon > own:
            raise InvalidInput(
                f"{self!r} is made for {own} pulls, and {horizon} are asked for: leave its horizon out, or give it {horizon}"
            )
        return self

    def init(self, arms: int, horizon: int | None) -> Any:
        """Make the state of a new run: a NamedTuple of arrays."""
        raise InvalidInput(f"{type(self).__name__} has no init(self, arms, horizon): a policy makes its own state")

    def start(self, arms: int, horizon: int | None, stream: UInts) -> Any:
        """The state of a new run, checked, with its random stream in place."""
        state = self.init(arms, horizon)
        check_state(type(self).__name__, state)
        if "rng" in state._fields:
            state.rng[:] = stream
        return state

    # select(p, s), and update(p, s, arm, reward) with or without a mark, which Python's types cannot say; `hooks` evens it out.
    select: ClassVar[Any]
    update: ClassVar[Any]
    take: ClassVar[Any] = staticmethod(loops.take_nothing)
    expire: ClassVar[Any] = staticmethod(loops.expire_nothing)
    full: ClassVar[Any] = staticmethod(loops.never_full)

    def grow(self, state: Any) -> Any:
        """Give the state more room, with nothing lost."""
        raise InvalidInput(f"{type(self).__name__} says that its state is full, but has no grow(self, state)")

    def counters(self, state: Any) -> dict[str, int]:
        """Numbers about the whole run worth showing."""
        return {}

    def params(self) -> Any:
        """Return the numbers that hooks get as ``p``: the numeric fields, by name. Override it to turn words into numbers.

        A field annotated as a float is handed over as a float, so that ``scale=2`` needs no kernel of its own.
        """
        numeric = {}
        for f in dataclasses.fields(self):
            if isinstance(value := getattr(self, f.name), (int, float)):
                numeric[f.name] = float(value) if f.type in ("float", float) else value
        return _record(tuple(numeric) or ("nothing",))(*(numeric.values() or (0.0,)))

    @property
    def name(self) -> str:
        """The label, with the parameters that are not at their defaults.

        >>> from robandit import UCB1
        >>> UCB1().name, UCB1(scale=2.0).name
        ('UCB1', 'UCB1(scale=2.0)')
        """
        changed = [
            f"{f.name}={_short(getattr(self, f.name))}"
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default
        ]
        return f"{self.label}({', '.join(changed)})" if changed else self.label

    def to_dict(self) -> dict[str, Any]:
        """The policy as JSON-able data; `Policy.from_dict` reads it back.

        >>> from robandit import UCB1
        >>> UCB1(scale=2.0).to_dict()
        {'policy': 'UCB1', 'scale': 2.0}
        """
        return {"policy": self.tag()} | {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Policy:
        """The policy that `to_dict` described.

        >>> Policy.from_dict({"policy": "UCB1", "scale": 2.0})
        UCB1(scale=2.0)
        """
        import msgspec

        if not isinstance(data, Mapping):
            raise InvalidInput(f'{data!r} is not a policy: it must be an object with the class name under "policy"')
        given = dict(data)
        tag = given.pop("policy", None)
        if not isinstance(tag, str) or tag not in _registry:
            known = ", ".join(sorted(t for t in _registry if ":" not in t))
            raise InvalidInput(
                f"policy {tag!r} is not known here: Robandit has {known}; a policy of your own must be imported before it is read"
            )
        cls = _registry[tag]
        fields = {f.name for f in dataclasses.fields(cls)}
        for name in given:
            if name not in fields:
                raise InvalidInput(f"{tag} has no parameter {name!r}: it has {', '.join(sorted(fields)) or 'none'}")
        try:
            return msgspec.convert(given, cls)
        except (msgspec.ValidationError, ArithmeticError) as error:  # the latter: a whole number beyond a double
            raise InvalidInput(f"{tag} cannot be made from {given}: {error}") from error

    @classmethod
    def tag(cls) -> str:
        """The name in JSON: the class name for Robandit's own policies, ``module:name`` for others."""
        own = cls.__module__.startswith("robandit.")
        return cls.__name__ if own else f"{cls.__module__}:{cls.__qualname__}"

    def hooks(self, *names: str) -> tuple[Any, ...]:
        """The hooks with these names, ready to be bound to an entry of :mod:`robandit.kernel.loops`."""
        return hooks_of(type(self), *names)


def hooks_of(owner: type[Any], *names: str) -> tuple[Any, ...]:
    """The hooks of a class, checked. A policy that holds several algorithms keeps each in a class of its own."""
    return tuple(_hook(owner, name) for name in names)


def _short(value: Any) -> str:
    """As people want to read a parameter."""
    return f"{value:.6g}" if isinstance(value, float) and len(repr(value)) > 8 else repr(value)


_SIGNATURES = {
    "select": ("p, s",),
    "update": ("p, s, arm, reward", "p, s, arm, reward, mark"),
    "take": ("p, s, arm",),
    "expire": ("p, s, arm, mark",),
    "full": ("p, s",),
    "estimate": ("p, s, arm, out",),
}


def _hook(cls: type[Any], name: str) -> Any:
    hook = getattr(cls, name, None)
    wanted = " or ".join(f"{name}({signature})" for signature in _SIGNATURES[name])
    if hook is None:
        raise InvalidInput(f"{cls.__name__} has no {name}: write it as a static method, {wanted}")
    given = inspect.signature(hook)
    if not isinstance(inspect.getattr_static(cls, name), staticmethod):
        raise InvalidInput(
            f"{name}{given} of {cls.__name__} is not static: put @staticmethod above it, and write {wanted}"
        )
    count = len(given.parameters)
    if count not in {len(signature.split(",")) for signature in _SIGNATURES[name]}:
        raise InvalidInput(f"{name}{given} of {cls.__name__} has {count} parameters: write {wanted}")
    return partial(loops.without_mark, hook) if name == "update" and count == 4 else hook


def check_state(owner: str, state: Any) -> None:
    """Raise `InvalidInput` unless this is what compiled hooks can work on and a file can hold."""
    if not isinstance(state, tuple) or not getattr(state, "_fields", ()):
        raise InvalidInput(f"init of {owner} returned {type(state).__name__}: it must be a NamedTuple of NumPy arrays")
    arrays = list(state)
    for name, array in zip(cast(Any, state)._fields, arrays, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise InvalidInput(
                f"the state of {owner} has {name} = {kind}: it must be an array of numbers; one number is an array of 1"
            )
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise InvalidInput(f"the state of {owner} has a {name} that is not contiguous or not writable: use .copy()")
        if sum(np.may_share_memory(array, other) for other in arrays) > 1 and array.size:
            raise InvalidInput(
                f"the state of {owner} has a {name} that shares its memory with another field: use .copy()"
            )
        if name == "rng" and (array.dtype != np.uint64 or array.shape != (4,)):
            raise InvalidInput(
                f"the state of {owner} has rng = {array.dtype}{array.shape}: it must be np.zeros(4, dtype=np.uint64)"
            )


@cache
def _record(fields: tuple[str, ...]) -> Any:
    return cast(Any, NamedTuple)("Params", [(name, float) for name in fields])


def check_number(
    owner: str, name: str, value: Any, *, above: float = -math.inf, below: float = math.inf, least: float | None = None
) -> None:
    """Raise `InvalidInput` unless the value is a finite number with ``above < value < below`` (or ``least <= value``)."""
    rule = f"a finite number {f'>= {least:g}' if least is not None else f'> {above:g}' if above > -math.inf else ''}".strip()
    if below < math.inf:
        rule += f" and < {below:g}"
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    good = good and above < value < below and (least is None or value >= least)
    if not good:
        raise InvalidInput(f"{owner}: {name} = {value!r} must be {rule}")


def check_whole(owner: str, name: str, value: Any, least: int, most: int) -> None:
    """Raise `InvalidInput` unless the value is a whole number from least to most."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(f"{owner}: {name} = {value!r} must be a whole number from {least} to {most}")


def check_policy_given(policy: Any) -> None:
    """Raise `InvalidInput` unless this is a policy, and not its class."""
    if not isinstance(policy, Policy):
        hint = f"did you mean {policy.__name__}()?" if isinstance(policy, type) else "give one, such as robandit.UCB1()"
        raise InvalidInput(f"policy = {policy!r} is not a policy: {hint}")


def also_called(tag: str, cls: type[Policy]) -> None:
    """Let `Policy.from_dict` know a policy by a second name."""
    _registry[tag] = cls


def check_eps(owner: str, eps: Any) -> None:
    """Raise `InvalidInput` unless eps, the moments' order minus 1, is in (0, 1], or None: not told yet."""
    if eps is None:
        return
    if not isinstance(eps, (int, float)) or isinstance(eps, bool) or not LEAST_EPS <= eps <= 1.0:
        raise InvalidInput(f"{owner}: eps = {eps!r} must be a number with 0 < eps <= 1 (and at least {LEAST_EPS:g})")


def check_horizon(owner: str, horizon: Any) -> None:
    """Raise `InvalidInput` unless the horizon is a whole number of pulls, or None: not told yet."""
    if horizon is None:
        return
    if not isinstance(horizon, int) or isinstance(horizon, bool) or not 1 <= horizon <= 2**53:
        raise InvalidInput(f"{owner}: horizon = {formatted(horizon)} must be a whole number from 1 to 2^53")
