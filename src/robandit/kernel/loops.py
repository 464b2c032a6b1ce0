"""The functions compiled for each policy: the simulation loop and the steps of a live bandit. Their first parameters are hooks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from robandit.kernel.build import bounds_checked
from robandit.kernel.types import Floats, Ints, UInts

LARGEST_REWARD = 1e150
SMALLEST_REWARD = 1e-130
"""Bounds of the sizes of rewards other than 0. Between them, sums of squares stay finite, and the square of the difference of two
rewards is not rounded to 0, which would remove a confidence width. (Two rewards of size 1e-130 differ by at least 1e-146.)"""

NOW = math.nan
"""The mark that `tell` takes for a pull that was not issued before. The marks of policies are finite."""

Hook = Callable[..., Any]


def play(
    select: Hook,
    take: Hook,
    update: Hook,
    full: Hook,
    draw: Hook,
    missed: Hook,
    p: Any,
    s: Any,
    table: Any,
    streams: UInts,
    gaps: Floats,
    checkpoints: Ints,
    regret: Floats,
    pulls: Ints,
    rejected: Floats,
    t: int,
    stop: int,
) -> int:
    """Pull from time ``t`` until ``stop``; return the time reached.

    ``regret[j]`` becomes the regret at time ``checkpoints[j]``: the gaps of the arms pulled, plus the regret that the sampler
    itself measured (``missed(table)``: 0 for laws, see `robandit.laws.table.missed`). The loop returns early when the state must
    grow, or when an arm or a reward is invalid. Then ``rejected`` holds 1 (arm) or 2 (reward), followed by the arm and the reward.
    """
    j = 0
    while j < checkpoints.shape[0] and checkpoints[j] <= t:
        j += 1
    while t < stop:
        if full(p, s):
            return t
        arm = int(select(p, s))
        if arm < 0 or arm >= gaps.shape[0]:
            rejected[0] = 1.0
            rejected[1] = arm
            return t
        mark = take(p, s, arm)
        reward = draw(table.code, table.par, table.start, table.pool, arm, streams[arm])
        if not playable(reward):
            rejected[0] = 2.0
            rejected[1] = arm
            rejected[2] = reward
            return t
        update(p, s, arm, reward, mark)
        pulls[arm] += 1
        t += 1
        if j < checkpoints.shape[0] and checkpoints[j] == t:
            total = 0.0
            for i in range(gaps.shape[0]):
                total += gaps[i] * pulls[i]
            regret[j] = total + missed(table)
            j += 1
    return t


class Late(NamedTuple):
    """The decisions of a run whose rewards come late."""

    arms: Ints
    rewards: Floats
    marks: Floats
    order: Ints
    """The decisions in the order in which their rewards arrive."""
    due: Ints
    """In this order, the decision before which each reward is known, and at the end a number beyond the horizon."""
    learned: Ints
    """One number: how many rewards have arrived."""


def play_late(
    select: Hook,
    take: Hook,
    update: Hook,
    full: Hook,
    draw: Hook,
    missed: Hook,
    p: Any,
    s: Any,
    table: Any,
    streams: UInts,
    gaps: Floats,
    checkpoints: Ints,
    regret: Floats,
    pulls: Ints,
    rejected: Floats,
    late: Any,
    t: int,
    stop: int,
) -> int:
    """Do what `play` does, with rewards that are learned when they are due. Each step learns a reward or makes a decision.

    It is a function of its own, so that rewards that come at once cost no more.
    """
    j = 0
    while j < checkpoints.shape[0] and checkpoints[j] <= t:
        j += 1
    one = s.unrewarded[s.unrewarded.shape[0] - 1]
    while t < stop or late.due[late.learned[0]] <= t:
        if full(p, s):
            return t
        if late.due[late.learned[0]] <= t:
            i = late.order[late.learned[0]]
            late.learned[0] += 1
            s.unrewarded[late.arms[i]] -= one
            update(p, s, late.arms[i], late.rewards[i], late.marks[i])
            continue
        arm = int(select(p, s))
        if arm < 0 or arm >= gaps.shape[0]:
            rejected[0] = 1.0
            rejected[1] = arm
            return t
        late.marks[t] = take(p, s, arm)
        s.unrewarded[arm] += one
        reward = draw(table.code, table.par, table.start, table.pool, arm, streams[arm])
        if not playable(reward):
            rejected[0] = 2.0
            rejected[1] = arm
            rejected[2] = reward
            return t
        late.arms[t] = arm
        late.rewards[t] = reward
        pulls[arm] += 1
        t += 1
        if j < checkpoints.shape[0] and checkpoints[j] == t:
            total = 0.0
            for i in range(gaps.shape[0]):
                total += gaps[i] * pulls[i]
            regret[j] = total + missed(table)
            j += 1
    return t


def play_contexts(
    select: Hook,
    take: Hook,
    update: Hook,
    full: Hook,
    see: Hook,
    p: Any,
    s: Any,
    rows: Any,
    checkpoints: Ints,
    regret: Floats,
    pulls: Ints,
    rejected: Floats,
    late: Any,
    t: int,
    stop: int,
) -> int:
    """Do what `play_late` does, with the rows of a problem with contexts (`robandit.problems.contextual.Rows`).

    ``see(s, x)`` gives a policy the features of a decision, before the decision and before its reward. ``rejected[1]`` holds the
    regret so far between calls.
    """
    j = 0
    while j < checkpoints.shape[0] and checkpoints[j] <= t:
        j += 1
    one = s.unrewarded[s.unrewarded.shape[0] - 1]
    while t < stop or late.due[late.learned[0]] <= t:
        learns = late.due[late.learned[0]] <= t
        i = late.order[late.learned[0]] if learns else t
        see(s, rows.x[i])
        if full(p, s):
            return t
        if learns:
            late.learned[0] += 1
            s.unrewarded[late.arms[i]] -= one
            update(p, s, late.arms[i], rows.rewards[i, late.arms[i]], late.marks[i])
            continue
        arm = int(select(p, s))
        if arm < 0 or arm >= pulls.shape[0]:
            rejected[0] = 1.0
            rejected[1] = arm
            return t
        late.marks[t] = take(p, s, arm)
        s.unrewarded[arm] += one
        late.arms[t] = arm
        best = rows.means[t, 0]
        for k in range(1, pulls.shape[0]):
            best = max(best, rows.means[t, k])
        rejected[1] += best - rows.means[t, arm]
        pulls[arm] += 1
        t += 1
        if j < checkpoints.shape[0] and checkpoints[j] == t:
            regret[j] = rejected[1]
            j += 1
    return t


def see_features(s: Any, x: Floats) -> None:
    """Give the features of a decision to a policy that uses them."""
    for i in range(x.shape[0]):
        s.x[i] = x[i]


def see_nothing(s: Any, x: Floats) -> None:
    """Keep the features from a policy that does not use them."""


def playable(rewards: Any) -> Any:
    """Return whether policies can learn from a reward, or from each reward of an array. NaN is not playable.

    >>> [playable(reward) for reward in (0.0, -2.5, 1e-200, 1e200)]
    [True, True, False, False]
    """
    size = abs(rewards)
    return (size == 0.0) | ((size >= SMALLEST_REWARD) & (size <= LARGEST_REWARD))


@bounds_checked
def ask(select: Hook, p: Any, s: Any) -> int:
    """Return the arm to pull now."""
    return int(select(p, s))


@bounds_checked
def ask_waiting(select: Hook, waiting: Hook, p: Any, s: Any, shifts: Floats) -> int:
    """Return the arm to pull now, where open decisions are evidence (`robandit.policies._parts.waiting`)."""
    if shifts[shifts.shape[0] - 1] == 0.0:
        return int(select(p, s))
    return int(waiting(p, s, shifts))


@bounds_checked
def chance_waiting(chance: Hook, waiting_chance: Hook, p: Any, s: Any, arm: int, shifts: Floats) -> float:
    """Return the probability with which `ask_waiting` returns the arm."""
    if shifts[shifts.shape[0] - 1] == 0.0:
        return float(chance(p, s, arm))
    return float(waiting_chance(p, s, arm, shifts))


@bounds_checked
def chance_of(chance: Hook, p: Any, s: Any, arm: int) -> float:
    """Return the probability with which the policy chooses the arm now. Call it before `tell` or `issue`."""
    return float(chance(p, s, arm))


@bounds_checked
def tell(take: Hook, update: Hook, full: Hook, p: Any, s: Any, arm: int, reward: float, mark: float) -> bool:
    """Learn the reward of an earlier pull with this mark, or of a pull that is made now; return whether the state must grow.

    The mark of a pull that is made now is `NOW`. One entry does both, because ``update`` takes most of the time of compilation.
    """
    if math.isnan(mark):
        mark = float(take(p, s, arm))
    else:
        s.unrewarded[arm] -= s.unrewarded[s.unrewarded.shape[0] - 1]
    update(p, s, arm, reward, mark)
    return bool(full(p, s))


@bounds_checked
def issue(take: Hook, p: Any, s: Any, arm: int) -> float:
    """Record a pull whose reward comes later; return the mark to pass with it."""
    mark = float(take(p, s, arm))
    s.unrewarded[arm] += s.unrewarded[s.unrewarded.shape[0] - 1]
    return mark


@bounds_checked
def forget(expire: Hook, p: Any, s: Any, arm: int, mark: float) -> None:
    """Record that the reward of an earlier pull will never come. It stays one of the ``unrewarded``."""
    expire(p, s, arm, mark)


@bounds_checked
def describe(estimate: Hook, p: Any, s: Any, out: Floats) -> None:
    """Fill in the policy's columns, one row per arm."""
    for arm in range(out.shape[0]):
        estimate(p, s, arm, out[arm])


