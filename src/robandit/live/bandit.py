"""The live bandit: a policy at work on named arms."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from robandit.diagnostics.diagnosis import Diagnosis, advised, diagnosed
from robandit.diagnostics.record import CHUNK, Record, Saved
from robandit.errors import (
    AssumptionWarning,
    CorruptFile,
    DecisionError,
    FileError,
    HorizonReached,
    InvalidInput,
    KernelError,
    NewerFile,
    UnknownArm,
)
from robandit.files import named, write_atomically
from robandit.inputs import at, checked_reward, checked_rewards, listed, plain
from robandit.kernel import compiled, loops
from robandit.kernel.build import flat
from robandit.kernel.random import streams
from robandit.policies import AdaKLUCB
from robandit.policies.base import Policy, check_policy_given

__all__ = ["Bandit", "Decision"]

Arm: TypeAlias = Any
MAGIC = b"robandit"
FORMAT_VERSION = 1
_LARGEST = loops.LARGEST_REWARD
# What a person reads while an entry is compiled.
_PURPOSE = {
    "ask": "live",
    "tell": "live",
    "issue": "decisions",
    "late": "decisions",
    "forget": "decisions",
    "describe": "estimates",
}


class Decision(NamedTuple):
    """A pull whose reward is awaited."""

    id: int
    arm: Arm
    propensity: float | None
    """The probability with which the arm was chosen, for policies that weight rewards by it; else None."""


class Bandit:
    """A policy at work on named arms: ask it for an arm, tell it the reward.

    Parameters
    ----------
    arms
        Two or more names, all different: strings, numbers, None, or tuples of them; in a list, or a column of NumPy, pandas or
        polars. NumPy's scalars become Python's: ``np.int64(3)`` is kept, handed out and saved as ``3``, which is equal to
        it and finds the same entry in a dict.
    policy
        None: ``AdaKLUCB()``, which must be told nothing and suits costs, latencies, losses and symmetric rewards. For others
        see `robandit.diagnostics.recommend`.
    seed
        For policies that draw random numbers; None takes one from the system.

    Notes
    -----
    Rewards are maximised: give costs and latencies a minus sign. In lockstep, `select` and `update` take turns. If
    rewards come late, `decide` hands out numbered decisions and `reward` takes them in any order, each exactly once. A
    bandit is not safe to use from two threads at once; hold a lock.

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
        check_seed(seed)
        self._arms = _checked_arms(arms)
        self._policy = policy.prepared(None)
        state = policy.start(len(self._arms), None, streams(np.random.SeedSequence(seed), 1)[0])
        self._received = [0] * len(self._arms)
        self._record = Record(len(self._arms))
        self._open: dict[int, tuple[int, float]] = {}
        self._next = 0
        self._expired = 0
        self._pick = -1
        self._start(state)

    def _start(self, state: Any) -> None:
        """Bind the compiled hooks to a state."""
        self._index = {arm: i for i, arm in enumerate(self._arms)}
        self._fresh = self._record.fresh
        self._params = self._policy.params()
        self._horizon = self._policy.longest
        self._made = sum(self._received) + len(self._open) + self._expired  # pulls
        self._entries: dict[str, Any] = {}
        self._use(state)
        self._ask = self._entry("ask", ("select",))
        self._tell = self._entry("tell", ("take", "update", "full"), 0, 0.0)

    def _use(self, state: Any) -> None:
        self._state = state
        self._args = flat((self._params, state))

    def _entry(self, name: str, hooks: tuple[str, ...], *more: Any) -> Any:
        """A compiled entry of :mod:`robandit.kernel.loops`, made when it is first needed."""
        if name not in self._entries:
            bound = partial(getattr(loops, name), *self._policy.hooks(*hooks))
            args = (self._params, self._state, *more)
            self._entries[name] = compiled(bound, label=f"{self._policy.label}, {_PURPOSE[name]}", args=args)
        return self._entries[name]

    # --- asking -----------------------------------------------------------------------------------------------------

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms' names."""
        return self._arms

    @property
    def policy(self) -> Policy:
        """The policy at work."""
        return self._policy

    @property
    def open(self) -> tuple[Decision, ...]:
        """Decisions whose reward is awaited, oldest first."""
        return tuple(self._decision(number) for number in self._open)

    def __repr__(self) -> str:
        """Size and progress; `estimates` has the numbers."""
        counts = f"arms={len(self._arms)}, rewards={sum(self._received)}, open={len(self._open)}"
        return f"<Bandit: {self._policy.name}, {counts}>"

    def select(self) -> Arm:
        """The arm to pull now. Asking never learns: until something is told, the answer stays the same."""
        if self._pick < 0:
            if self._horizon is not None:  # asked here, not there: a call costs as much as a decision
                self._refuse_beyond_horizon(1)
            pick = self._ask(*self._args)
            if not 0 <= pick < len(self._arms):
                raise KernelError(
                    f"{self._policy!r} chose arm {pick}, but arms are 0 to {len(self._arms) - 1}: its select() is wrong"
                )
            self._pick = pick
        return self._arms[self._pick]

    def _refuse_beyond_horizon(self, more: int) -> None:
        if self._horizon is not None and self._made + more > self._horizon:
            raise HorizonReached(
                f"{self._policy!r} was made for {self._horizon} pulls, {self._made} are made, and {more} more asked for: start a "
                "new bandit with a policy that is made for more, or with one that has no end"
            )

    def estimates(self) -> list[dict[str, Any]]:
        """What is believed of each arm: its name, rewards received (``pulls``), and the policy's columns, one dict per arm.

        NaN where the policy has no estimate yet, and an infinite index where the arm is to be explored.
        """
        columns = self._policy.columns
        out = np.full((len(self._arms), len(columns)), math.nan)
        if columns:
            self._entry("describe", ("estimate",), out)(*self._args, out)
        return [
            {"arm": arm, "pulls": pulls, **dict(zip(columns, row, strict=True))}
            for arm, pulls, row in zip(self._arms, self._received, out.tolist(), strict=True)
        ]

    def counters(self) -> dict[str, int]:
        """Rewards received, open decisions, and what the policy counts (AdaR-UCB: evaluations that were not exact)."""
        counts = {"rewards": sum(self._received), "open": len(self._open)}
        return counts | self._policy.counters(self._state)

    def diagnose(self) -> Diagnosis:
        """What the rewards are like, whether they contradict the policy's assumption, and which policy would suit them.

        Per arm: rewards, share of zeros, median, tail indices below and above it, and truncated non-positivity about 0 and
        about the median (confidence 0.99 each), from a random sample of at most 2,048 rewards. ``print`` it. A bandit whose
        leading arm contradicts its policy's assumption also warns by itself, once (`robandit.errors.AssumptionWarning`).

        >>> import robandit as rb
        >>> bandit = rb.Bandit(["a", "b"], rb.UCB1())
        >>> bandit.update_many(["a"] * 1000, rb.laws.Pareto(tail=1.5).sample(1000, seed=0))
        >>> bandit.diagnose().advice.case
        'right-skewed'
        """
        return diagnosed(self._policy, self._arms, self._received, self._record)

    # --- telling ----------------------------------------------------------------------------------------------------

    def update(self, arm: Arm, reward: float) -> None:
        """The arm was pulled and gave this reward.

        It need not be the arm that `select` named, except for policies that weight rewards by the probability of the
        choice.
        """
        try:
            i = self._index[arm]
        except (KeyError, TypeError):
            i = self._position(arm)  # says what is wrong; one call less pays for keeping the reward on record
        value = reward if type(reward) is float and -_LARGEST <= reward <= _LARGEST else checked_reward(reward)
        if self._policy.weighted and i != self._pick:
            raise DecisionError(
                f"{self._policy.label} weights a reward by the probability of its choice, and {arm!r} is not what "
                "select() named last: call select() right before update(), or use decide() and reward()"
            )
        if self._horizon is not None:
            self._refuse_beyond_horizon(1)
        alarm = self._learn(i, value)
        if alarm:
            _warn(alarm)

    def update_many(self, arms: Iterable[Arm], rewards: Iterable[float]) -> None:
        """Pulls and their rewards, in order, as if told one by one; nothing is learned if any of them is refused.

        Lists, or columns of NumPy, pandas, polars or Arrow. They go together by position: an index of pandas plays no part.
        Missing values are refused with their position.
        """
        if self._policy.weighted:
            raise DecisionError(
                f"{self._policy.label} weights a reward by the probability of its choice, which is not known for "
                "rewards told in bulk: use decide() and reward()"
            )
        names = listed("arms", arms)
        values = checked_rewards("rewards", rewards)
        try:
            positions = [self._index[name] for name in names]
        except (KeyError, TypeError):
            positions = [self._position(name, at("arms", k)) for k, name in enumerate(names)]
        if len(positions) != len(values):
            raise InvalidInput(
                f"{len(positions)} arms but {len(values)} rewards: there must be one reward for each arm"
            )
        if self._horizon is not None:
            self._refuse_beyond_horizon(len(values))
        alarm = ""
        for i, value in zip(positions, values, strict=True):
            alarm = self._learn(i, value) or alarm
        if alarm:
            _warn(alarm)

    def _learn(self, i: int, value: float) -> str:
        self._pick = -1
        must_grow = self._tell(*self._args, i, value)
        self._received[i] += 1
        self._made += 1
        if must_grow:
            self._use(self._policy.grow(self._state))
        fresh = self._fresh[i]
        fresh.append(value)
        return self._fold(i) if len(fresh) >= CHUNK else ""

    def _fold(self, i: int) -> str:
        """Put an arm's new rewards on record; what to warn of, or nothing."""
        self._record.fold(i)
        found = self._record.alarm(i, self._received, self._policy.facts.assumption.text)
        return advised(self._policy, self._arms, i, found, self._record) if found is not None else ""

    # --- late rewards -----------------------------------------------------------------------------------------------

    def decide(self) -> Decision:
        """Commit to a pull whose reward will come later, through `reward`."""
        issue = self._entry("issue", ("take",), 0)  # before anything changes: it may fail to compile, or be interrupted
        self.select()
        i, self._pick = self._pick, -1
        number = self._next
        self._open[number] = (i, issue(*self._args, i))
        self._next += 1
        self._made += 1
        return self._decision(number)

    def reward(self, decision: Decision | int, value: float) -> None:
        """The reward of an open decision (or of its id): late, in any order, exactly once."""
        number = self._checked_open(decision)
        alarm = self._settle(number, checked_reward(value))
        if alarm:
            _warn(alarm)

    def reward_many(self, decisions: Iterable[Decision | int], values: Iterable[float]) -> None:
        """Rewards of several open decisions; nothing is learned if any is refused. Lists or columns, as for `update_many`."""
        chosen = [self._checked_open(d, at("decisions", k)) for k, d in enumerate(listed("decisions", decisions))]
        checked = checked_rewards("values", values)
        if len(chosen) != len(checked):
            raise InvalidInput(f"{len(chosen)} decisions but {len(checked)} rewards: there must be one reward for each")
        if len(set(chosen)) < len(chosen):
            twice = Counter(chosen).most_common(1)[0][0]
            raise DecisionError(f"decision {twice} is given twice: a decision is rewarded exactly once")
        alarm = ""
        for number, value in zip(chosen, checked, strict=True):
            alarm = self._settle(number, value) or alarm
        if alarm:
            _warn(alarm)

    def expire(self, *decisions: Decision | int) -> None:
        """Give up on open decisions: their rewards will never come, and are refused from now on."""
        forget = self._entry("forget", ("expire",), 0, 0.0)
        for number in dict.fromkeys([self._checked_open(d) for d in decisions]):
            i, mark = self._open[number]
            self._pick = -1
            forget(*self._args, i, mark)
            del self._open[number]
            self._expired += 1

    def _settle(self, number: int, value: float) -> str:
        late = self._entry("late", ("update", "full"), 0, 0.0, 0.0)
        i, mark = self._open[number]
        self._pick = -1
        must_grow = late(*self._args, i, value, mark)
        del self._open[number]
        self._received[i] += 1
        if must_grow:
            self._use(self._policy.grow(self._state))
        fresh = self._fresh[i]
        fresh.append(value)
        return self._fold(i) if len(fresh) >= CHUNK else ""

    def _decision(self, number: int) -> Decision:
        i, mark = self._open[number]
        return Decision(number, self._arms[i], mark if self._policy.weighted else None)

    def _checked_open(self, decision: Decision | int, where: str = "") -> int:
        number = plain(decision.id if isinstance(decision, Decision) else decision)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < self._next:
            raise DecisionError(f"{where}decision {number!r} was never made: use an id that decide() returned")
        if number not in self._open:
            raise DecisionError(
                f"{where}decision {number} is closed: it was already rewarded or expired, and counts exactly once"
            )
        if isinstance(decision, Decision) and decision != self._decision(number):
            raise DecisionError(f"{where}{decision!r} is not a decision of this bandit: {self._decision(number)!r} is")
        return number

    def _position(self, arm: Arm, where: str = "") -> int:
        try:
            return self._index[_hashable(arm)]
        except (KeyError, TypeError):
            known = ", ".join(repr(a) for a in self._arms[:10]) + (", ..." if len(self._arms) > 10 else "")
            raise UnknownArm(f"{where}arm {arm!r} is unknown: this bandit has {known}") from None

    # --- saving -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bandit to a file, open decisions included. The old file stays until the new one is complete."""
        payload = self._packed()
        version = FORMAT_VERSION.to_bytes(4, "big")
        check = hashlib.sha256(payload).digest()
        write_atomically(path, lambda file: file.write(MAGIC + version + check + payload))

    def _packed(self) -> bytes:
        return msgspec.msgpack.encode(
            {
                "policy": self._policy.to_dict(),
                "arms": self._arms,
                "received": self._received,
                "open": [[number, i, mark] for number, (i, mark) in self._open.items()],
                "next": self._next,
                "expired": self._expired,
                "pick": self._pick,
                "state": {
                    name: [array.dtype.str, array.shape, array.tobytes()]
                    for name, array in self._state._asdict().items()
                },
                "record": self._record.save(),
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made of what `save` writes: independent of the original, and of compiled code."""
        return _unpacked, (self._packed(), "a copied bandit")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bandit:
        """Read a bandit that `save` wrote; it goes on exactly where it was.

        A policy of your own must have been imported before.
        """
        where = named(path)
        try:
            content = where.read_bytes()
        except OSError as error:
            raise FileError(f"{where} cannot be read: {error.strerror}") from error
        head = len(MAGIC)
        version = int.from_bytes(content[head : head + 4], "big")
        if content[:head] != MAGIC or len(content) < head + 36 or version < 1:
            raise CorruptFile(f"{where} is not a bandit that Robandit saved")
        if version > FORMAT_VERSION:
            raise NewerFile(
                f"{where} has format {version}; this Robandit reads up to {FORMAT_VERSION}: upgrade robandit"
            )
        payload = content[head + 36 :]
        if hashlib.sha256(payload).digest() != content[head + 4 : head + 36]:
            raise CorruptFile(f"{where} is damaged: its checksum does not match; restore it from a copy")
        return _unpacked(payload, str(where))


class _Content(msgspec.Struct):
    """What a file holds."""

    policy: dict[str, Any]
    arms: list[Any]
    received: list[int]
    open: list[tuple[int, int, float]]
    next: int
    pick: int
    state: dict[str, tuple[str, list[int], bytes]]
    expired: int = 0
    record: Saved | None = None


def _unpacked(payload: bytes, where: str) -> Bandit:
    try:
        data = msgspec.msgpack.decode(payload, type=_Content)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CorruptFile(f"{where} is damaged: {error}") from error
    bandit = Bandit.__new__(Bandit)
    bandit._policy = Policy.from_dict(data.policy)
    try:
        bandit._arms = _checked_arms(data.arms)
    except InvalidInput as error:
        raise CorruptFile(f"{where} is damaged: {error}") from error
    bandit._received = data.received
    bandit._open = {number: (i, mark) for number, i, mark in data.open}
    bandit._next = data.next
    bandit._expired = data.expired
    bandit._pick = data.pick
    arms = range(len(bandit._arms))
    known = all(i in arms and 0 <= number < data.next for number, i, _ in data.open)
    counted = len(data.received) == len(arms) and min([data.expired, *data.received]) >= 0
    if not counted or not known or (data.pick != -1 and data.pick not in arms):
        raise CorruptFile(f"{where} is damaged: its counts, decisions and arms do not fit together")
    record = Record.load(data.record, len(arms))
    if record is None:
        raise CorruptFile(f"{where} is damaged: its record of rewards does not fit its arms")
    bandit._record = record
    bandit._start(_restored(where, bandit._policy, len(bandit._arms), data.state))
    return bandit


def _restored(where: str, policy: Policy, arms: int, saved: dict[str, Any]) -> Any:
    """The saved arrays as the policy's state, if they have the names, types and sizes that it uses today."""
    fresh = policy.init(arms, None)
    wanted = fresh._asdict()
    try:
        arrays = {n: np.frombuffer(data, dtype=kind).reshape(shape).copy() for n, (kind, shape, data) in saved.items()}
    except (TypeError, ValueError) as error:
        raise CorruptFile(f"{where} is damaged: {error}") from error
    if set(arrays) != set(wanted) or not all(_fits(arrays[name], array) for name, array in wanted.items()):
        raise CorruptFile(
            f"{where} holds a state that {policy.label} does not use: it was saved by another version of the policy"
        )
    return type(fresh)(**{name: arrays[name] for name in fresh._fields})


def _fits(saved: Any, fresh: Any) -> bool:
    """Could a state that began as the fresh array have become the saved one? It keeps its type, and may have grown."""
    same = saved.dtype == fresh.dtype and saved.ndim == fresh.ndim
    return same and all(is_ >= was for is_, was in zip(saved.shape, fresh.shape, strict=True))


def _warn(text: str) -> None:
    """Warn at the user's line. Only when everything is learned: the user may have turned warnings into errors."""
    warnings.warn(text, AssumptionWarning, stacklevel=3)


def check_seed(seed: Any) -> None:
    """Raise `InvalidInput` unless this is a seed, or None."""
    good = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0
    if seed is not None and not good:
        raise InvalidInput(f"seed = {seed!r} must be a whole number >= 0, or None")


def _checked_arms(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    names = tuple(_hashable(arm) for arm in listed("arms", arms, "a list of names, such as ['a', 'b']"))
    for name in names:
        _check_arm(name)
    if len(names) < 2:
        raise InvalidInput(f"arms = {list(names)!r}: there must be at least two arms to choose from")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        way = ": of a column, pass its unique()" if hasattr(arms, "unique") else ""
        raise InvalidInput(
            f"arm {twice!r} is given twice (1, 1.0 and True are the same to Python): names must differ{way}"
        )
    return names


def _hashable(arm: Arm) -> Arm:
    """Lists come back from a file where tuples went in; NumPy's scalars become Python's."""
    if isinstance(arm, (list, tuple)):
        return tuple(_hashable(a) for a in arm)
    return plain(arm)


def _check_arm(arm: Arm) -> None:
    if isinstance(arm, tuple):
        for part in arm:
            _check_arm(part)
        return
    good = arm is None or isinstance(arm, (str, int, float))
    try:
        msgspec.msgpack.encode(arm)  # refuses whole numbers beyond 64 bits, lone surrogates, and most subclasses
    except Exception:
        good = False
    if not good or (isinstance(arm, float) and not math.isfinite(arm)):
        raise InvalidInput(
            f"arm {arm!r} cannot be saved: a name is a string, a finite number of up to 64 bits, None, or a tuple of "
            "them"
        )
