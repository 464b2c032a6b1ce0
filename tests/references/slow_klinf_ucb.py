"""KLinf-UCB and its index, written for clarity and by other means than the package's.

The index by SciPy's scalar searches, one inside the other, in the variables of the paper.
"""

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar


def mean_log(r):
    return -math.inf if r.min() <= 0.0 else float(np.mean(np.log(r)))


def least_divergence(x, eps, u):
    """KL(sample, class): the least budget with which the index is finite."""
    gap = np.abs(x) ** (1 + eps) / u - 1

    def fall(w):
        return -float(np.mean(np.log1p(w * gap)))

    if gap.mean() <= 0:
        return 0.0
    grid = np.concatenate([np.geomspace(1e-12, 0.5, 200), 1 - np.geomspace(0.5, 1e-12, 200)])
    k = int(np.argmin([fall(w) for w in grid]))
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    return -minimize_scalar(fall, bounds=(low, high), method="bounded", options={"xatol": 1e-13 * high}).fun


def slow_index(x, eps, u, budget):
    """min over l2 > 0, l1 >= h(l2) of l1 + l2 u - exp(-budget + mean log(l1 - x + l2 |x|^(1+eps))): one search inside the other."""
    x = np.asarray(x, dtype=float)
    unit = u ** (1 / (1 + eps))
    x = x / unit
    power = np.abs(x) ** (1 + eps)
    if least_divergence(x, eps, 1.0) > budget:
        return math.inf

    def at(l1, l2):
        return l1 + l2 - math.exp(-budget + mean_log(l1 - x + l2 * power))

    def slope(l1, l2):
        r = l1 - x + l2 * power
        if r.min() <= 0.0:
            return -math.inf
        return 1 - math.exp(-budget + mean_log(r)) * float(np.mean(1 / r))

    def inner(log_l2):
        l2 = math.exp(log_l2)
        least = eps * l2 ** (-1 / eps) / (1 + eps) ** (1 + 1 / eps)
        if slope(least, l2) >= 0:
            return at(least, l2)
        low, high = -60.0, 60.0
        if slope(least + math.exp(low), l2) >= 0:
            return at(least, l2)
        s = brentq(lambda v: max(slope(least + math.exp(v), l2), -1e3), low, high, xtol=1e-13, rtol=1e-14)
        return at(least + math.exp(s), l2)

    # The place y = (l2 (1 + eps))^(-1/eps) of the extra atom is below 1e8 for any budget used here.
    low, high = -eps * math.log(1e8) - math.log(1 + eps), math.log(1e7)
    grid = np.linspace(low, high, 60)
    k = int(np.argmin([inner(v) for v in grid]))
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    return unit * float(minimize_scalar(inner, bounds=(low, high), method="bounded", options={"xatol": 1e-10}).fun)


def divergence_for(x, eps, u, mean):
    """KLinf(sample, mean) by the paper's dual: max of mean log(1 - (x - m) l1 - (u - |x|^(1+eps)) l2), for |m|^(1+eps) < u.

    The argument must not be negative anywhere; for given l1 that is l2 in an interval, by convexity of the constraint.
    """
    x = np.asarray(x, dtype=float)
    power = np.abs(x) ** (1 + eps)

    def constraint(l1, l2):
        return eps * l1 ** (1 + 1 / eps) / (l2 ** (1 / eps) * (1 + eps) ** (1 + 1 / eps)) + u * l2 - mean * l1 - 1

    def best_l2(l1):
        # Where the constraint is smallest: its derivative in l2 is zero.
        middle = (l1 ** (1 + 1 / eps) / ((1 + eps) ** (1 + 1 / eps) * u)) ** (eps / (1 + eps))
        if constraint(l1, middle) > 0:
            return math.inf
        low = middle
        while constraint(l1, low) <= 0 and low > 1e-300:
            low /= 2
        high = middle
        while constraint(l1, high) <= 0:
            high *= 2
        low = brentq(lambda v: constraint(l1, v), low, middle) if low < middle else middle
        high = brentq(lambda v: constraint(l1, v), middle, high) if high > middle else middle
        found = minimize_scalar(
            lambda l2: -mean_log(1 - (x - mean) * l1 - (u - power) * l2),
            bounds=(low, high),
            method="bounded",
            options={"xatol": 1e-12},
        )
        return min(found.fun, -mean_log(1 - (x - mean) * l1 - (u - power) * low))

    top = 1 / (u ** (1 / (1 + eps)) - mean)
    found = minimize_scalar(best_l2, bounds=(1e-9 * top, top), method="bounded", options={"xatol": 1e-10})
    return -found.fun


class SlowKLinfUCB:
    """The policy, all indices at every decision, each from nothing. ``index_of`` may be a quicker one than `slow_index`."""

    def __init__(self, arms, eps, u, batch=0.1, threshold="proved", index_of=slow_index):
        self.index_of = index_of
        self.samples = [[] for _ in range(arms)]
        self.eps, self.u, self.batch, self.threshold = eps, u, batch, threshold
        self.t = 1
        self.arm, self.left = -1, 0

    def budget(self, arm):
        n = len(self.samples[arm])
        g = math.log(self.t)
        if self.threshold == "proved":
            g += 2 * math.log(math.log(self.t)) + 2 * math.log(1 + n) + 1
        return g / n

    def index(self, arm):
        x = self.samples[arm]
        return self.index_of(x, self.eps, self.u, self.budget(arm)) if x else math.inf

    def choose(self):
        """The arms that may be chosen: one, unless indices agree to 1e-9 of the unit."""
        if self.left:
            return [self.arm]
        untried = [arm for arm, x in enumerate(self.samples) if not x]
        if untried:
            return untried[:1]
        indices = [self.index(arm) for arm in range(len(self.samples))]
        best = max(indices)
        if best == math.inf:
            tied = [arm for arm, value in enumerate(indices) if value == best]
            return [min(tied, key=lambda arm: (len(self.samples[arm]), arm))]
        slack = 1e-9 * self.u ** (1 / (1 + self.eps))
        return [arm for arm, value in enumerate(indices) if value >= best - slack]

    def learn(self, arm, reward):
        """A pull that `choose` allowed."""
        if not self.left:
            self.arm, self.left = arm, max(1, math.ceil(round(self.batch * len(self.samples[arm]), 9)))
        self.left -= 1
        self.samples[arm].append(reward)
        self.t += 1
