"""The template of index policies, which pull every arm a few times, then always the arm with the largest index.

A subclass writes hooks in the paper's notation, as static methods:

- ``index(p, s, arm, level)``: the upper bound of the arm's mean;
- ``add(p, s, arm, reward)``: learn a reward;

and, where the default does not fit, ``rewards(s, arm)`` (the number of rewards of an arm), ``mean(p, s, arm)``, ``level(p, s)``
(the quantity that raises the index, by default log t), ``first(p)`` (the number of first rewards of each arm, by default one; 0 if
the index itself is infinite for an arm with too few rewards), and `estimate`.

Every choice computes the index of every arm, unless the policy has ``outlook(p, s, arm, level)``: a line above the index
(:mod:`robandit.kernel.lazy`), which makes choices fast and must not change them. `robandit.checks.check_policy` verifies it.
``outlook = FLAT`` fits an index that changes only with the arm's own rewards. A subclass that replaces ``index`` or ``level``
does not inherit ``outlook``.

The template makes `select`, `update`, `take` and `expire` from them. To wrap one, a subclass sets ``select`` to
``staticmethod(partial(function))``, where the function takes the same hooks as `select_largest` and calls it. If the choice becomes
random, the subclass sets ``chance`` in the same way. Pulls are counted when they are made, so late rewards do not stop the clock.
The state must have the fields of `IndexState`: ``arms`` (one row per arm), ``pulls`` (from `no_pulls`), ``lines`` and ``lead``
(from `lazy_state`). The template skips arms that are not allowed (``s.allowed``, see `robandit.policies.base`); a hook of a
subclass need not look at it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies.base import Policy
from robandit.validation import LARGEST_INTEGER

TAKEN = 0  # in ``pulls``, after the arms: total number of pulls
TRIED = 1  # number of arms that have their first rewards
SLACK = 1e-12  # relative; far above the rounding of an index

Rewards = Callable[[Any, int], float]


def no_pulls(arms: int) -> Ints:
    """Return the ``pulls`` of a new run: pulls of each arm, rewarded or not, their total, and the number of tried arms."""
    return np.zeros(arms + 2, dtype=np.int64)


def most_pulls(horizon: int | None) -> int:
    """Return the most pulls that a run can make: its horizon, or 2^53 in a live bandit."""
    return LARGEST_INTEGER if horizon is None else horizon


def take_pull(p: Any, s: Any, arm: int) -> float:
    """Count a pull whose reward is still to come."""
    s.pulls[arm] += 1
    s.pulls[s.pulls.shape[0] - 2 + TAKEN] += 1
    return 1.0


def expire_pull(p: Any, s: Any, arm: int, mark: float) -> None:
    """Remove a pull without reward from the arm's pulls, which decide ties. The clock still counts it."""
    s.pulls[arm] -= 1


def pulls_made(p: Any, s: Any, arm: int) -> int:
    """Return the number of pulls of an arm. In a tie, the fewest pulls win."""
    return s.pulls[arm]


def log_time(s: Any) -> float:
    """Return log t, where t is the number of the next pull."""
    return math.log(s.pulls[s.pulls.shape[0] - 2 + TAKEN] + 1.0)


def all_tried(s: Any) -> bool:
    """Return whether every arm has its first rewards."""
    arms = s.pulls.shape[0] - 2
    return s.pulls[arms + TRIED] >= arms


def count_tried(s: Any) -> None:
    """Count one more arm that has its first rewards."""
    s.pulls[s.pulls.shape[0] - 2 + TRIED] += 1


@out_of_line
def untried(rewards: Rewards, s: Any, least: float) -> int:
    """Return the allowed arm with the fewest pulls (then the lowest) among those with fewer than ``least`` rewards, or -1."""
    chosen = -1
    for arm in range(s.pulls.shape[0] - 2):
        if s.allowed[arm] and rewards(s, arm) < least and (chosen < 0 or s.pulls[arm] < s.pulls[chosen]):
            chosen = arm
    return chosen


def first_untried(rewards: Rewards, s: Any, least: float) -> int:
    """Return an allowed arm that lacks its first rewards, or -1. Arms without them that are not allowed have to wait."""
    return -1 if all_tried(s) else untried(rewards, s, least)


def select_largest(index: Any, outlook: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any) -> int:
    """Return an arm that lacks its first rewards, or else the arm with the largest index."""
    if first(p) > 0.0:
        arm = first_untried(rewards, s, first(p))
        if arm >= 0:
            return arm
    return best_arm(index, outlook, pulls_made, p, s, level(p, s))


def select_by_score(score: Any, rewards: Rewards, p: Any, s: Any) -> int:
    """Return an arm without rewards, or else the arm with the largest ``score(p, s, arm)``; ties as in `untried`.

    Each score of an allowed arm is evaluated once, in the order of the arms, since scores may be random.
    """
    untried_arm = first_untried(rewards, s, 1.0)
    if untried_arm >= 0:
        return untried_arm
    chosen = -1
    best = -math.inf
    for arm in range(s.pulls.shape[0] - 2):
        if not s.allowed[arm]:
            continue
        value = score(p, s, arm)
        if chosen < 0 or value > best or (value == best and s.pulls[arm] < s.pulls[chosen]):
            best = value
            chosen = arm
    return chosen


