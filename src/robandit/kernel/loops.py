"""The entries that are compiled for each policy: the simulation loop, and the single steps of a live bandit.

They are generic in the policy's hooks, which come first and are bound before compilation (see :mod:`robandit.kernel.generate`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robandit.kernel.types import Floats, Ints, UInts

__all__ = ["LARGEST_REWARD", "MISSED", "ask", "describe", "forget", "issue", "late", "play", "tell"]

LARGEST_REWARD = 1e150
"""Rewards are squared and the squares added up, so their size is bounded by the square root of the largest double."""

MISSED = 7
"""The column of a law table whose first number a sampler may add to, where it knows what the best arm would have given instead."""

Hook = Callable[..., Any]


def play(
    select: Hook,
    take: Hook,
    update: Hook,
    full: Hook,
    draw: Hook,
    p: Any,
    s: Any,
    table: Any,
    streams: UInts,
    gaps: Floats,
    marks: Ints,
    regret: Floats,
    pulls: Ints,
    refused: Floats,
    t: int,
    stop: int,
) -> int:
    """Pull from time ``t`` until ``stop``; returns the time reached.

    ``regret[j]`` becomes the regret at time ``marks[j]``: the gaps of the arms pulled, and what the sampler says was missed. It
    returns early when the state must grow, and when an arm or a reward is not usable: then ``refused`` holds 1 (the arm does not
    exist) or 2 (the reward), the arm and the reward.
    """
    j = 0
    while j < marks.shape[0] and marks[j] <= t:
        j += 1
    while t < stop:
        if full(p, s):
            return t
        arm = int(select(p, s))
        if arm < 0 or arm >= gaps.shape[0]:
            refused[0] = 1.0
            refused[1] = arm
            return t
        mark = take(p, s, arm)
        reward = draw(table.code, table.par, table.start, table.pool, arm, streams[arm])
        if not abs(reward) <= LARGEST_REWARD:
            refused[0] = 2.0
            refused[1] = arm
            refused[2] = reward
            return t
        update(p, s, arm, reward, mark)
        pulls[arm] += 1
        t += 1
        if j < marks.shape[0] and marks[j] == t:
            total = 0.0
            for i in range(gaps.shape[0]):
                total += gaps[i] * pulls[i]
            regret[j] = total + table.par[0, MISSED]
            j += 1
    return t


def ask(select: Hook, p: Any, s: Any) -> int:
    """The arm to pull now."""
    return int(select(p, s))


def tell(take: Hook, update: Hook, full: Hook, p: Any, s: Any, arm: int, reward: float) -> bool:
    """An arm was pulled and gave this reward; returns whether the state must grow."""
    update(p, s, arm, reward, take(p, s, arm))
    return full(p, s)


def issue(take: Hook, p: Any, s: Any, arm: int) -> float:
    """An arm is pulled, its reward will come later; returns the mark to hand in with it."""
    return take(p, s, arm)


def late(update: Hook, full: Hook, p: Any, s: Any, arm: int, reward: float, mark: float) -> bool:
    """The reward of an earlier pull; returns whether the state must grow."""
    update(p, s, arm, reward, mark)
    return full(p, s)


def forget(expire: Hook, p: Any, s: Any, arm: int, mark: float) -> None:
    """The reward of an earlier pull will never come."""
    expire(p, s, arm, mark)


def describe(estimate: Hook, p: Any, s: Any, out: Floats) -> None:
    """One row of the policy's columns per arm."""
    for arm in range(out.shape[0]):
        estimate(p, s, arm, out[arm])


def take_nothing(p: Any, s: Any, arm: int) -> float:
    """For policies that need not know that a pull was made before its reward is there."""
    return 1.0


def expire_nothing(p: Any, s: Any, arm: int, mark: float) -> None:
    """For policies that never counted the pull."""


def never_full(p: Any, s: Any) -> bool:
    """For policies whose state has a fixed size."""
    return False


def without_mark(update: Hook, p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
    """Lets an ``update(p, s, arm, reward)`` stand where one with a mark is expected."""
    update(p, s, arm, reward)
