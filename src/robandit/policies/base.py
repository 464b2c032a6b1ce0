"""The base class of policies, which are immutable values with parameters and compiled hooks.

A subclass declares its parameters as annotated fields (keyword-only, stored as plain Python values) and writes three hooks:
``init`` makes the state, ``select`` chooses an arm, ``update`` learns from a reward. `select` and `update` are static methods
in the subset of Python that Numba compiles. They may use numbers, arrays, ``math``, ``numpy``, other plain functions and module
constants. They may not allocate. A live bandit checks their array indices; the simulation does not. An index policy needs less code
(:mod:`robandit.policies.index`). `Policy` lists its members in three tiers. Further parts:

- ``s.allowed``: one boolean per arm, which `Policy.start` adds to the state. It is False for an arm that must not be chosen now,
  such as a paused one. A ``select`` that reads it declares ``respects_allowed = True``; index policies do so without further code;
- ``s.unrewarded``: the pulls of each arm without a reward, because it is still to come or will never come, which `Policy.start`
  also adds. A policy that counts them does not pull an arm again and again before its first reward. Index policies do so without
  further code. Its last entry is 1, or 0 while a log of Robandit 0.2 is replayed, whose rule did not count them;
- ``x``: a policy whose hooks have a parameter ``x`` after ``s`` or ``arm``, such as ``select(p, s, x)`` and ``update(p, s, arm, x,
  reward)``, gets the features of the decision there. It sets ``contextual = True``, has a parameter ``d``, the length of x, with
  the default 1, and a field ``x`` of its state, which is filled in before each hook is called;
- ``about``: `Facts`, for the table of policies. A parameter named in ``knows`` may be None until `Policy.informed_by` fills it in.
  The policy cannot play before. `simulate` fills in a parameter called ``horizon``.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import cache, partial
from importlib.machinery import ModuleSpec
from typing import Any, ClassVar, NamedTuple, Self, cast, dataclass_transform

import numpy as np

from robandit.errors import InvalidInput, NotApplicable, RobanditError, formatted
from robandit.hints import guided
from robandit.kernel import loops
from robandit.kernel.lazy import forget_leader, lazy_state
from robandit.kernel.types import Bools, Ints, UInts
from robandit.policies.facts import Facts, Late
from robandit.policies.former import renewed
from robandit.validation import LEAST_EPS, integer, invalid, mapping, order, plain
from robandit.wording import visible

_registry: dict[str, type[Policy]] = {}
_DEFINED = "_robandit_defined"
ARM_FIELDS = ("allowed", "unrewarded")
"""The fields that `with_arms` adds to a state."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field,))
@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """An algorithm with its parameters. It is immutable, hashable and JSON-able. The module describes how to write one.

    A subclass **must** write `init`, `select` and `update`.

    It **may** write ``take``, ``expire``, ``chance``, ``estimate``, `grow` (with ``full``) and `validate`, and set the class
    attributes below. Few policies need more: `params` and `learned` if a parameter is not a plain number; `algorithm`, `facts`,
    `variants`, `name`, `longest`, `informed_by` and `prepared` if a parameter chooses among algorithms or limits a run; `objective`
    and `signed` if it does not learn the mean; `counters`; and `forget_choice`, `paused`, `resumed` and `extended` if the state
    must know that arms come and go.

    The rest is **machinery**, and final: `start`, `grown`, `set_allowed`, `hooks`, `randomised`, `to_dict`, `from_dict`, `tag`. A
    subclass that overrides it is rejected.
    """

    label: ClassVar[str] = ""
    """The name that is displayed; by default the class name."""
    use_when: ClassVar[str] = ""
    """The end of "Use one when ...", on one line of `robandit policies`."""
    contextual: ClassVar[bool] = False
    """Whether it learns from the features x of decisions (:mod:`robandit.policies.linear`)."""
    switches: ClassVar[bool] = False
    """Whether the state must change its form for another x, as ``full`` then says."""
    clips_gains: ClassVar[bool] = False
    """Whether rare large rewards are clipped, so that a live bandit warns if the mean of an arm may come from them."""
    weighted: ClassVar[bool] = False
    """Whether updates are weighted by the probability of the decision. A reward without a decision is then rejected."""
    uses_rewards: ClassVar[bool] = True
    """False for a policy whose choices do not depend on rewards, such as one that plays arms in turn."""
    respects_allowed: ClassVar[bool] = False
    """Whether ``select`` returns only arms with ``s.allowed[arm]``. A live bandit of other policies cannot pause arms."""
    counts_unrewarded: ClassVar[bool] = False
    """Whether ``select`` counts pulls without a reward (``s.unrewarded``)."""
    columns: ClassVar[tuple[str, ...]] = ()
    """Names of the numbers that ``estimate`` fills in."""
    later_fields: ClassVar[tuple[str, ...]] = ()
    """State fields that earlier versions did not have. Bandits that they saved get these fields as in a new run."""
    former_parameters: ClassVar[Mapping[str, str]] = {}
    """Parameters of earlier versions, and what to write today."""
    former_fields: ClassVar[tuple[str, ...]] = ()
    """State fields that only earlier versions had, and that do not matter. They are dropped from bandits that they saved."""
    about: ClassVar[Facts] = Facts()
    grows: ClassVar[Mapping[str, int] | None] = None
    """The fields of the state that `grow` makes longer, and the axis of each. A saved field must have its first length along all
    other axes. None: if the policy has `grow`, every field of a saved state may be longer along every axis."""

    # --- must and may ------------------------------------------------------------------------------------------------

    @abstractmethod
    def init(self, arms: int, horizon: int | None) -> Any:
        """Return the state of a new run: a NamedTuple of NumPy arrays.

        It is called once per run and not compiled. ``horizon`` is the number of pulls, or None in a live bandit. A field ``rng`` of
        four ``uint64`` is seeded afterwards as the random stream for `robandit.kernel.random`. Renaming a field breaks saved files.
        """
        raise InvalidInput(f"{type(self).__name__} has no init(self, arms, horizon): write one that returns the state")

    @staticmethod
    @abstractmethod
    def select(p: Any, s: Any) -> int:
        """Return the arm to pull next, from 0.

        It is called by the simulation before each pull, and by `Bandit.select` any number of times. So it must not learn: it may
        change only caches and ``rng`` in the state. ``p`` holds the numeric parameters by name (see `Policy.params`).

        ``s.allowed[arm]`` is False for arms that must not be chosen. At least one arm is allowed. It changes between pulls, and
        `forget_choice` is called after each change. Skip these arms, and set ``respects_allowed = True`` in the class.
        """
        raise NotImplementedError

    @staticmethod
    @abstractmethod
    def update(*args: Any, **kwargs: Any) -> None:
        """Learn from a reward: write ``update(p, s, arm, reward)`` or ``update(p, s, arm, reward, mark)``.

        It is called once per reward, after ``take`` of the same pull. In a live bandit, rewards may arrive late and out of order.
        It may change any part of the state. ``mark`` is the value that ``take`` returned for this pull.
        """
        raise NotImplementedError

    take: ClassVar[Any] = staticmethod(loops.take_nothing)
    """``take(p, s, arm)``: record a pull whose reward comes later. Return a number, the mark of the pull. In a policy with
    ``weighted = True`` it is the probability with which the arm was chosen."""
    expire: ClassVar[Any] = staticmethod(loops.expire_nothing)
    """``expire(p, s, arm, mark)``: record that the reward of a pull will never arrive."""
    estimate: ClassVar[Any] = None
    """``estimate(p, s, arm, out)``: fill ``out`` with the numbers named in ``columns``, for `Bandit.estimates`."""
    full: ClassVar[Any] = staticmethod(loops.never_full)
    """``full(p, s)``: return whether the state must `grow` before the next pull."""
    chance: ClassVar[Any] = None
    """``chance(p, s, arm)``: return the probability with which ``select`` chooses the arm in this state, over all ``rng``.
    Only policies with random choices have it. It returns NaN if the probability is not known. It may change only caches."""

    def grow(self, state: Any) -> Any:
        """Return the same state with more room. It is called when ``full`` returns True, and is not compiled."""
        raise InvalidInput(f"{type(self).__name__} says that its state is full, but has no grow(self, state)")

    def forget_choice(self, state: Any) -> None:
        """Discard what ``select`` caches about the set of allowed arms, because that set changed. It is not compiled.

        By default, this is the leader of the lazy arg-max (:mod:`robandit.kernel.lazy`), if the state has its fields.
        """
        if {"lines", "lead"} <= set(state._fields):
            forget_leader(state.lines, state.lead)

    def paused(self, state: Any, arm: int) -> None:
        """Prepare the state for a time in which an arm is not allowed. It is called once, before `set_allowed`."""

    def resumed(self, state: Any, arm: int) -> None:
        """Prepare the state for the return of a paused arm, or for the first use of an added arm, before `set_allowed`."""

    def extended(self, state: Any) -> Any:
        """Return the state of a live bandit with one more arm, the last. It is as if it had been there from the start, but paused.

        The new arm is not allowed yet: call `resumed` and `set_allowed`. By default, the shapes of ``init`` for K and K + 1 arms
        say where a field gets the numbers of the new arm. Along an axis that is longer by one, they are inserted at position K;
        later positions are totals. Along an axis that is longer by more, they are appended. A number that ``init`` computes from
        K, and that has not changed since, is replaced. Override it for other layouts, and for numbers that were computed from K
        later.
        """
        arms = len(state.allowed)
        plain, old, new = without_arms(state), self.init(arms, None), self.init(arms + 1, None)
        fields = [extended_array(*arrays, arms) for arrays in zip(plain, old, new, strict=True)]
        longer = with_arms(type(plain)(*fields), np.append(state.allowed, False), np.insert(state.unrewarded, arms, 0))
        if {"lines", "lead"} <= set(longer._fields):  # levels may depend on K, and lines hold only from their level on
            longer.lines[:], longer.lead[:] = lazy_state(arms + 1)
        self.forget_choice(longer)
        return longer

    def counters(self, state: Any) -> dict[str, int]:
        """Return counts of the whole run to display."""
        return {}

    def validate(self) -> None:
        """Raise `InvalidInput` for parameters outside their domain. It is called when the policy is made."""

    def params(self) -> Any:
        """Return the record ``p`` of hooks: the numeric fields, by name. Override it to convert strings to numbers."""
        numeric = {}
        for f in dataclasses.fields(self):
            if isinstance(value := getattr(self, f.name), (int, float)):
                # With floats, scale=2 and scale=2.0 share a kernel.
                numeric[f.name] = float(value) if f.type in ("float", float) else value
        return _record(tuple(numeric) or ("nothing",))(*(numeric.values() or (0.0,)))

    @property
    def algorithm(self) -> type[Any]:
        """The class that has the hooks. A policy with several algorithms returns the one that its parameters choose."""
        return type(self)

    # --- a value -----------------------------------------------------------------------------------------------------

    def __init_subclass__(cls) -> None:
        """Make the subclass a frozen, keyword-only dataclass with a label, and register it by its tag."""
        guided(dataclasses.dataclass(frozen=True, kw_only=True)(cls))
        for f in dataclasses.fields(cls):
            own = inspect.getattr_static(Policy, f.name, None)
            if callable(own) or isinstance(own, (property, classmethod)):
                raise InvalidInput(f"{cls.__name__} has a parameter {f.name!r}, which is a method of Policy: rename it")
        _check_machinery(cls)
        if "label" not in vars(cls):
            cls.label = cls.__name__
        _registry[cls.tag()] = cls
        # Kept with the spec, since each import and each reload makes a new one.
        if (spec := _spec(cls.__module__)) is not None:
            vars(spec).setdefault(_DEFINED, time.time())

    def __post_init__(self) -> None:
        """Check the parameters. NumPy scalars become Python numbers, and lists become tuples."""
        for f in dataclasses.fields(self):
            object.__setattr__(self, f.name, plain(getattr(self, f.name)))
        try:
            self.validate()
        except RobanditError:
            raise
        except Exception as error:  # such as from comparing an array with a string
            self._freeze()
            if type(self).__module__.startswith("robandit."):
                raise InvalidInput(f"{formatted(self)} has a parameter that cannot be compared: {error}") from error
            raise  # an error in the validate() of a user's policy
        self._freeze()

    def _freeze(self) -> None:
        for f in dataclasses.fields(self):
            if isinstance(value := getattr(self, f.name), list):
                object.__setattr__(self, f.name, tuple(value))
            try:
                hash(getattr(self, f.name))
            except Exception:  # an object may raise anything
                rule, hint = "a number, a word, None or a tuple of them", "a policy is an immutable value"
                raise invalid(f.name, value, rule, owner=type(self).__name__, hint=hint) from None

    @classmethod
    def variants(cls) -> tuple[Policy, ...]:
        """Return the algorithms of this class with default parameters: one, unless a parameter chooses among several."""
        return (cls(),)

    @property
    def facts(self) -> Facts:
        """The facts about the algorithm: required parameters, bounds, source, and what it does while rewards are on their way."""
        late: Late = "counted" if self.counts_unrewarded else "at random" if self.randomised else "ignored"
        return dataclasses.replace(self.about, title=self.about.title or self.label, late=self.about.late or late)

    @property
    def randomised(self) -> bool:
        """Whether choices are random: `Decision.propensity` is then a number (NaN if the policy cannot tell), and otherwise None.

        A policy that draws random numbers only when it learns, such as `ClippedSGDUCB`, makes deterministic choices.

        >>> from robandit import APE2, UCB1
        >>> APE2(eps=0.5).randomised, UCB1().randomised
        (True, False)
        """
        return self.weighted or self.chance is not None

    @property
    def longest(self) -> int | None:
        """The largest number of pulls in one run: the horizon, if the policy has one, or None for no limit."""
        return getattr(self, "horizon", None)

    @property
    def name(self) -> str:
        """The label, with the parameters that differ from their defaults.

        >>> from robandit import UCB1
        >>> UCB1().name, UCB1(scale=2.0).name
        ('UCB1', 'UCB1(scale=2.0)')
        """
        values = [(f.name, getattr(self, f.name), f.default) for f in dataclasses.fields(self)]
        changed = [f"{name}={_rounded(value)}" for name, value, default in values if value != default]
        return f"{self.label}({', '.join(changed)})" if changed else self.label

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as JSON-able data, which `Policy.from_dict` reads.

        >>> from robandit import UCB1
        >>> UCB1(scale=2.0).to_dict()
        {'policy': 'UCB1', 'scale': 2.0}
        """
        values = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        return {"policy": self.tag()} | {name: v.to_dict() if isinstance(v, Policy) else v for name, v in values}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Policy:
        """Return the policy that `to_dict` described.

        >>> Policy.from_dict({"policy": "UCB1", "scale": 2.0})
        UCB1(scale=2.0)
        """
        import msgspec

        rule = 'an object with the class name under "policy"'
        parameters = renewed(mapping(data, "data", rule, owner="Policy.from_dict"))
        tag = parameters.pop("policy", None)
        cls = _registry.get(tag) if isinstance(tag, str) else None
        if cls is None and isinstance(tag, str) and ":" in tag:
            module = formatted(tag.rpartition(":")[0]).strip("'")
            hint = f"in Python import {module}; on the command line add --import {module}, which runs its code"
            raise InvalidInput(f"policy {formatted(tag)} is not known here. Import its module first: {hint}")
        if cls is None or is_template(cls):
            known = ", ".join(sorted(t for t, each in _registry.items() if ":" not in t and not is_template(each)))
            raise InvalidInput(
                f"policy {formatted(tag)} is not known here: Robandit has {known}; import the module of your own policy"
            )
        fields = {f.name for f in dataclasses.fields(cls)}
        for name in (name for name in parameters if name not in fields):
            raise InvalidInput(
                f"{tag} has no parameter {formatted(name)}: it has {', '.join(sorted(fields)) or 'none'}"
            )
        for name, value in parameters.items():
            if type(value) is dict and "policy" in value:
                parameters[name] = Policy.from_dict(value)
        try:
            return msgspec.convert(parameters, cls)
        except RobanditError:
            raise
        except Exception as error:  # such as ArithmeticError for an integer beyond a double
            reason = visible(str(error))[:160]
            raise InvalidInput(f"{tag} cannot be made from {formatted(parameters)}: {reason}") from error

    @classmethod
    def tag(cls) -> str:
        """Return the name in JSON: the class name for Robandit's own policies, ``module:name`` for others."""
        return cls.__name__ if cls.__module__.startswith("robandit.") else f"{cls.__module__}:{cls.__qualname__}"

    # --- parameters that a policy needs ------------------------------------------------------------------------------

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        """Return this policy with its required parameters, where they are None, taken from a problem.

        They are the smallest valid values: u and v are the largest moments of the arms. A policy that needs an order gets ``eps``.
        Its default is min(1, 0.9 (tail index - 1)), so that the moment is finite with some margin. Given parameters are kept.

        >>> from robandit import AdaRUCB, RobustMOSS, problems
        >>> problem = problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
        >>> policy = RobustMOSS().informed_by(problem)
        >>> policy.eps, round(policy.u, 6)
        (0.45, 16.664371)
        >>> AdaRUCB().informed_by(problem) == AdaRUCB()
        True
        """
        if not all(hasattr(problem, name) for name in ("tail_index", "u", "v", "laws", "reward_laws")):
            raise invalid("problem", problem, "a problem", owner="informed_by", hint="make one with Problem(laws)")
        values: dict[str, Any] = {}
        moments_order = self._moments_order(problem, plain(eps))
        for name in self.facts.knows:
            if name == "horizon" or getattr(self, name) is not None:
                continue
            value = values[name] = self.learned(name, problem, moments_order)
            if isinstance(value, float) and not 0.0 < value < math.inf:
                hint = ", or a smaller eps" if value == math.inf and "eps" in self.facts.knows else ""
                fact = f"needs {name}, which is {value:g} on this problem (tail index {problem.tail_index:g})"
                rule = f"it must be finite and above 0: take another policy{hint}"
                raise NotApplicable(f"{type(self).__name__} {fact}, and {rule}")
        return dataclasses.replace(self, **values) if values else self

    def _moments_order(self, problem: Any, eps: Any) -> float:
        """Return the policy's own eps, or else ``eps``, or else the default of `informed_by`."""
        own: float | None = getattr(self, "eps", None)
        needed = "eps" in self.facts.knows
        if eps is not None:
            order(eps, owner="informed_by")
            if needed and own not in (None, eps):
                raise InvalidInput(
                    f"{self!r} has an eps already, and eps = {formatted(eps)} is passed: omit one of them"
                )
        if own is not None:
            return own
        default: float = min(1.0, 0.9 * (problem.tail_index - 1.0)) if eps is None else eps
        if default < LEAST_EPS and needed:
            fact = f"a tail index of {problem.tail_index!r} leaves {default:.3g}"
            raise NotApplicable(f"{type(self).__name__} needs an eps of at least {LEAST_EPS:g}, and {fact}")
        return default

    def learned(self, name: str, problem: Any, eps: float) -> Any:
        """Return a required parameter, taken from a problem. Override it for parameters other than eps, u and v."""
        if name == "eps":
            return eps
        if name in ("u", "v"):
            return float(getattr(problem, name)(eps))
        raise NotApplicable(f"{type(self).__name__} needs {name}, which a problem does not contain: pass it")

    @property
    def objective(self) -> str:
        """What it optimises, in the notation of `robandit.objectives`: "mean", unless the policy says something else."""
        return "mean"

    def signed(self, minimize: bool) -> Self:
        """Return this policy for costs, or for rewards. All policies maximise; few need to know what the user has."""
        return self

    def prepared(self, horizon: int | None) -> Self:
        """Return this policy, ready for ``horizon`` pulls (None: its own horizon, if any). Raise if it cannot play them."""
        if horizon is not None:
            horizon = integer(horizon, "horizon", 1, owner=type(self).__name__)
        own: int | None = getattr(self, "horizon", None)
        if own is None and hasattr(self, "horizon") and horizon is not None:
            filled: dict[str, Any] = {"horizon": horizon}
            return dataclasses.replace(self, **filled).prepared(horizon)
        missing = [name for name in self.facts.knows if getattr(self, name) is None]
        if missing:
            names, example = ", ".join(missing), ", ".join(f"{name}=..." for name in missing)
            method = ".prepared(horizon)" if missing == ["horizon"] else ".informed_by(problem)"
            raise InvalidInput(f"{self!r} cannot play without {names}: pass {example}, or use {method}")
        if own is not None and horizon is not None and horizon > own:
            hint = f"omit its horizon, or set it to {horizon}"
            raise InvalidInput(f"{self!r} is made for {own} pulls, and {horizon} are requested: {hint}")
        return self

    # --- machinery ----------------------------------------------------------------------------------------------

    def start(self, arms: int, horizon: int | None, stream: UInts, names: Iterable[Any] | None = None) -> Any:
        """Return the state of a new run, checked, with its random stream in place and all arms allowed.

        Only a policy whose parameters name arms (`robandit.Floor`) reads their ``names``. By default, they are numbers from 0.
        """
        state = self.init(arms, horizon)
        check_state(type(self).__name__, state)
        if "rng" in state._fields:
            state.rng[:] = stream
        unrewarded = np.zeros(arms + 1, dtype=np.int64)
        unrewarded[arms] = 1
        return with_arms(state, np.ones(arms, dtype=np.bool_), unrewarded)

    def grown(self, state: Any) -> Any:
        """Return the state with more room, from `grow`, which gets and returns a state as ``init`` makes it."""
        return with_arms(self.grow(without_arms(state)), state.allowed, state.unrewarded)

    def set_allowed(self, state: Any, allowed: Any) -> None:
        """Allow exactly the arms for which ``allowed`` is True.

        >>> from robandit import UCB1
        >>> policy = UCB1()
        >>> state = policy.start(3, None, np.zeros(4, dtype=np.uint64))
        >>> policy.set_allowed(state, [False, True, True])
        >>> policy.select(policy.params(), state)
        1
        """
        mask = np.asarray(allowed, dtype=np.bool_)
        if not (self.respects_allowed or mask.all()):
            reason = "its select() chooses among all arms"
            hint = "take another policy, or let select() read s.allowed and set respects_allowed = True"
            raise NotApplicable(f"{self!r} cannot leave arms out: {reason}; {hint}")
        if not np.array_equal(state.allowed, mask):
            state.allowed[:] = mask
            self.forget_choice(state)

    def hooks(self, *names: str) -> tuple[Any, ...]:
        """Return the hooks with these names, ready to be bound to an entry of :mod:`robandit.kernel.loops`."""
        return hooks_of(self.algorithm, *names)


