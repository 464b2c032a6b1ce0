"""The live bandit, which runs a policy on named arms."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from robandit import validation
from robandit.diagnostics.diagnosis import Diagnosis, diagnose, warning_text
from robandit.errors import (
    AssumptionWarning,
    DecisionError,
    HorizonReached,
    InvalidInput,
    KernelError,
    UnknownArm,
    formatted,
)
from robandit.files import read, write_atomically
from robandit.inputs import at, checked_reward, checked_rewards, listed
from robandit.kernel import compiled, loops
from robandit.kernel.build import flat
from robandit.kernel.random import streams
from robandit.live.arms import Arm, checked_arms, hashable
from robandit.live.memory import CHUNK, Memory
from robandit.live.saving import FIELDS, pack, unpack
from robandit.policies import AdaKLUCB
from robandit.policies.base import Policy, check_policy_given

_LARGEST = loops.LARGEST_REWARD
_WEIGHS = "weights a reward by the probability of its choice"
# Each compiled entry of `robandit.kernel.loops`: the purpose printed during compilation, the hooks, and example arguments.
_ENTRIES: dict[str, tuple[str, tuple[str, ...], tuple[Any, ...]]] = {
    "ask": ("live", ("select",), ()),
    "tell": ("live", ("take", "update", "full"), (0, 0.0)),
    "issue": ("decisions", ("take",), (0,)),
    "late": ("decisions", ("update", "full"), (0, 0.0, 0.0)),
    "forget": ("decisions", ("expire",), (0, 0.0)),
    "describe": ("estimates", ("estimate",), (np.zeros((1, 1)),)),
}


class Decision(NamedTuple):
    """A pull whose reward comes later."""

    id: int
    arm: Arm
    propensity: float | None
    """The probability with which the arm was chosen, for policies that weight rewards by it; otherwise None."""


class Bandit:
    """A policy that runs on named arms: `select` an arm, then `update` it with the reward.

    Parameters
    ----------
    arms
        Two or more different names (strings, numbers, None, or tuples of them) in a list or a column of NumPy, pandas or
        polars. NumPy scalars become the equal Python values: ``np.int64(3)`` becomes ``3``.
    policy
        None means ``AdaKLUCB()``, which needs no parameters and suits costs and symmetric rewards; see `robandit.recommend`.
    seed
        The seed of policies that draw random numbers. None takes a seed from the system.

    Notes
    -----
    Rewards are maximised: give costs a minus sign. If each reward is known before the next pull, alternate `select` and `update`.
    If rewards come late, `decide` returns decisions and `reward` takes their rewards in any order. A bandit is not thread-safe.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["eu", "us", "asia"], seed=0)
    >>> arm = bandit.select()
    >>> arm
    'eu'
    >>> bandit.update(arm, -120.0)
    >>> decision = bandit.decide()
    >>> decision.arm
    'us'
    >>> bandit.reward(decision.id, -95.0)
    >>> [row["pulls"] for row in bandit.estimates()]
    [1, 1, 0]
    """

    def __init__(self, arms: Iterable[Arm], policy: Policy | None = None, seed: int | None = None) -> None:
        """See the class."""
        if policy is None:
            policy = AdaKLUCB()
        check_policy_given(policy)
        stream = streams(np.random.SeedSequence(validation.seed(seed)), 1)[0]
        # The fields that are saved: see `robandit.live.saving`.
        self._arms = checked_arms(arms)
        self._policy = policy.prepared(None)
        self._received = [0] * len(self._arms)
        self._record = Memory(len(self._arms))
        self._open: dict[int, tuple[int, float]] = {}  # decision -> arm and mark
        self._next = 0
        self._expired = 0
        self._pick = -1  # the selected arm, until something is learned
        self._start(policy.start(len(self._arms), None, stream))

    def _start(self, state: Any) -> None:
        """Set the state and all fields that are derived from the saved ones, and compile the first hooks."""
        self._index = {arm: i for i, arm in enumerate(self._arms)}
        self._fresh = self._record.fresh
        self._params = self._policy.params()
        self._horizon = self._policy.longest
        self._made = sum(self._received) + len(self._open) + self._expired  # pulls
        self._entries: dict[str, Any] = {}
        self._use(state)
        self._ask = self._entry("ask")
        self._tell = self._entry("tell")

    def _use(self, state: Any) -> None:
        self._state = state
        self._args = flat((self._params, state))

    def _entry(self, name: str) -> Any:
        if name not in self._entries:
            purpose, hooks, more = _ENTRIES[name]
            bound = partial(getattr(loops, name), *self._policy.hooks(*hooks))
            args = (self._params, self._state, *more)
            self._entries[name] = compiled(bound, label=f"{self._policy.label}, {purpose}", args=args)
        return self._entries[name]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms."""
        return self._arms

    @property
    def policy(self) -> Policy:
        """The policy of this bandit."""
        return self._policy

    @property
    def open(self) -> tuple[Decision, ...]:
        """Decisions without a reward yet, oldest first."""
        return tuple(self._decision(number) for number in self._open)

    def __repr__(self) -> str:
        """Return the policy, the number of arms and the progress."""
        counts = f"arms={len(self._arms)}, rewards={sum(self._received)}, open={len(self._open)}"
        return f"<Bandit: {self._policy.name}, {counts}>"

    def select(self) -> Arm:
        """Return the arm to pull now, without side effects: it stays the same until a reward or decision is recorded."""
        if self._pick < 0:
            if self._horizon is not None:  # checked here because the call costs as much as a decision
                self._check_horizon(1)
            pick = self._ask(*self._args)
            if not 0 <= pick < len(self._arms):
                last = len(self._arms) - 1
                raise KernelError(f"{self._policy!r} chose arm {pick}, but arms are 0 to {last}: fix its select()")
            self._pick = pick
        return self._arms[self._pick]

    def _check_horizon(self, more: int) -> None:
        if self._horizon is not None and self._made + more > self._horizon:
            count = f"was made for {self._horizon} pulls, {self._made} are made, and {more} more requested"
            hint = "start a new bandit with a longer horizon, or a policy without one"
            raise HorizonReached(f"{self._policy!r} {count}: {hint}")

    def estimates(self) -> list[dict[str, Any]]:
        """Return one dict per arm with its name, the number of rewards received (``pulls``) and the policy's columns.

        A number is NaN if the policy has no estimate yet; the index is infinite if the arm is to be explored.
        """
        columns = self._policy.columns
        out = np.full((len(self._arms), len(columns)), math.nan)
        if columns:
            self._entry("describe")(*self._args, out)
        return [
            {"arm": arm, "pulls": pulls, **dict(zip(columns, row, strict=True))}
            for arm, pulls, row in zip(self._arms, self._received, out.tolist(), strict=True)
        ]

    def counters(self) -> dict[str, int]:
        """Return the numbers of rewards and open decisions, and the policy's counters (AdaR-UCB: inexact evaluations)."""
        return {"rewards": sum(self._received), "open": len(self._open)} | self._policy.counters(self._state)

    def diagnose(self) -> Diagnosis:
        """Describe the rewards, test the policy's assumption on them, and recommend a policy.

        Per arm, it computes zeros, median, tail indices and tests of truncated non-positivity (confidence 0.99) from a random
        sample of at most 2,048 rewards. The bandit itself warns once (`robandit.errors.AssumptionWarning`), without this call.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1())
        >>> bandit.update_many(["a"] * 1000, rb.laws.Pareto(tail=1.5).sample(1000, seed=0))
        >>> bandit.diagnose().advice.case
        'right-skewed'
        """
        return diagnose(self._policy, self._record.kept(self._arms, self._received))

    # --- learning ---------------------------------------------------------------------------------------------------

    def update(self, arm: Arm, reward: float) -> None:
        """Learn a reward of the arm. A policy that weights rewards accepts only the arm that `select` returned last."""
        try:
            i = self._index[arm]
        except (KeyError, TypeError):
            i = self._position(arm)  # only on failure, because the call costs as much as recording the reward
        value = reward if type(reward) is float and -_LARGEST <= reward <= _LARGEST else checked_reward(reward)
        if self._policy.weighted and i != self._pick:
            hint = "call select() right before update(), or use decide() and reward()"
            raise DecisionError(f"{self._policy.label} {_WEIGHS}, and {arm!r} is not the last arm of select(): {hint}")
        if self._horizon is not None:
            self._check_horizon(1)
        alarm = self._learn(i, value)
        if alarm:
            _warn(alarm)

    def update_many(self, arms: Iterable[Arm], rewards: Iterable[float]) -> None:
        """Learn from several pulls and their rewards, in order.

        If one is invalid, nothing is learned, and the error names its position. Pass lists, or columns of NumPy, pandas, polars or
        Arrow. They are matched by position: the index of pandas is ignored.
        """
        if self._policy.weighted:
            raise DecisionError(f"{self._policy.label} {_WEIGHS}, unknown in bulk: use decide() and reward()")
        names = listed("arms", arms)
        values = checked_rewards("rewards", rewards)
        try:
            positions = [self._index[name] for name in names]
        except (KeyError, TypeError):
            positions = [self._position(name, at("arms", k)) for k, name in enumerate(names)]
        if len(positions) != len(values):
            raise InvalidInput(f"{len(positions)} arms but {len(values)} rewards: pass one reward for each arm")
        if self._horizon is not None:
            self._check_horizon(len(values))
        alarms = [self._learn(i, value) for i, value in zip(positions, values, strict=True)]
        _warn("".join(alarms))

    def _learn(self, i: int, value: float) -> str:
        self._pick = -1
        must_grow = self._tell(*self._args, i, value)
        self._received[i] += 1
        self._made += 1
        if must_grow:
            self._use(self._policy.grown(self._state))
        fresh = self._fresh[i]
        fresh.append(value)
        return self._fold(i) if len(fresh) >= CHUNK else ""

    def _fold(self, i: int) -> str:
        """Fold an arm's new rewards into the record; return the text of a warning, or an empty string."""
        self._record.fold(i)
        contradiction = self._record.alarm(i, self._received, self._policy.facts.assumption)
        if contradiction is None:
            return ""
        return warning_text(self._policy, self._record.kept(self._arms, self._received), self._arms[i], contradiction)

    # --- late rewards -----------------------------------------------------------------------------------------------

    def decide(self) -> Decision:
        """Pull an arm whose reward comes later, through `reward`."""
        issue = self._entry("issue")  # first, since compiling may fail or be interrupted
        self.select()
        i, self._pick = self._pick, -1
        number = self._next
        self._open[number] = (i, issue(*self._args, i))
        self._next += 1
        self._made += 1
        return self._decision(number)

    def reward(self, decision: Decision | int, value: float) -> None:
        """Learn the reward of an open decision, given by itself or its id. Rewards may come in any order, each exactly once."""
        number = self._checked_open(decision)
        _warn(self._settle(number, checked_reward(value)))

    def reward_many(self, decisions: Iterable[Decision | int], values: Iterable[float]) -> None:
        """Learn the rewards of several open decisions. If one is invalid, nothing is learned. `update_many` describes columns."""
        chosen = [self._checked_open(d, at("decisions", k)) for k, d in enumerate(listed("decisions", decisions))]
        checked = checked_rewards("values", values)
        if len(chosen) != len(checked):
            raise InvalidInput(f"{len(chosen)} decisions but {len(checked)} rewards: pass one reward for each decision")
        if len(set(chosen)) < len(chosen):
            twice = Counter(chosen).most_common(1)[0][0]
            raise DecisionError(f"decision {twice} is given twice: a decision is rewarded exactly once")
        _warn("".join([self._settle(number, value) for number, value in zip(chosen, checked, strict=True)]))

    def expire(self, *decisions: Decision | int) -> None:
        """Close open decisions whose rewards will never come. Rewards that come later are rejected."""
        forget = self._entry("forget")
        for number in dict.fromkeys([self._checked_open(d) for d in decisions]):
            i, mark = self._open[number]
            self._pick = -1
            forget(*self._args, i, mark)
            del self._open[number]
            self._expired += 1

    def _settle(self, number: int, value: float) -> str:
        late = self._entry("late")
        i, mark = self._open[number]
        self._pick = -1
        must_grow = late(*self._args, i, value, mark)
        del self._open[number]
        self._received[i] += 1
        if must_grow:
            self._use(self._policy.grown(self._state))
        fresh = self._fresh[i]
        fresh.append(value)
        return self._fold(i) if len(fresh) >= CHUNK else ""

    def _decision(self, number: int) -> Decision:
        i, mark = self._open[number]
        return Decision(number, self._arms[i], mark if self._policy.weighted else None)

    def _checked_open(self, decision: Decision | int, place: str = "") -> int:
        number = validation.plain(decision.id if isinstance(decision, Decision) else decision)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < self._next:
            rule = "an id that decide() returned"
            message = f"{place}decision {formatted(number)} was never made: use {rule}"
            raise DecisionError(message, parameter="decision", value=number, rule=rule)
        if number not in self._open:
            message = f"{place}decision {number} is closed: it was already rewarded or expired"
            raise DecisionError(message, parameter="decision", value=number, rule="an open decision")
        if isinstance(decision, Decision) and decision != self._decision(number):
            raise DecisionError(f"{place}{decision!r} is not a decision of this bandit: {self._decision(number)!r} is")
        return number

    def _position(self, arm: Arm, place: str = "") -> int:
        try:
            return self._index[hashable(arm)]
        except (KeyError, TypeError):
            known = ", ".join(repr(a) for a in self._arms[:10]) + (", ..." if len(self._arms) > 10 else "")
            message = f"{place}arm {formatted(arm)} is unknown: this bandit has {known}"
            raise UnknownArm(message, parameter="arm", value=arm, rule=f"one of {known}") from None

    # --- saving -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the bandit, open decisions included, as the bytes that `save` writes and `from_bytes` reads.

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1())
        >>> bandit.update("a", 1.0)
        >>> rb.Bandit.from_bytes(bandit.to_bytes()).select()
        'b'
        """
        return pack({name: getattr(self, f"_{name}") for name in FIELDS})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the bandit that `to_bytes` wrote, in exactly the same state. Import a policy of your own first."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise validation.invalid("data", data, "bytes that to_bytes() returned")
        return cls._unpacked(bytes(data), "data")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bandit to a file, open decisions included. The old file stays until the new one is complete."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the bandit that `save` wrote, in exactly the same state. Import a policy of your own first."""
        return cls._unpacked(read(path), str(path))

    @classmethod
    def _unpacked(cls, data: bytes, source: str) -> Self:
        bandit = cls.__new__(cls)
        for name, value in unpack(data, source).items():
            setattr(bandit, f"_{name}", value)
        bandit._start(bandit._state)
        return bandit

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by `to_bytes`, so that the copy shares nothing with the original and holds no compiled code."""
        return type(self).from_bytes, (self.to_bytes(),)


def _warn(text: str) -> None:
    """Warn at the user's line, unless the text is empty. Call it after learning, since a warning may be turned into an error."""
    if text:
        warnings.warn(text, AssumptionWarning, stacklevel=3)
