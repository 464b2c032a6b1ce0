"""Epsilon-greedy play."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from robandit.kernel.lazy import best_arm
from robandit.kernel.random import uniform
from robandit.kernel.types import Floats
from robandit.policies._parts.records import state_of
from robandit.policies.classic.ucb1 import COUNT, SUM, UCB1
from robandit.policies.classic.uniform import allowed_arms, any_arm
from robandit.policies.facts import Facts
from robandit.policies.index import FLAT, IndexPolicy, Rewards, first_forced, pulls_made
from robandit.validation import within

MEAN = 2  # column of ``arms`` after those of UCB1


def explore_or_select(index: Any, outlook: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any) -> int:
    """Return any arm with probability epsilon, else the arm with the largest mean; untried arms come first."""
    arm = first_forced(rewards, s, first(p))
    if arm >= 0:
        return arm
    if uniform(s.rng) <= p.epsilon:
        return any_arm(s.allowed, s.rng)
    return best_arm(index, outlook, pulls_made, p, s, level(p, s))


def explored_or_selected(
    index: Any, outlook: Any, level: Any, rewards: Rewards, first: Any, p: Any, s: Any, arm: int
) -> float:
    """Return the probability with which `explore_or_select` returns the arm."""
    forced = first_forced(rewards, s, first(p))
    if forced >= 0 or not s.allowed[arm]:
        return 1.0 if forced == arm else 0.0
    best = best_arm(index, outlook, pulls_made, p, s, level(p, s))
    return p.epsilon / allowed_arms(s.allowed) + (1.0 - p.epsilon if best == arm else 0.0)


class EpsilonGreedy(IndexPolicy):
    """Pulls the arm with the largest sample mean, and sometimes a random arm. It is common in practice.

    Its regret is linear, because exploration never stops. With heavy tails, one large reward misleads it for a long time.

    Parameters
    ----------
    epsilon
        The probability of pulling a uniformly random arm, from 0 to 1. Every arm is pulled once first.

    Guarantee
    ---------
    No sublinear bound: regret is at least epsilon times that of uniform play. Requires no prior knowledge. Anytime and randomised.

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

    use_when = "you want the baseline that is common in practice"
    label = "epsilon-greedy"
    columns = ("mean",)
    row_length = 3
    about = Facts(random=True, citation="Sutton, Barto 1998", source="a secondary source")

    def validate(self) -> None:
        within(self.epsilon, "epsilon", 0.0, 1.0, owner="EpsilonGreedy")

    def init(self, arms: int, horizon: int | None) -> Any:
        return state_of(**super().init(arms, horizon)._asdict(), rng=np.zeros(4, dtype=np.uint64))

    outlook = FLAT
    rewards = staticmethod(UCB1.rewards)
    select = staticmethod(partial(explore_or_select))
    chance = staticmethod(partial(explored_or_selected))

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        row = s.arms[arm]
        UCB1.add(p, s, arm, reward)
        row[MEAN] = row[SUM] / row[COUNT]

    @staticmethod
    def level(p: Any, s: Any) -> float:
        return 0.0

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = s.arms[arm, MEAN] if s.arms[arm, COUNT] > 0.0 else math.nan
