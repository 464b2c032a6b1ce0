"""Catoni-Lepskii UCB by the one-shot estimators."""

import math

import numpy as np

from robandit.errors import InvalidInput
from robandit.estimators import lepskii_catoni
from robandit.estimators.infinite_variance import tuning


class Slow:
    """Rewards received, pulls made, and per arm (mean, scale, rewards when they were computed)."""

    def __init__(self, arms, eps, range_factor=100.0, ratio=2.0, refresh=0.1):
        self.eps, self.range_factor, self.ratio, self.refresh = eps, range_factor, ratio, refresh
        self.rewards = [[] for _ in range(arms)]
        self.pulls = [0] * arms
        self.known = [(math.nan, math.nan, 0)] * arms

    def width(self, n):
        points = 1.0 + 2.0 * math.log(self.range_factor) / math.log(self.ratio)
        level = math.log(2.0 * points) + 2.0 * math.log(sum(self.pulls) + 1.0)
        try:
            return tuning(n, level, self.eps).width
        except InvalidInput:
            return math.inf  # too few rewards

    def tell(self, arm, reward):
        self.pulls[arm] += 1
        own = self.rewards[arm]
        own.append(reward)
        _, scale, counted = self.known[arm]
        due = len(own) >= (1.0 + self.refresh) * counted or (scale == 0.0 and reward != 0.0)
        if due and self.width(len(own)) < math.inf:
            self.known[arm] = (*self.estimate(np.array(own)), len(own))

    def estimate(self, x):
        if not x.any():
            return 0.0, 0.0
        delta = (sum(self.pulls) + 1.0) ** -2.0
        estimate = lepskii_catoni(x, eps=self.eps, delta=delta, range_factor=self.range_factor, ratio=self.ratio)
        return estimate.value, estimate.threshold

    def indices(self):
        return [
            mean + scale * self.width(len(own)) if counted and self.width(len(own)) < math.inf else math.inf
            for own, (mean, scale, counted) in zip(self.rewards, self.known, strict=True)
        ]

    def best(self):
        values = self.indices()
        return min(range(len(values)), key=lambda i: (-values[i], self.pulls[i], i)), values
