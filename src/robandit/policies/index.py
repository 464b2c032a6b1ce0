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

Pulls without a reward (``s.unrewarded``) count in n, but not in the mean: the template moves the index towards the mean by the
factor sqrt(n/m), where m is n plus their number, and forces an arm that lacks its first rewards only while m < max(2, 4 L), with
L = log(1 + t/K). Then the arm waits. (AdaKL-UCB's rule, for a width that falls as 1/sqrt(n).) A policy without ``mean`` does not
have it.

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
from robandit.policies._parts.waiting import lowered
from robandit.policies.base import Policy
from robandit.validation import LARGEST_INTEGER

TAKEN = 0  # in ``pulls``, after the arms: total number of pulls
TRIED = 1  # number of arms that have their first rewards
UNSEEN = 4.0  # pulls per unit of L after which an arm without its first rewards waits
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


def keep_pull(p: Any, s: Any, arm: int, mark: float) -> None:
    """Do nothing: the pull stays counted. By the rule of 0.2, `expire_pull`."""
    if s.unrewarded[s.unrewarded.shape[0] - 1] == 0:
        expire_pull(p, s, arm, mark)


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


def may_force(s: Any, arm: int, n: float) -> bool:
    """Return whether an arm that lacks its first rewards is to be pulled: false if many pulls have not answered."""
    waiting = s.unrewarded[arm]
    if waiting == 0:
        return True
    arms = s.pulls.shape[0] - 2
    return n + waiting < max(2.0, UNSEEN * math.log(1.0 + s.pulls[arms + TAKEN] / arms))


@out_of_line
def untried(rewards: Rewards, s: Any, least: float) -> int:
    """Return the allowed arm with the fewest pulls (then the lowest) among those with fewer than ``least`` rewards, or -1."""
    chosen = -1
    for arm in range(s.pulls.shape[0] - 2):
        if s.allowed[arm] and rewards(s, arm) < least and (chosen < 0 or s.pulls[arm] < s.pulls[chosen]):
            chosen = arm
    return chosen


@out_of_line
def unanswered(rewards: Rewards, s: Any, least: float) -> int:
    """Return `untried`, without arms that have to wait."""
    chosen = -1
    for arm in range(s.pulls.shape[0] - 2):
        n = rewards(s, arm)
        if s.allowed[arm] and n < least and (chosen < 0 or s.pulls[arm] < s.pulls[chosen]) and may_force(s, arm, n):
            chosen = arm
    return chosen


def first_forced(rewards: Rewards, s: Any, least: float) -> int:
    """Return an allowed arm that lacks its first rewards and does not have to wait for them, or -1."""
    return -1 if all_tried(s) else unanswered(rewards, s, least)


def counted(index: Any, mean: Any, rewards: Rewards, first: Any, p: Any, s: Any, arm: int, level: float) -> float:
    """Return the index, with pulls without a reward counted in n. It is -infinity while an arm waits for its first rewards."""
    waiting = s.unrewarded[arm]
    if waiting == 0:
        return index(p, s, arm, level)
    return counted_waiting(index, mean, rewards, first, p, s, arm, level)


def counted_outlook(
    outlook: Any, rewards: Rewards, first: Any, p: Any, s: Any, arm: int, level: float
) -> tuple[float, float, float]:
    """Return the policy's line, which is above `counted`, unless the arm waits for its first rewards."""
    if s.unrewarded[arm] > 0 and rewards(s, arm) < max(first(p), 1.0):
        return math.inf, 0.0, math.inf
    return outlook(p, s, arm, level)


@out_of_line
def counted_waiting(
    index: Any, mean: Any, rewards: Rewards, first: Any, p: Any, s: Any, arm: int, level: float
) -> float:
    """Return `counted` for an arm with pulls without a reward."""
    n = rewards(s, arm)
    value = index(p, s, arm, level) if n >= first(p) else -math.inf
    if value == math.inf:
        return math.inf if may_force(s, arm, n) else -math.inf
    if value == -math.inf or n <= 0.0:
        return value
    centre = mean(p, s, arm)
    return centre + (value - centre) * math.sqrt(n / (n + s.unrewarded[arm]))


def first_untried(rewards: Rewards, s: Any, least: float) -> int:
    """Return an allowed arm that lacks its first rewards, or -1. Arms without them that are not allowed have to wait."""
    return -1 if all_tried(s) else untried(rewards, s, least)


def select_largest(index: Any, outlook: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any) -> int:
    """Return an arm that lacks its first rewards, or else the arm with the largest index."""
    if first(p) > 0.0:
        arm = first_forced(rewards, s, first(p))
        if arm >= 0:
            return arm
    return best_arm(index, outlook, pulls_made, p, s, level(p, s))


def select_lowered(index: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any, shifts: Floats) -> int:
    """Return an arm that lacks its first rewards, or else the arm with the largest index minus its shift."""
    if first(p) > 0.0:
        arm = first_forced(rewards, s, first(p))
        if arm >= 0:
            return arm
    return lowered(index, pulls_made, p, s, level(p, s), shifts)


def select_by_score(score: Any, rewards: Rewards, p: Any, s: Any) -> int:
    """Return an arm without rewards, or else the arm with the largest ``score(p, s, arm)``; ties as in `untried`.

    Each score of an allowed arm is evaluated once, in the order of the arms, since scores may be random.
    """
    untried_arm = first_forced(rewards, s, 1.0)
    if untried_arm >= 0:
        return untried_arm
    chosen = -1
    best = -math.inf
    for arm in range(s.pulls.shape[0] - 2):
        if not s.allowed[arm]:
            continue
        value = score(p, s, arm) if rewards(s, arm) > 0.0 else -math.inf  # such an arm waits
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


# The hooks that each template takes, in order. `outlook` comes first, because `select` takes it. ``index`` is `counted`.
_PARTS = {
    "outlook": ("index",),
    "select": ("index", "outlook", "level", "rewards", "first"),
    "waiting": ("index", "level", "rewards", "first"),
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
    waiting: ClassVar[Any] = _template("waiting", select_lowered)
    update: ClassVar[Any] = _template("update", learn)
    estimate: ClassVar[Any] = _template("estimate", describe_arm)
    chance: ClassVar[Any] = None
    take: ClassVar[Any] = staticmethod(take_pull)
    expire: ClassVar[Any] = staticmethod(keep_pull)

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
                setattr(cls, name, staticmethod(partial(hook.func, *(cls._part(part) for part in parts))))
        if getattr(cls.select, "func", None) is not select_largest or (
            hasattr(cls, "index") and not hasattr(cls, "mean")
        ):
            cls.waiting = None  # another rule chooses, or the index may have another unit than rewards
        super().__init_subclass__()

    @classmethod
    def _part(cls, name: str) -> Any:
        part = getattr(cls, name)
        if name == "index" and hasattr(cls, "mean"):
            return partial(counted, part, cls.mean, cls.rewards, cls.first)
        if name == "outlook":
            return partial(counted_outlook, part, cls.rewards, cls.first)
        return part


class IndexPolicy(IndexHooks, Policy):
    """A policy that pulls the arm with the largest index. The module describes how to write one."""

    columns: ClassVar[tuple[str, ...]] = ("mean", "index")
    respects_allowed: ClassVar[bool] = True
    counts_unrewarded: ClassVar[bool] = True
    row_length: ClassVar[int]
    """The number of values that the state keeps for each arm."""

    def init(self, arms: int, horizon: int | None) -> Any:
        """Return a state of zeros, with one row of `row_length` numbers per arm."""
        if not hasattr(self, "row_length"):
            raise InvalidInput(
                f"{type(self).__name__} has no row_length, the number of values per arm: set it, or write init"
            )
        return IndexState(np.zeros((arms, self.row_length)), no_pulls(arms), *lazy_state(arms))
