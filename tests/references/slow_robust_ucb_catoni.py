"""Robust UCB with Catoni's estimator as printed in the paper: every root is computed in every round."""

import math

import numpy as np
from scipy.optimize import brentq


def psi(z):
    size = np.abs(z)
    with np.errstate(over="ignore"):
        square = 0.5 * size * size
    far = np.log(np.where(size > 1e100, size, 1.0)) * 2.0 - math.log(2.0)
    return np.sign(z) * np.where(size > 1e100, far, np.log1p(np.where(size > 1e100, 0.0, size + square)))


def tuned_alpha(n, v, t):
    ell = 4.0 * math.log(t)
    return math.sqrt(ell / (n * (v + v * ell / (n - ell))))


def root(rewards, alpha):
    low, high = rewards.min(), rewards.max()
    if low == high:
        return low
    return brentq(lambda theta: psi(alpha * (rewards - theta)).sum(), low, high, xtol=1e-300, rtol=1e-15, maxiter=5000)


def width(n, v, t):
    return math.sqrt(8.0 * v * math.log(t) / n)


def index(rewards, v, t):
    n = len(rewards)
    if n == 0 or n < 8.0 * math.log(t):
        return math.inf
    rewards = np.array(rewards)
    return root(rewards, tuned_alpha(n, v, t)) + width(n, v, t)


class Slow:
    """Rewards received, pulls made; all arms are evaluated each time."""

    def __init__(self, arms, v):
        self.rewards = [[] for _ in range(arms)]
        self.pulls = [0] * arms
        self.v = v

    def indices(self):
        return [index(own, self.v, sum(self.pulls) + 1) for own in self.rewards]

    def best(self):
        """Return the best arm, and all arms that could be, for an index accurate to 1e-10 of the width."""
        values = self.indices()
        top = max(values)
        order = min(range(len(values)), key=lambda i: (-values[i], self.pulls[i], i))
        if top == math.inf:
            return order, {order}
        near = {order}
        for i, value in enumerate(values):
            slack = 2e-10 * width(len(self.rewards[i]), self.v, sum(self.pulls) + 1) + 1e-13 * abs(top)
            if value >= top - slack:
                near.add(i)
        return order, near