def take_nothing(p: Any, s: Any, arm: int) -> float:
    """The ``take`` of policies that learn of a pull only with its reward."""
    return 1.0


def expire_nothing(p: Any, s: Any, arm: int, mark: float) -> None:
    """The ``expire`` of policies that did not count the pull."""


def never_full(p: Any, s: Any) -> bool:
    """The ``full`` of policies whose state has a fixed size."""
    return False


def without_mark(update: Hook, p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
    """Adapt an ``update(p, s, arm, reward)`` to callers that pass a mark."""
    update(p, s, arm, reward)


# --- hooks that take the features x of a decision: they are in the state ----------------------------------------------


def select_at(select: Hook, p: Any, s: Any) -> int:
    """Adapt a ``select(p, s, x)``."""
    return int(select(p, s, s.x))


def update_at(update: Hook, p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
    """Adapt an ``update(p, s, arm, x, reward)``."""
    update(p, s, arm, s.x, reward)


def take_at(take: Hook, p: Any, s: Any, arm: int) -> float:
    """Adapt a ``take(p, s, arm, x)``."""
    return float(take(p, s, arm, s.x))


def expire_at(expire: Hook, p: Any, s: Any, arm: int, mark: float) -> None:
    """Adapt an ``expire(p, s, arm, x, mark)``."""
    expire(p, s, arm, s.x, mark)


def chance_at(chance: Hook, p: Any, s: Any, arm: int) -> float:
    """Adapt a ``chance(p, s, arm, x)``."""
    return float(chance(p, s, arm, s.x))


def estimate_at(estimate: Hook, p: Any, s: Any, arm: int, out: Floats) -> None:
    """Adapt an ``estimate(p, s, arm, x, out)``."""
    estimate(p, s, arm, s.x, out)


AT_X: dict[str, Hook] = {
    "select": select_at,
    "update": update_at,
    "take": take_at,
    "expire": expire_at,
    "chance": chance_at,
    "estimate": estimate_at,
}
"""The adapter of each hook that has a parameter ``x``."""
