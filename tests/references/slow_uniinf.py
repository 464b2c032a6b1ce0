"""uniINF as specified, on losses; the step by a bracketing root finder, and with 60 digits."""

import math

import mpmath
import numpy as np
from scipy.optimize import brentq

EXACT = mpmath.MPContext()
EXACT.dps = 60


def slow_weights(losses, S):
    """x_i = S / (L_i + lam) with the lam that makes them sum to 1; with the losses shifted to minimum 0 it is in [S, K S]."""
    shifted = np.asarray(losses) - np.min(losses)
    top = len(shifted) * S
    lam = brentq(
        lambda x: np.sum(S / (shifted + x)) - 1, S * (1 - 1e-12), top * (1 + 1e-12), xtol=1e-15 * S, rtol=1e-15
    )
    x = S / (shifted + lam)
    return x / x.sum()


def precise_weights(losses, S):
    """The same for doubles as given, by Newton's method from the left, where the sum is convex."""
    m = EXACT.mpf
    low = m(float(min(losses)))
    shifted = [m(float(x)) - low for x in losses]
    S = lam = m(S)
    for _ in range(1000):
        x = [S / (z + lam) for z in shifted]
        step = (sum(x) - 1) * S / sum(each**2 for each in x)
        lam += step
        if abs(step) < m(10) ** -45 * lam:
            return [S / (z + lam) for z in shifted]
    raise AssertionError("no root")


class SlowUniINF:
    def __init__(self, arms, horizon):
        self.losses = [0.0] * arms
        self.S = 4.0
        self.KlogT = arms * math.log(horizon)
        self.skipped = 0

    def weights(self):
        return slow_weights(self.losses, self.S)

    def choose(self, uniform):
        """Return the first arm at which the sum of the weights reaches the uniform number."""
        return min(int(np.searchsorted(np.cumsum(self.weights()), uniform)), len(self.losses) - 1)

    def learn(self, arm, reward, x):
        loss = -reward
        threshold = self.S / (4 * (1 - x)) if x < 1 else math.inf
        if abs(loss) < threshold:
            self.losses[arm] += loss / x
        else:
            self.skipped += 1
        clipped = min(max(loss, -threshold), threshold)
        self.S = math.sqrt(self.S**2 + clipped**2 * (1 - x) ** 2 / self.KlogT)
