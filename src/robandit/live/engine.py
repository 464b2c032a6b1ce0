"""A policy at work on numbered arms: its state, its compiled entries, and the arms that it may choose.

The `robandit.Bandit` around it knows names, ids and the world outside. The engine is not thread-safe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from robandit.errors import KernelError, NotApplicable
from robandit.kernel import compiled, loops
from robandit.kernel.build import flat, shape_of, unchecked
from robandit.policies.base import Policy

# Each compiled entry of `robandit.kernel.loops`: the purpose printed during compilation, the hooks, and example arguments.
_ENTRIES: dict[str, tuple[str, tuple[str, ...], tuple[Any, ...]]] = {
    "ask": ("live", ("select",), ()),
    "tell": ("live", ("take", "update", "full"), (0, 0.0)),
    "issue": ("decisions", ("take",), (0,)),
    "late": ("decisions", ("update", "full"), (0, 0.0, 0.0)),
    "forget": ("decisions", ("expire",), (0, 0.0)),
    "describe": ("estimates", ("estimate",), (np.zeros((1, 1)),)),
    "chance_of": ("propensities", ("chance",), (0,)),
}


class Engine:
    """A policy with its state. ``available`` has one truth value per arm."""

    def __init__(self, policy: Policy, state: Any, available: Sequence[bool], among: tuple[int, ...] | None) -> None:
        """Take over a state in which the arms ``among`` are allowed (None: all available ones), and compile the first hooks."""
        self.policy = policy
        self.available = list(available)
        self.among = among
        """The arms that the last choice was restricted to, or None. The state's mask shows it until another choice is made."""
        self._params = policy.params()
        self.deterministic = policy.chance is None and not policy.weighted
        self._entries: dict[str, Any] = {}
        self._shapes: Any = None
        self._use(state)
        self._shapes = shape_of(state)  # the compiled entries do not check them
        self.state.allowed[:] = self._mask(among)
        self.allowed = frozenset(np.flatnonzero(self.state.allowed).tolist())
        """The arms that the state's mask allows."""
        # Bandit.select and Bandit.update call these two directly, because a call of a method costs a tenth of a choice.
        self.ask_entry = self._entry("ask")
        self.tell_entry = self._entry("tell")
        # Bandit.decide and Bandit.reward call these two directly, after `compile` has set them.
        self.issue_entry: Any = None
        self.late_entry: Any = None

    def _use(self, state: Any) -> None:
        if self._shapes and shape_of(state) != self._shapes:
            raise KernelError(
                f"{self.policy!r} changed the types of its state's arrays: grow() must keep them contiguous"
            )
        self.state = state
        self.args = flat((self._params, state))

    def _entry(self, name: str) -> Any:
        if name not in self._entries:
            purpose, hooks, more = _ENTRIES[name]
            bound = partial(getattr(loops, name), *self.policy.hooks(*hooks))
            args = (self._params, self.state, *more)
            self._entries[name] = unchecked(compiled(bound, label=f"{self.policy.label}, {purpose}", args=args))
        return self._entries[name]

    def compile(self, name: str) -> None:
        """Compile an entry before anything is changed, since compiling may fail or be interrupted."""
        entry = self._entry(name)
        if name == "issue":
            self.issue_entry = entry
        elif name == "late":
            self.late_entry = entry

    # --- choices -------------------------------------------------------------------------------------------------------

    def ask(self, among: tuple[int, ...] | None) -> int:
        """Return the arm to pull now, among these arms (None: all available arms)."""
        if among != self.among:
            self._restrict(among)
        arm: int = self.ask_entry(*self.args)
        if arm not in self.allowed:
            self.reject(arm)
        return arm

    def reject(self, arm: int) -> NoReturn:
        """Raise `KernelError` because the policy chose an arm that is not allowed."""
        allowed = sorted(self.allowed)
        raise KernelError(f"{self.policy!r} chose arm {arm}, but the allowed arms are {allowed}: fix its select()")

    def _mask(self, among: tuple[int, ...] | None) -> list[bool]:
        if among is None:
            return self.available
        return [available and arm in among for arm, available in enumerate(self.available)]

    def _restrict(self, among: tuple[int, ...] | None) -> None:
        self.policy.set_allowed(self.state, self._mask(among))
        self.allowed = frozenset(np.flatnonzero(self.state.allowed).tolist())
        self.among = among

    def check_restrictable(self, purpose: str) -> None:
        """Raise `NotApplicable` if the policy always chooses among all arms."""
        if not self.policy.respects_allowed:
            fact = f"{self.policy.name} cannot {purpose}: its select() does not read s.allowed"
            raise NotApplicable(
                f"{fact}, or its class lacks respects_allowed = True; use another policy, or an IndexPolicy"
            )

    # --- learning ------------------------------------------------------------------------------------------------------

    def tell(self, arm: int, reward: float) -> bool:
        """Learn from a pull and its reward. Return whether the state had to grow, which may be due to an alarm of the policy."""
        full: bool = self.tell_entry(*self.args, arm, reward)
        if full:
            self.grow()
        return full

    def grow(self) -> None:
        """Let the state grow, or handle an alarm."""
        self._use(self.policy.grown(self.state))

    def issue(self, arm: int) -> tuple[float, float | None]:
        """Record a pull whose reward comes later; `compile` first. Return its mark, and its probability (None: deterministic)."""
        if self.deterministic:
            return self.issue_entry(*self.args, arm), None
        probability = None if self.policy.weighted else self._entry("chance_of")(*self.args, arm)
        mark: float = self.issue_entry(*self.args, arm)
        return mark, self._checked_probability(mark if probability is None else probability)

    def _checked_probability(self, probability: float) -> float:
        if 0.0 <= probability <= 1.0:
            return probability
        if 1.0 < probability <= 1.0 + 1e-9:  # rounding
            return 1.0
        if math.isnan(probability):
            return math.nan  # always the same object, so that tuples that hold it are equal
        raise KernelError(f"{self.policy!r} chose an arm with probability {probability}, which is not in [0, 1]")

    def forget(self, arm: int, mark: float) -> None:
        """Record that the reward of an earlier pull will never come; `compile` first."""
        self._entries["forget"](*self.args, arm, mark)

    # --- arms that come and go -------------------------------------------------------------------------------------------

    def add_arm(self) -> None:
        """Add an arm at the end, available."""
        self._restrict(None)
        self._use(self.policy.extended(self.state))
        self.policy.resumed(self.state, len(self.available))
        self.available.append(True)
        self._restrict(None)

    def set_available(self, arm: int, *, available: bool) -> None:
        """Make an arm available, or not."""
        self._restrict(None)
        if available:
            self.policy.resumed(self.state, arm)
        else:
            self.policy.paused(self.state, arm)
        self.available[arm] = available
        self._restrict(None)

    # --- estimates -------------------------------------------------------------------------------------------------------

    def describe(self) -> list[list[float]]:
        """Return the policy's columns, one row per arm. It works on a copy of the state, because evaluations fill caches."""
        columns = self.policy.columns
        out = np.full((len(self.available), len(columns)), math.nan)
        if columns:
            copied = type(self.state)(*(field.copy() for field in self.state))
            if self.among is not None:
                self.policy.set_allowed(copied, self.available)
            self._entry("describe")(*flat((self._params, copied)), out)
        rows: list[list[float]] = out.tolist()
        return rows
