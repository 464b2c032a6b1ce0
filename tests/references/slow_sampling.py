"""Gaussian Thompson sampling from lists of all rewards, as the paper prints it.

Nothing is shared with the library.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from scipy.integrate import quad
from scipy.special import stdtr, stdtrit


class Slow:
    """Keeps all rewards, counts pulls when they are made, and tries every arm ``first`` times."""

    first = 1

    def __init__(self, arms):
        self.x = [[] for _ in range(arms)]
        self.pulls = [0] * arms
        self.allowed = [True] * arms

    def forced(self):
        lacking = [i for i, x in enumerate(self.x) if self.allowed[i] and len(x) < self.first]
        return min(lacking, key=lambda i: (self.pulls[i], i)) if lacking else None

    def candidates(self):
        return [i for i in range(len(self.x)) if self.allowed[i]]

    def mean(self, arm):
        return math.fsum(self.x[arm]) / len(self.x[arm])

    def learn(self, arm, reward):
        self.pulls[arm] += 1
        self.x[arm].append(reward)


class StudentLaw(NamedTuple):
    """Student's t, shifted and scaled. scipy.stats.t has the same functions, but takes a millisecond to make one law."""

    dof: float
    middle: float
    width: float

    def cdf(self, x):
        return stdtr(self.dof, (x - self.middle) / self.width)

    def ppf(self, u):
        return self.middle + self.width * stdtrit(self.dof, u)


class SlowGaussianTS(Slow):
    """The posterior of a normal model with the prior (sigma^2)^(-1-alpha)."""

    def __init__(self, arms, alpha=-0.5):
        super().__init__(arms)
        self.alpha = alpha
        self.first = max(2, 3 - math.floor(2 * alpha))

    def posterior(self, arm):
        """Return the posterior of the arm's mean."""
        x, n = self.x[arm], len(self.x[arm])
        mean = self.mean(arm)
        nu = n + 2 * self.alpha - 1
        square = math.fsum((value - mean) ** 2 for value in x)
        return StudentLaw(nu, mean, math.sqrt(square / (n * nu)))

    def chance(self, arm):
        """Return the probability of the largest draw, by an adaptive rule over the quantiles of the arm's posterior."""
        if (forced := self.forced()) is not None:
            return float(forced == arm)
        mine = self.posterior(arm)
        others = [self.posterior(i) for i in self.candidates() if i != arm]
        points = {0.0, 1.0}
        for law in [mine, *others]:
            middle, width = law.middle, law.width
            points |= {float(mine.cdf(middle + k * width)) for k in (-100, -20, -6, -3, -1, 0, 1, 3, 6, 20, 100)}
        ends = sorted(points)

        def integrand(u):
            draw = mine.ppf(u)
            return math.prod(float(law.cdf(draw)) for law in others)

        return sum(quad(integrand, a, b, epsabs=1e-12, epsrel=1e-9, limit=100)[0] for a, b in pairwise(ends))
