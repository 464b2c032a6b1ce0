"""Quantile-UCB by its definition: sorted lists of costs, every rank, every time."""

import math


def kl(a, b):
    terms = [(a, b), (1.0 - a, 1.0 - b)]
    return sum(x * math.log(x / y) for x, y in terms if x > 0.0)


def least_rank(n, q, level):
    """The least k with k/n >= q or n kl(k/n, q) <= level."""
    return next(k for k in range(n + 1) if k / n >= q or n * kl(k / n, q) <= level)


def largest_probability(share, n, level):
    low, high = share, 1.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if n * kl(share, middle) <= level else (low, middle)
    return low


class SlowQuantileUCB:
    def __init__(self, arms, q):
        self.q, self.costs, self.open, self.pulls = q, [[] for _ in range(arms)], [0] * arms, [0] * arms

    def level(self, arm):
        n = len(self.costs[arm])
        return math.log(1.0 + sum(self.pulls) / len(self.pulls) / n) * (n / (n + self.open[arm]))

    def rank(self, arm):
        return least_rank(len(self.costs[arm]), self.q, self.level(arm))

    def index(self, arm):
        """The lower bound of the quantile of costs; NaN for an arm that waits for its first reward."""
        if not self.costs[arm]:
            return math.nan
        k = self.rank(arm)
        return sorted(self.costs[arm])[k - 1] if k else -math.inf

    def key(self, arm):
        """The smallest key wins."""
        bound = self.index(arm)
        if bound == -math.inf:
            return bound, 0.0, self.pulls[arm], arm
        n = len(self.costs[arm])
        share = sum(cost <= bound for cost in self.costs[arm]) / n
        return bound, -largest_probability(share, n, self.level(arm)), self.pulls[arm], arm

    def ask(self):
        arms = range(len(self.costs))
        most = max(2.0, 4.0 * math.log(1.0 + sum(self.pulls) / len(self.pulls)))
        if untried := [a for a in arms if not self.costs[a] and (not self.open[a] or self.open[a] < most)]:
            return min(untried, key=lambda a: (self.pulls[a], a))
        return min((a for a in arms if self.costs[a]), key=self.key, default=None)