def learn(add: Any, rewards: Rewards, first: Any, p: Any, s: Any, arm: int, reward: float) -> None:
    """Add a reward, count the arm when it has its first rewards, and discard its line."""
    add(p, s, arm, reward)
    if rewards(s, arm) == first(p):
        count_tried(s)
    touched(s.lines, s.lead, arm)


def no_outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
    """Return a line at infinity, so that the arm's index is computed at every choice."""
    return math.inf, 0.0, math.inf


def flat_outlook(index: Any, p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
    """Return a constant line, for an index that changes only with the arm's own rewards."""
    return index(p, s, arm, level), 0.0, math.inf


FLAT: Any = staticmethod(partial(flat_outlook))
"""The ``outlook`` of a policy whose indices change only with the arm's own rewards."""


def slightly_above(mean: float, width: float) -> float:
    """Return the height of a line: mean + width, raised by more than its rounding error."""
    return mean + width + SLACK * (abs(mean) + width)


def describe_arm(
    mean: Any, index: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any, arm: int, out: Floats
) -> None:
    """Fill in the mean and the index. They are NaN and infinity before the first rewards.

    The index is computed first, because this may update the mean.
    """
    out[1] = index(p, s, arm, level(p, s)) if rewards(s, arm) >= first(p) else math.inf
    out[0] = mean(p, s, arm) if rewards(s, arm) > 0.0 else math.nan


# The hooks that each template takes, in order. `outlook` comes first, because `select` takes it.
_PARTS = {
    "outlook": ("index",),
    "select": ("index", "outlook", "level", "rewards", "first"),
    "update": ("add", "rewards", "first"),
    "estimate": ("mean", "index", "level", "rewards", "first"),
    "chance": ("index", "outlook", "level", "rewards", "first"),
}


def _template(name: str, function: Callable[..., Any]) -> Any:
    hook: Any = partial(function)
    hook.parts = _PARTS[name]
    hook.__isabstractmethod__ = True
    return staticmethod(hook)


class IndexState(NamedTuple):
    """The state of an index policy without further fields."""

    arms: Floats
    pulls: Ints
    lines: Floats
    lead: Ints


class IndexHooks:
    """The hooks of an index policy; see the module. A policy with several algorithms has one subclass per algorithm."""

    index: ClassVar[Any]
    add: ClassVar[Any]
    mean: ClassVar[Any]
    outlook: ClassVar[Any] = staticmethod(no_outlook)
    select: ClassVar[Any] = _template("select", select_largest)
    update: ClassVar[Any] = _template("update", learn)
    estimate: ClassVar[Any] = _template("estimate", describe_arm)
    chance: ClassVar[Any] = None
    take: ClassVar[Any] = staticmethod(take_pull)
    expire: ClassVar[Any] = staticmethod(expire_pull)

    @staticmethod
    def rewards(s: Any, arm: int) -> float:
        """Return the number of rewards of an arm, by default the first number of its row."""
        return s.arms[arm, 0]

    @staticmethod
    def level(p: Any, s: Any) -> float:
        """Return the quantity that raises the index, by default log t."""
        return log_time(s)

    @staticmethod
    def first(p: Any) -> float:
        """Return the number of rewards that each arm gets before the first index, by default one."""
        return 1.0

    def __init_subclass__(cls) -> None:
        """Bind the subclass's hooks to the templates that it does not replace."""
        newest = next(vars(base) for base in cls.__mro__ if {"outlook", "index", "level"} & vars(base).keys())
        if "outlook" not in newest:  # the inherited one belongs to another index
            cls.outlook = staticmethod(no_outlook)
        for name, parts in _PARTS.items():
            hook = getattr(cls, name)
            if isinstance(hook, partial) and all(hasattr(cls, part) for part in parts):
                setattr(cls, name, staticmethod(partial(hook.func, *(getattr(cls, part) for part in parts))))
        super().__init_subclass__()


class IndexPolicy(IndexHooks, Policy):
    """A policy that pulls the arm with the largest index. The module describes how to write one."""

    columns: ClassVar[tuple[str, ...]] = ("mean", "index")
    respects_allowed: ClassVar[bool] = True
    row_length: ClassVar[int]
    """The number of values that the state keeps for each arm."""

    def init(self, arms: int, horizon: int | None) -> Any:
        """Return a state of zeros, with one row of `row_length` numbers per arm."""
        if not hasattr(self, "row_length"):
            raise InvalidInput(
                f"{type(self).__name__} has no row_length, the number of values per arm: set it, or write init"
            )
        return IndexState(np.zeros((arms, self.row_length)), no_pulls(arms), *lazy_state(arms))