# What a subclass may not override, and what to do instead.
_MACHINERY = {
    "start": "write init",
    "grown": "write grow",
    "set_allowed": "write forget_choice",
    "hooks": "write hooks as static methods, or return the class that has them from algorithm",
    "randomised": "write chance, or set weighted = True",
    "to_dict": "declare parameters as annotated fields",
    "from_dict": "declare parameters as annotated fields",
    "tag": "rename the class",
}


_REMOVED = {
    "ranges": "a live bandit checks indices itself",
    "signed_columns": "mean, quantile and index change their sign with minimize=True",
}


def _check_machinery(cls: type[Policy]) -> None:
    """Raise `InvalidInput` if a class overrides machinery, unless it wraps another policy, or defines what was removed."""
    for name, reason in _REMOVED.items():
        if hasattr(cls, name):
            raise InvalidInput(
                f"{cls.__name__} defines {name}, which has no effect since Robandit 0.3 ({reason}): remove it"
            )
    for name, way_out in _MACHINERY.items():
        owner = next(base for base in cls.__mro__ if name in vars(base))
        if owner is not Policy and name not in getattr(owner, "replaced_machinery", ()):
            raise InvalidInput(f"{cls.__name__} overrides {name}, which is final in Policy: {way_out}")


def hooks_of(owner: type[Any], *names: str) -> tuple[Any, ...]:
    """Return checked hooks of a class."""
    return tuple(_hook(owner, name) for name in names)


