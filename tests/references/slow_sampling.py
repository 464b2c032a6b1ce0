"""Gaussian Thompson sampling, IMED and Maillard sampling from lists of all rewards, as their papers print them.

Nothing is shared with the library.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import mpmath
import numpy as np
from scipy import stats
from scipy.integrate import quad
from scipy.special import stdtr, stdtrit

EXACT = mpmath.MPContext()
EXACT.dps = 40


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


class SlowIMED(Slow):
    """n KL + log n. ``upper`` None: normal rewards of this scale."""

    def __init__(self, arms, scale=1.0, upper=None):
        super().__init__(arms)
        self.scale, self.upper = scale, upper

    def indices(self):
        best = max(self.mean(i) for i in self.candidates())
        return {i: len(self.x[i]) * self.divergence(i, best) + math.log(len(self.x[i])) for i in self.candidates()}

    def divergence(self, arm, best):
        if self.upper is None:
            return (best - self.mean(arm)) ** 2 / (2 * self.scale**2)
        bound = max(self.upper, *(max(x) for x in self.x if x))
        return slow_klinf(self.x[arm], best, bound) if self.mean(arm) < best else 0.0


def slow_klinf(x, m, upper):
    """Return max over l in [0, 1/(upper - m)] of mean log(1 - l (x - m)), by bisection of the derivative, which falls with l."""
    x = np.asarray(x, dtype=float)
    if m >= upper:
        return math.inf

    def slope(level):
        with np.errstate(all="ignore"):
            return np.sum(-(x - m) / (1.0 - level * (x - m)))

    low, high = 0.0, 1.0 / (upper - m)
    if x.max() < upper and slope(high) >= 0.0:
        low = high
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
    return float(np.mean(np.log1p(-low * (x - m))))


def precise_klinf(x, m, upper):
    """Return the same with 40 digits, by ternary search of the concave mean."""
    values = [EXACT.mpf(float(v)) for v in x]
    m, upper = EXACT.mpf(m), EXACT.mpf(upper)
    low, high = EXACT.mpf(0), 1 / (upper - m)

    def mean(level):
        factors = [1 - level * (v - m) for v in values]
        return sum(map(EXACT.log, factors)) / len(values) if min(factors) > 0 else -EXACT.inf

    for _ in range(250):
        third = (high - low) / 3
        low, high = (low + third, high) if mean(low + third) < mean(high - third) else (low, high - third)
    return max(mean(low), mean(high))


class SlowMaillard(Slow):
    """exp(-n KL), normalised. ``ends`` None: sub-Gaussian rewards of this scale."""

    def __init__(self, arms, scale=1.0, ends=None):
        super().__init__(arms)
        self.scale, self.ends = scale, ends

    def chances(self):
        """Return the probabilities of all arms."""
        if (forced := self.forced()) is not None:
            return np.eye(len(self.x))[forced]
        best = max(self.mean(i) for i in self.candidates())
        weights = np.zeros(len(self.x))
        for i in self.candidates():
            weights[i] = math.exp(-len(self.x[i]) * self.divergence(i, best))
        return weights / weights.sum()

    def divergence(self, arm, best):
        if self.ends is None:
            return (best - self.mean(arm)) ** 2 / (2 * self.scale**2)
        seen = [value for x in self.x for value in x]
        low, high = min(self.ends[0], *seen), max(self.ends[1], *seen)
        p, q = (self.mean(arm) - low) / (high - low), (best - low) / (high - low)
        return stats.entropy([p, 1.0 - p], [q, 1.0 - q]) if p < q else 0.0
