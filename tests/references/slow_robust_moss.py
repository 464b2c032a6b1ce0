"""Robust MOSS by its formulas, from all rewards every time."""

import math
from bisect import bisect
from functools import cache

import mpmath
import numpy as np

from helpers.duels import SlowIndexPolicy


def phi(m, horizon, arms):
    return max(math.log(horizon / (arms * m)), 1.0) / m


@cache
def powers(a):
    """Return 1, a, a^2, ... up to 1e4, with 60 digits."""
    with mpmath.workdps(60):
        out = [mpmath.mpf(1)]
        while out[-1] < 10**4:
            out.append(out[-1] * mpmath.mpf(a))
        return out


def epoch_end(n, a):
    """Return the smallest power of a above n."""
    return float(next(power for power in powers(a)[bisect(powers(a), n) - 1 :] if power > n))


class SlowRobustMOSS(SlowIndexPolicy):
    def __init__(self, arms, horizon, eps, u, a=1.1, eta=2.2):
        super().__init__(arms)
        self.horizon, self.eps, self.a, self.eta = horizon, eps, a, eta
        self.w = u ** (1 / (1 + eps))

    def parts(self, arm):
        x = np.array(self.x[arm])
        n, arms = len(x), len(self.x)
        level = self.w * phi(epoch_end(n, self.a), self.horizon, arms) ** (-1 / (1 + self.eps))
        mean = math.fsum(np.clip(x, -level, level)) / n
        bonus = (1 + self.eta) * self.w * phi(n, self.horizon, arms) ** (self.eps / (1 + self.eps))
        return mean, bonus, level, np.count_nonzero(np.abs(x) > level) / n

    def value(self, arm, t):
        mean, bonus, *_ = self.parts(arm)
        return mean + bonus

    def size(self, arm):
        _, bonus, level, _ = self.parts(arm)
        return level + bonus
