"""The drift detector as its description has it: lists, exact ranks, SciPy's normal quantile, passes over the whole past."""

import math
from bisect import bisect_left
from fractions import Fraction

from scipy.special import ndtri

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
# (kind, parameters) of each bet; the order is that of the library's columns
BETS = [("level", d) for d in (-0.35, -0.8, -1.6, 0.35, 0.8, 1.6)]
BETS += [(tail, a, g) for tail in ("low", "high") for a, g in ((0.005, 6.0), (0.02, 3.5), (0.1, 2.0))]


def mixed(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def uniform(salt, arm, number):
    """The number-th uniform of an arm, as an exact fraction."""
    word = mixed((mixed((salt + GOLDEN * (arm + 1)) & MASK) + GOLDEN * number) & MASK)
    return Fraction(2 * (word >> 12) + 1, 2**53)


def bet(k, u, z):
    kind, *par = BETS[k]
    if kind == "level":
        return math.exp(par[0] * z - par[0] ** 2 / 2)
    a, g = par
    inside = u <= a if kind == "low" else u > 1 - a
    return g if inside else (1 - g * a) / (1 - a)


class SlowArm:
    """One arm: all its rewards, and the ranks of its present segment."""

    def __init__(self):
        self.rewards = []
        self.all_z = []
        self.restart()

    def restart(self):
        self.reference = []  # pairs (x, v) in order
        self.gaps = []  # of later pairs
        self.capital = [0.0] * len(BETS)
        self.logs = [[] for _ in BETS]
        self.up = 0.0

    def rank(self, x, v, theta):
        gap = bisect_left(self.reference, (x, v))
        below = gap + sum(other < gap for other in self.gaps)
        own = 1 + self.gaps.count(gap)
        total = 1 + len(self.reference) + len(self.gaps)
        if len(self.reference) < 256:
            self.reference.insert(gap, (x, v))
        else:
            self.gaps.append(gap)
        return (below + theta * own) / total

    def tau(self):
        """None before there are 192 rewards; else from all blocks until the last reward whose number divides by 64."""
        z = self.all_z[: len(self.all_z) // 64 * 64]
        if len(z) < 192:
            return None
        tau = 1.0
        for size in (16, 64, 256):
            blocks = [sum(z[i : i + size]) ** 2 / size for i in range(0, len(z) - size + 1, size)][-32:]
            if len(blocks) >= 12:
                tau = max(tau, 0.6 * sorted(blocks)[len(blocks) // 2] / 0.455)
        return tau

    def excursion(self, k):
        """The number of rewards since the CUSUM of log f was last not positive."""
        total, length = 0.0, 0
        for log in self.logs[k]:
            total, length = (total, length + 1) if total > 0.0 else (0.0, 1)
            total += log
        return length


class SlowDetector:
    def __init__(self, arms, salt):
        self.salt = salt
        self.arms = [SlowArm() for _ in range(arms)]

    def tau(self, arm):
        own = self.arms[arm].tau()
        if own is not None:
            return own
        most = max(self.arms, key=lambda each: len(each.rewards) // 64)
        return most.tau() or 2.0

    def watch(self, arm, x):
        """Take a reward; return whether an alarm is raised."""
        tau, state = self.tau(arm), self.arms[arm]
        number = len(state.rewards)
        u = state.rank(x, *(uniform(self.salt, arm, 2 * number + j) for j in (1, 2)))
        state.u, state.z = u, float(ndtri(float(u)))
        n = len(state.reference) + len(state.gaps)
        stake = 1.0 / (2.11 * (n + 1) * math.log(n + 1) ** 2)
        for k in range(len(BETS)):
            f = bet(k, u, state.z)
            state.capital[k] = (stake + state.capital[k]) * f ** (1.0 / tau)
            state.logs[k].append(math.log(f))
        state.up = max(0.0, state.up + state.z - 0.5)
        state.rewards.append(x)
        state.all_z.append(state.z)
        return sum(state.capital) / len(BETS) >= 100.0
