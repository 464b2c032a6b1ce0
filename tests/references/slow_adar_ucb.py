"""AdaR-UCB as algorithms books would print it: every index of every round from scratch, from all rewards.

Nothing is shared with the library: the root comes from trying every number of clipped values, the variance from two passes.
`precise` is the same once more with 60 digits, the judge where the two differ.
"""

import math
from typing import NamedTuple

import mpmath
import numpy as np

C = (1 + math.sqrt(2)) ** 2
EXACT = mpmath.MPContext()
EXACT.dps = 70


def root(rewards, a):
    """The M > 0 with sum min((x/M)^2, 1) = a, or None."""
    sizes = np.sort(np.abs(rewards[rewards != 0]))
    m = len(sizes)
    if m <= a:
        return None
    unit = sizes[-1]  # so that squares neither overflow nor vanish
    squares = np.concatenate([[0.0], np.cumsum((sizes / unit) ** 2)])
    clipped = np.arange(math.ceil(a))
    kept = m - clipped
    fits = squares[kept] >= (sizes[kept - 1] / unit) ** 2 * (a - clipped)
    first = int(np.argmax(fits))
    assert fits[first], "the root exists"
    return unit * math.sqrt(squares[m - first] / (a - first))


def doubled_root(rewards, a):
    """Appendix C: start at the smallest non-zero size, double until the equation's left side is at most a."""
    sizes = np.abs(rewards[rewards != 0])
    guess = sizes.min()
    while True:
        ratios = np.minimum(sizes, guess) / guess
        if ratios @ ratios <= a:
            return guess
        guess *= 2


class Terms(NamedTuple):
    """The three terms of an index, and its threshold."""

    mean: float
    spread: float
    reach: float
    threshold: float
    share_trimmed: float

    @property
    def index(self):
        return self.mean + self.spread + self.reach

    @property
    def size(self):
        """What rounding is relative to."""
        return abs(self.mean) + self.spread + self.reach


class SlowAdaRUCB:
    def __init__(
        self, arms, c=C, guard=None, bonus="paper", var_factor=2.0, delta_exp=3.0, solver="exact", tie="fewest"
    ):
        self.c, self.guard, self.bonus, self.var_factor = c, c if guard is None else guard, bonus, var_factor
        self.delta_exp, self.solver, self.tie = delta_exp, solver, tie
        self.x = [np.zeros(0) for _ in range(arms)]
        self.y = [np.zeros(0) for _ in range(arms)]

    def terms(self, arm, tau):
        """The index in its parts, or None where it is infinite (N = 1 has no variance)."""
        level = self.delta_exp * math.log(tau)
        x, y = self.x[arm], self.y[arm]
        n = len(x)
        if n < 2 or np.count_nonzero(y) <= self.guard * level:
            return None
        m = doubled_root(y, self.c * level) if self.solver == "doubling" else root(y, self.c * level)
        kept = np.where(np.abs(x) <= m, x, 0.0)
        unit = max(np.abs(kept).max(), m)
        mean = unit * (kept / unit).sum() / n
        off = (kept - mean) / unit
        variance = (off @ off) / (n - 1)
        factor = {"paper": 10 / n, "tight": 14 / (3 * (n - 1))}.get(self.bonus) or self.bonus / n
        spread = unit * math.sqrt(self.var_factor * variance * level / n)
        return Terms(mean, spread, factor * m * level, m, np.count_nonzero(np.abs(x) > m) / n)

    def index(self, arm, tau):
        terms = self.terms(arm, tau)
        return math.inf if terms is None else terms.index

    def choose(self, tau):
        """The arm of round tau, and all indices."""
        values = [self.index(i, tau) for i in range(len(self.x))]
        best = max(values)
        winners = [i for i, v in enumerate(values) if v == best]
        if self.tie == "fewest":
            winners.sort(key=lambda i: (len(self.x[i]), i))
        return winners[0], values

    def learn(self, arm, first, second):
        self.x[arm] = np.append(self.x[arm], first)
        self.y[arm] = np.append(self.y[arm], second)

    def precise(self, arm, tau):
        """`terms` with 70 digits, from the exact values of the doubles."""
        mp = EXACT
        level = mp.mpf(self.delta_exp) * mp.log(tau)
        x, y = [[mp.mpf(float(v)) for v in values] for values in (self.x[arm], self.y[arm])]
        n = len(x)
        if n < 2 or sum(v != 0 for v in y) <= mp.mpf(self.guard) * level:
            return None
        m = precise_root([v for v in y if v], mp.mpf(self.c) * level)
        if self.solver == "doubling":
            guess = min(abs(v) for v in y if v)
            while guess < m:
                guess *= 2
            m = guess
        kept = [v if abs(v) <= m else mp.mpf(0) for v in x]
        mean = mp.fsum(kept) / n
        variance = mp.fsum((v - mean) ** 2 for v in kept) / (n - 1)
        tight = mp.mpf(14) / (3 * (n - 1))
        factor = tight if self.bonus == "tight" else mp.mpf(10 if self.bonus == "paper" else self.bonus) / n
        spread = mp.sqrt(mp.mpf(self.var_factor) * variance * level / n)
        return Terms(mean, spread, factor * m * level, m, sum(abs(v) > m for v in x) / n)


def precise_root(nonzero, a):
    """The root by bisection of the equation itself in M^2, which assumes nothing about pieces, then closed on its piece."""
    mp = EXACT
    squares = sorted(v * v for v in nonzero)
    low, high = squares[0], mp.fsum(squares) / a  # F(low) = m > a, and F(M) <= sum / M^2 gives F(high) <= a
    for _ in range(2000):
        middle = mp.sqrt(low * high)
        inside = [v for v in squares if v <= middle]
        if mp.fsum(inside) / middle + (len(squares) - len(inside)) > a:
            low = middle
        else:
            high = middle
        if not any(low < v <= high for v in squares):
            break
    kept = [v for v in squares if v <= low]
    return mp.sqrt(mp.fsum(kept) / (a - (len(squares) - len(kept))))