def _is_abstract(hook: Any) -> bool:
    return getattr(hook, "__isabstractmethod__", False)


def defined_at(module: str) -> float | None:
    """Return when the first policy of an imported module was defined, in seconds since 1970; None if it has none."""
    spec = _spec(module)
    return None if spec is None else vars(spec).get(_DEFINED)


def _spec(module: str) -> ModuleSpec | None:
    return getattr(sys.modules.get(module), "__spec__", None)


def is_template(cls: type[Policy]) -> bool:
    """Return whether a class is a template: it has no hooks, neither itself nor in other classes."""
    elsewhere = cls.algorithm is not Policy.algorithm or cls.hooks is not Policy.hooks
    return not elsewhere and any(_is_abstract(getattr(cls, name)) for name in ("init", "select", "update"))


def growing_fields(policy: Policy) -> Mapping[str, int] | None:
    """Return `Policy.grows`, and no fields if the policy has neither ``grow`` nor ``grown``."""
    fixed = type(policy).grow is Policy.grow and type(policy).grown is Policy.grown
    return {} if fixed else policy.grows


def check_policy_given(policy: Any, name: str = "policy") -> None:
    """Raise `InvalidInput` unless this is a policy. A policy class is rejected."""
    if not isinstance(policy, Policy):
        hint = f"did you mean {policy.__name__}()?" if isinstance(policy, type) else "pass one, such as robandit.UCB1()"
        raise invalid(name, policy, "a policy", hint=hint)


