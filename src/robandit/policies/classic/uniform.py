"""Uniform play, the baseline that learns nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.random import uniform
from robandit.kernel.types import Bools, UInts
from robandit.policies._parts.records import state_of
from robandit.policies.base import Policy
from robandit.policies.facts import Facts


class Uniform(Policy):
    """Pulls a uniformly random arm every time, whatever the rewards.

    Use it as a baseline that learns nothing, or to collect unbiased data.

    Guarantee
    ---------
    Expected regret is exactly T times the mean gap. Requires no prior knowledge. Anytime and randomised.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.Uniform(), problem, horizon=1000, replications=20, seed=0)
    >>> bool(abs(result.regret[0, :, -1].mean() - 300) < 15)
    True
    """

    uses_rewards = False
    respects_allowed = True
    use_when = "you collect unbiased data, or want a baseline"
    about = Facts(
        random=True, bound="by definition", instance="sum gap/K T", title="Uniform play", matches=(False, None)
    )

    def init(self, arms: int, horizon: int | None) -> Any:
        return state_of(arms=np.array([arms], dtype=np.int64), rng=np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p: Any, s: Any) -> int:
        return any_arm(s.allowed, s.rng)

    @staticmethod
    def chance(p: Any, s: Any, arm: int) -> float:
        return 1.0 / allowed_arms(s.allowed) if s.allowed[arm] else 0.0

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        """Learn nothing."""


def any_arm(allowed: Bools, rng: UInts) -> int:
    """Return a uniformly random allowed arm. Arms are counted only if the first draw, among all arms, is not allowed."""
    arm = drawn(allowed.shape[0], rng)
    return arm if allowed[arm] else any_allowed(allowed, rng)


def drawn(count: int, rng: UInts) -> int:
    """Return a uniformly random number from 0 to count - 1 (``uniform`` is in (0, 1])."""
    return min(math.ceil(uniform(rng) * count), count) - 1


@out_of_line
def any_allowed(allowed: Bools, rng: UInts) -> int:
    """Return a uniformly random arm among the allowed ones, or -1 if there are none."""
    left = drawn(allowed_arms(allowed), rng)
    for arm in range(allowed.shape[0]):
        if allowed[arm]:
            if left == 0:
                return arm
            left -= 1
    return -1


def allowed_arms(allowed: Bools) -> int:
    """Return the number of allowed arms."""
    count = 0
    for arm in range(allowed.shape[0]):
        count += 1 if allowed[arm] else 0
    return count
