"""Dirichlet sampling by its definition, and the exact probability of a duel.

`SlowDirichletSampling` shares only the hash of the random numbers with the policy. Everything is computed anew in every round:
sums by `math.fsum`, the tilt by a root finder of SciPy, without caps.
"""

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from robandit.kernel.random import exponential, mixed

GOLDEN, BY_ARM = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95


def bonus_point(rewards, mu, upper=None):
    """The point b; without an upper bound, the robust one."""
    if upper is not None:
        return upper
    n = len(rewards)
    return mu + math.sqrt(math.log(1 + n)) * sum(max(mu - x, 0) for x in rewards) / n


def winning_probability(rewards, mu, b):
    """P(sum w_i x_i + w_{n+1} b >= mu) for uniform weights and distinct points.

    With exponential e_i, sum e_i z_i is positive with probability sum over z_i > 0 of the product over j of z_i / (z_i - z_j).
    """
    z = [Fraction(x) - Fraction(mu) for x in [*rewards, b]]
    assert len(set(z)) == len(z)
    terms = (math.prod(zi / (zi - zj) for zj in z if zj != zi) for zi in z if zi > 0)
    return float(sum(terms, Fraction(0)))


class SlowDirichletSampling:
    """All arms are always allowed, and every pull has its reward at once."""

    def __init__(self, arms, rng, upper=None):
        self.rewards = [[] for _ in range(arms)]
        self.rng = [int(word) for word in rng]
        self.upper = upper
        self.queue, self.leader, self.r = [], -1, 0
        self.drawn = 0  # duels that needed weights

    def word(self, arm):
        counter = (self.rng[0] + self.r * GOLDEN + arm * BY_ARM) % 2**64
        return int(mixed(mixed(np.uint64(counter)) ^ np.uint64(self.rng[1])))

    def choose(self):
        for arm, rewards in enumerate(self.rewards):
            if not rewards:
                return arm
        if not self.queue:
            self.start()
        return self.queue[0]

    def start(self):
        means = [math.fsum(x) / len(x) for x in self.rewards]
        exact = [Fraction(sum(map(Fraction, x)), len(x)) for x in self.rewards]
        arms = range(len(means))
        self.leader = max(arms, key=lambda k: (len(self.rewards[k]), exact[k], k == self.leader, -k))
        fewer = [k for k in arms if len(self.rewards[k]) < len(self.rewards[self.leader])]
        lead = self.leader
        self.queue = [k for k in fewer if exact[k] >= exact[lead] or self.wins(k, means[lead])] or [lead]
        self.r += 1

    def wins(self, arm, mu):
        word = self.word(arm)
        u = ((word >> 11) + 1) * 2.0**-53
        rewards = self.rewards[arm]
        # the bonus point is the first, as its weight is drawn first
        upper = None if self.upper is None else max(self.upper, *(max(x) for x in self.rewards))
        z = np.array([bonus_point(rewards, mu, upper) - mu, *(x - mu for x in rewards)])
        if z.max() <= 0:
            return False
        t = 0.0
        if z.sum() < 0:
            ends = 0.0, (1 - 1e-9) / z.max()
            t = brentq(lambda t: (z / (1 - t * z)).sum(), *ends, xtol=1e-300, rtol=1e-14)
        bound = -np.log1p(-t * z).sum()
        if math.log(u) > bound:
            return False
        self.drawn += 1
        seeds = [np.uint64(((word ^ self.rng[2]) + i * GOLDEN) % 2**64) for i in (1, 2, 3, 4)]
        stream = np.array([mixed(seed) for seed in seeds], dtype=np.uint64)
        e = np.array([exponential(stream) for _ in z]) / (1 - t * z)
        return e @ z >= 0 and math.log(u) <= bound - t * (e @ z)

    def learn(self, arm, reward):
        if self.queue:
            assert self.queue.pop(0) == arm
        self.rewards[arm].append(reward)