def also_called(tag: str, cls: type[Policy]) -> None:
    """Register a second name of a policy for `Policy.from_dict`."""
    _registry[tag] = cls


def _rounded(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) and len(repr(value)) > 8 else repr(value)


_SIGNATURES = {
    "select": ("p, s",),
    "update": ("p, s, arm, reward", "p, s, arm, reward, mark"),
    "take": ("p, s, arm",),
    "expire": ("p, s, arm, mark",),
    "waiting": ("p, s, shifts",),
    "waiting_chance": ("p, s, arm, shifts",),
    "full": ("p, s",),
    "chance": ("p, s, arm",),
    "estimate": ("p, s, arm, out",),
}


def _hook(cls: type[Any], name: str) -> Any:
    hook = getattr(cls, name, None)
    expected = " or ".join(f"{name}({signature})" for signature in _SIGNATURES[name])
    if hook is None or _is_abstract(hook):
        parts = [part for part in getattr(hook, "parts", ()) if not hasattr(cls, part)]
        hint = f", or write {', '.join(parts)} for its template" if parts else ""
        raise InvalidInput(f"{cls.__name__} has no {name}: write it as a static method, {expected}{hint}")
    signature = inspect.signature(hook)
    written = f"{name}{signature} of {cls.__name__}"
    if not isinstance(inspect.getattr_static(cls, name), staticmethod):
        raise InvalidInput(f"{written} is not static: put @staticmethod above it, and write {expected}")
    count = len(signature.parameters)
    if "x" in signature.parameters and name in loops.AT_X:
        return partial(loops.AT_X[name], hook)
    if count not in {len(known.split(",")) for known in _SIGNATURES[name]}:
        raise InvalidInput(f"{written} has {count} parameters: write {expected}")
    return partial(loops.without_mark, hook) if name == "update" and count == 4 else hook


