"""Epsilon-greedy play."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.random import uniform
from robandit.kernel.types import Floats, Ints, UInts
from robandit.policies.base import Policy, check_number
from robandit.policies.classic.uniform import any_arm
from robandit.policies.facts import Facts
from robandit.policies.index import TRIED, expire_pull, no_pulls, pulls_made, take_pull, untried

__all__ = ["EpsilonGreedy"]

SUM = 0
COUNT = 1
MEAN = 2


class Params(NamedTuple):
    """``epsilon`` as a number."""

    epsilon: float


class State(NamedTuple):
    """Sums, counts and means of rewards; pulls made; the lazy arg-max; and random numbers."""

    arms: Floats  # (arms, 3): SUM, COUNT, MEAN
    pulls: Ints
    lines: Floats
    lead: Ints
    rng: UInts


class EpsilonGreedy(Policy):
    """The arm with the largest sample mean, but now and then any arm: what is often done in practice.

    Simple, and linear regret: exploration never stops. With heavy tails one large reward misleads it for long, since the sample
    mean is not robust and a forgotten arm comes back only by chance.

    Parameters
    ----------
    epsilon
        The probability of an arm chosen uniformly at random, from 0 to 1. Every arm is pulled once first.

    Guarantee
    ---------
    None that is sublinear: regret is at least epsilon times that of uniform play. Must know: nothing. Anytime, random.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.EpsilonGreedy(), problem, horizon=1000, replications=20, seed=0)
    >>> bool(25 < result.regret[0, :, -1].mean() < 60)  # uniform play: 300
    True

    References
    ----------
    R. S. Sutton, A. G. Barto. Reinforcement learning: an introduction. MIT Press, 1998.
    """

    epsilon: float = 0.1

    label = "epsilon-greedy"
    columns = ("mean",)
    about = Facts(random=True, title="epsilon-greedy", citation="Sutton, Barto 1998")

    def validate(self) -> None:
        """Epsilon is a probability."""
        check_number("EpsilonGreedy", "epsilon", self.epsilon, least=0.0)
        if self.epsilon > 1.0:
            raise InvalidInput(f"EpsilonGreedy: epsilon = {self.epsilon!r} must be at most 1: it is a probability")

    def params(self) -> Params:
        """Epsilon."""
        return Params(float(self.epsilon))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        return State(np.zeros((arms, 3)), no_pulls(arms), *lazy_state(arms), np.zeros(4, dtype=np.uint64))

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then a coin decides between any arm and the largest mean."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        if uniform(s.rng) <= p.epsilon:
            return any_arm(arms, s.rng)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, 0.0)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Add the reward to the arm's sum."""
        row = s.arms[arm]
        row[SUM] += reward
        row[COUNT] += 1.0
        row[MEAN] = row[SUM] / row[COUNT]
        if row[COUNT] == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Sample mean."""
        out[0] = s.arms[arm, MEAN] if s.arms[arm, COUNT] > 0.0 else math.nan


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def index(p: Params, s: State, arm: int, level: float) -> float:
    """The sample mean, which time does not change."""
    return s.arms[arm, MEAN]


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """It stays until the next reward."""
    return s.arms[arm, MEAN], 0.0, math.inf
