"""AdaR-UCB as algorithms books would print it: every index from scratch, from the lists of all rewards.

Nothing is shared with the library: the root comes from trying every number of clipped values, the variance from two passes.
"""

import math

import numpy as np

C = (1 + math.sqrt(2)) ** 2


def root(rewards, a):
    """The M > 0 with sum min((x/M)^2, 1) = a, or None."""
    sizes = np.sort(np.abs([x for x in rewards if x != 0]))
    m = len(sizes)
    if m <= a:
        return None
    unit = sizes[-1]  # so that squares neither overflow nor vanish
    squares = np.concatenate([[0.0], np.cumsum((sizes / unit) ** 2)])
    for clipped in range(math.ceil(a)):
        kept = m - clipped
        if squares[kept] >= (sizes[kept - 1] / unit) ** 2 * (a - clipped):
            return unit * math.sqrt(squares[kept] / (a - clipped))
    raise AssertionError("unreachable: the root exists")


def doubled_root(rewards, a):
    """Appendix C: start at the smallest non-zero size, double until the equation's left side is at most a."""
    sizes = np.abs([x for x in rewards if x != 0])
    guess = sizes.min()
    while np.minimum((sizes / guess) ** 2, 1).sum() > a:
        guess *= 2
    return guess


class SlowAdaRUCB:
    def __init__(self, arms, c=C, guard=None, bonus="paper", var_factor=2.0, delta_exp=3.0, solver="exact", tie="fewest"):
        self.c, self.guard, self.bonus, self.var_factor = c, c if guard is None else guard, bonus, var_factor
        self.delta_exp, self.solver, self.tie = delta_exp, solver, tie
        self.x = [[] for _ in range(arms)]
        self.y = [[] for _ in range(arms)]

    def index(self, arm, tau):
        level = self.delta_exp * math.log(tau)
        x, y = self.x[arm], self.y[arm]
        n = len(x)
        if n == 0 or sum(v != 0 for v in y) <= self.guard * level:
            return math.inf
        m = doubled_root(y, self.c * level) if self.solver == "doubling" else root(y, self.c * level)
        kept = np.array([v if abs(v) <= m else 0.0 for v in x])
        unit = max(np.abs(kept).max(), m)
        mean = unit * math.fsum(kept / unit) / n
        variance = math.fsum(((kept - mean) / unit) ** 2) / (n - 1)
        factor = {"paper": 10 / n, "tight": 14 / (3 * (n - 1))}.get(self.bonus) or self.bonus / n
        return mean + unit * math.sqrt(self.var_factor * variance * level / n) + factor * m * level

    def choose(self, tau):
        """The arm of round tau, and all indices."""
        values = [self.index(i, tau) for i in range(len(self.x))]
        best = max(values)
        winners = [i for i, v in enumerate(values) if v == best]
        if self.tie == "fewest":
            winners.sort(key=lambda i: (len(self.x[i]), i))
        return winners[0], values

    def learn(self, arm, first, second):
        self.x[arm].append(first)
        self.y[arm].append(second)