def check_state(owner: str, state: Any) -> None:
    """Raise `InvalidInput` unless compiled hooks can work on the state and a file can hold it."""
    if not isinstance(state, tuple) or not getattr(state, "_fields", ()):
        raise InvalidInput(f"init of {owner} returned {type(state).__name__}: it must be a NamedTuple of NumPy arrays")
    for name, array in cast(Any, state)._asdict().items():
        problem = ""
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            problem = f"{name} = {kind}: it must be an array of numbers; one number is an array of 1"
        elif not array.flags.c_contiguous or not array.flags.writeable:
            problem = f"a {name} that is not contiguous or not writable: use .copy()"
        elif sum(np.may_share_memory(array, other) for other in state) > 1 and array.size:
            problem = f"a {name} that shares its memory with another field: use .copy()"
        elif name == "rng" and (array.dtype != np.uint64 or array.shape != (4,)):
            problem = f"rng = {array.dtype}{array.shape}: it must be np.zeros(4, dtype=np.uint64)"
        if problem:
            raise InvalidInput(f"the state of {owner} has {problem}")


@cache
def _with_fields(cls: type[Any]) -> Any:
    """Return the type of states with the fields of ``cls`` and those of `with_arms`."""
    fields = [(name, Any) for name in (*cls._fields, *ARM_FIELDS)]
    made = cast(Any, NamedTuple)(cls.__name__, fields)
    made._plain = cls  # a field cannot have this name
    return made


