"""HTINF, OptTINF, AdaTINF and Ada2TINF as their paper prints them, on losses; the step by a bracketing root finder.

Nothing is shared with the library. `precise_weights` is the step once more with 60 digits.
"""

import math

import mpmath
import numpy as np
from scipy.optimize import brentq

EXACT = mpmath.MPContext()
EXACT.dps = 60


def slow_weights(losses, alpha, eta):
    """x_i = (eta L_i + lam)^(-alpha/(alpha-1)) with the lam that makes them sum to 1."""
    q = alpha / (alpha - 1)
    shifted = eta * (np.asarray(losses) - np.min(losses))
    top = len(shifted) ** (1 / q)
    lam = brentq(lambda x: np.sum((shifted + x) ** -q) - 1, 1.0 - 1e-12, top * (1 + 1e-12), xtol=1e-15, rtol=1e-15)
    x = (shifted + lam) ** -q
    return x / x.sum()


def precise_weights(losses, alpha, eta):
    """The same for doubles as given, by Newton's method from the left."""
    m = EXACT.mpf
    q = m(alpha) / (m(alpha) - 1)
    low = min(losses)
    shifted = [m(eta) * (m(float(x)) - m(float(low))) for x in losses]
    lam = m(1)
    for _ in range(1000):
        powers = [(z + lam) ** -q for z in shifted]
        excess = sum(powers) - 1
        step = excess / (q * sum(x / (z + lam) for x, z in zip(powers, shifted, strict=True)))
        lam += step
        if abs(step) < m(10) ** -45 * min(lam - 1 + 1 / q, 1):
            return [(z + lam) ** -q for z in shifted]
    raise AssertionError("no root")


def slow_theta(alpha):
    first = 1 - 2 ** (-(alpha - 1) / (2 * alpha - 1))
    return min(first, (2 - 2 / alpha) ** (1 / (2 - alpha)) if alpha < 2 else math.exp(-0.5))


class Slow:
    """What the four share: weights, draws, and the number of pulls made."""

    def __init__(self, arms):
        self.losses = [0.0] * arms
        self.made = 0
        self.skipped = 0
        self.known = None

    def weights(self):
        """Return the weights for this time and these losses, computed once."""
        key = (self.made, getattr(self, "J", 0), tuple(self.losses))
        if self.known is None or self.known[0] != key:
            self.known = key, slow_weights(self.losses, self.alpha, 1 / self.rate(self.made + 1))
        return self.known[1]

    def choose(self, uniform):
        """Return the first arm at which the sum of the weights reaches the uniform number."""
        return min(int(np.searchsorted(np.cumsum(self.weights()), uniform)), len(self.losses) - 1)

    def take(self, arm):
        x = self.weights()[arm]
        self.made += 1
        return x


class SlowHTINF(Slow):
    def __init__(self, arms, eps, u):
        super().__init__(arms)
        self.alpha, self.sigma = 1 + eps, u ** (1 / (1 + eps))

    def rate(self, t):
        """1/eta."""
        return self.sigma * t ** (1 / self.alpha)

    def learn(self, arm, reward, x):
        r = slow_theta(self.alpha) * self.rate(self.made) * x ** (1 / self.alpha)
        loss = -reward
        if abs(loss) <= r:
            self.losses[arm] += loss / x
        else:
            self.skipped += 1


class SlowAdaTINF(Slow):
    """``forget_root`` reproduces the defect of a public implementation: K (T + 1) in place of its square root."""

    def __init__(self, arms, horizon, forget_root=False):
        super().__init__(arms)
        self.alpha, self.J, self.S, self.R = 2, 0, 0.0, math.sqrt(arms * (horizon + 1))
        self.R_in_log = self.R**2 if forget_root else self.R

    def rate(self, t):
        """1/eta."""
        return 2**self.J * math.sqrt(t)

    def learn(self, arm, reward, x):
        lam = 2**self.J
        eta = 1 / self.rate(self.made)
        r = lam * (1 - 2 ** (-1 / 3)) * math.sqrt(self.made) * math.sqrt(x)
        loss = -reward
        if abs(loss) > r:
            cost = loss
            self.skipped += 1
        else:
            self.losses[arm] += loss / x
            cost = 2 * eta * x ** (-1 / 2) * loss**2
        self.S += cost
        if 2**self.J * self.R < self.S:
            self.J = max(self.J + 1, math.ceil(math.log2(cost / self.R_in_log)) + 1)
            self.S = cost


class SlowAda2TINF:
    """AdaTINF with horizons 1, 3, 7, ...; a new one begins with the first pull beyond the old one."""

    def __init__(self, arms):
        self.arms, self.T0, self.skipped_before = arms, 2, 0
        self.run = SlowAdaTINF(arms, 1)

    def coming(self):
        return self.run if self.run.made < self.T0 - 1 else SlowAdaTINF(self.arms, 2 * self.T0 - 1)

    def weights(self):
        return self.coming().weights()

    def choose(self, uniform):
        return self.coming().choose(uniform)

    def take(self, arm):
        new = self.coming()
        if new is not self.run:
            self.skipped_before += self.run.skipped
            self.run, self.T0 = new, 2 * self.T0
        return self.run.take(arm)

    def learn(self, arm, reward, x):
        self.run.learn(arm, reward, x)

    losses = property(lambda self: self.run.losses)
    J = property(lambda self: self.run.J)
    S = property(lambda self: self.run.S)
    skipped = property(lambda self: self.skipped_before + self.run.skipped)