def with_arms(state: Any, allowed: Bools, unrewarded: Ints) -> Any:
    """Return a state as ``init`` makes it with the fields ``allowed`` and ``unrewarded``, unless it has them."""
    cls: Any = type(state)
    return state if "allowed" in state._fields else _with_fields(cls)(*state, allowed, unrewarded)


def without_arms(state: Any) -> Any:
    """Return the state as ``init`` makes it: without the fields that `with_arms` added. Files hold this state."""
    plain = getattr(type(state), "_plain", None)
    return state if plain is None else plain(*state[: -len(ARM_FIELDS)])


def extended_array(now: Any, old: Any, new: Any, arms: int) -> Any:
    """Return a field of a state with one more arm, as `Policy.extended` describes it.

    ``old`` and ``new`` are that field in new states with ``arms`` and one more arm. ``now`` may have more room than both.
    """
    for axis, (short, long) in enumerate(zip(old.shape, new.shape, strict=True)):
        if short != long:
            start = arms if long == short + 1 else short
            added = np.take(new, range(start, start + long - short), axis)
            old = np.insert(old, [start] * (long - short), added, axis)
            room = list(now.shape)
            room[axis] = long - short
            wide = np.zeros(room, dtype=now.dtype)
            common = tuple(slice(min(a, b)) for a, b in zip(wide.shape, added.shape, strict=True))
            wide[common] = added[common]
            at = start if long == short + 1 else now.shape[axis]
            now = np.insert(now, [at] * (long - short), wide, axis)
    now = now.copy()
    if now.shape == new.shape:
        constants = (old != new) & (now == old)
        now[constants] = new[constants]
    return now


@cache
def _record(fields: tuple[str, ...]) -> Any:
    return cast(Any, NamedTuple)("Params", [(name, float) for name in fields])
