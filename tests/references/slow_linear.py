"""AdaClip and Huber regression in plain NumPy, from the formulas: all rewards are kept, and every matrix is inverted anew."""

import math

import numpy as np


def threshold(sizes, a):
    """Return M with sum min(r^2 / M^2, 1) = a, by bisection."""
    if not np.any(sizes > 0.0):
        return math.inf
    low, high = 1e-300, 2.0 * math.sqrt((sizes**2).sum() / a)
    for _ in range(150):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if np.minimum((sizes / middle) ** 2, 1.0).sum() > a else (low, middle)
    return high


class SlowClipped:
    """The model of one arm. No reward leaves the buffer."""

    def __init__(self, d):
        self.lam = np.ones(d)
        self.lam[0] = 1e-3
        self.X, self.Y = np.zeros((0, d)), np.zeros(0)
        self.theta, self.variance, self.n = np.zeros(d), 0.0, 0

    @property
    def P(self):
        return np.linalg.inv(np.diag(self.lam) + self.X.T @ self.X)

    def update(self, x, y):
        if not self.n:
            self.shift = y
        self.X, self.Y = np.vstack([self.X, x]), np.append(self.Y, y - self.shift)
        self.n += 1
        a, log = 5.0 * math.log(1 + self.n), math.log(1 + self.n)
        guarded = self.n > 1.5 * a
        for turn in range(4):
            r = self.Y - self.X @ self.theta
            self.M = threshold(np.abs(r), a) if guarded else math.inf
            theta = self.P @ self.X.T @ (self.Y - r + np.clip(r, -self.M, self.M))
            moved = np.abs(theta - self.theta).max()
            self.theta = theta
            if (turn and not (np.abs(r) > self.M).any()) or moved**2 * self.n < 1e-4 * max(self.variance, 1e-300):
                break
        r = self.Y - self.X @ self.theta
        strong = np.clip(r, -self.M, self.M)
        self.variance = (strong @ strong + self.lam @ self.theta**2) / max(self.n - 1, 1)
        self.M2 = max(threshold(np.abs(r), log), self.M) if guarded else math.inf
        weak = np.clip(r, -self.M2, self.M2)
        self.add = (weak - strong).sum() / self.n
        self.weak_variance = max(weak @ weak - self.n * self.add**2, 0.0) / max(self.n - 1, 1)

    def mean(self, x):
        return self.shift + self.add + x @ self.theta


def spreads(models, x, levels=(0.15, 0.5)):
    """Return the means, widths and degrees of freedom at x."""
    weight = np.array([m.n - 1.0 for m in models])
    pools = [weight @ [getattr(m, name) for m in models] / weight.sum() for name in ("variance", "weak_variance")]
    out = []
    for m in models:
        f = m.n + 3.0
        one, two = (
            ((m.n - 1) * own + 4 * pool) / f for own, pool in zip((m.variance, m.weak_variance), pools, strict=True)
        )
        few, q = min(1.0, 8.0 / m.n), x @ m.P @ x
        own = min(q, 1.0 / m.n)
        slopes, level = (share + (1 - share) * few for share in levels)
        out.append((m.mean(x), math.sqrt(slopes * one * (q - own) + level * two * own), f))
    return np.array(out)


def huber_constants(eps, T, d, delta, squeeze):
    power, log = (1 - eps) / (2 * (1 + eps)), math.log(2 * T * T / delta)
    kappa = d * math.log(1 + T * T / (squeeze * d))
    tau = math.sqrt(2 * kappa) * math.log(3 * T) ** power / log ** (1 / (1 + eps))
    return power, log, kappa, tau


class SlowHvt:
    def __init__(self, d, eps, nu, S, T, delta, scale):
        self.c = huber_constants(eps, T, d, delta, 4.0)
        self.nu, self.S, self.T, self.scale, self.d, self.n = nu, S, T, scale, d, 0
        self.V, self.theta = d * np.eye(d), np.zeros(d)

    def beta(self, t):
        power, log, _, tau = self.c
        return self.scale * (107 * log * tau * t**power + math.sqrt(self.d * (2 + 4 * self.S**2)))

    def index(self, x):
        return x @ self.theta + self.beta(self.n + 1) * math.sqrt(x @ np.linalg.inv(self.V) @ x)

    def update(self, x, y):
        power, _, _, tau = self.c
        self.n += 1
        t = self.n**power
        q = math.sqrt(x @ np.linalg.inv(self.V) @ x)
        sigma = max(self.nu, self.T**-0.5, math.sqrt(2 * self.beta(self.n) / (tau * 2 * t)) * q)
        w = q / sigma / 2
        limit = tau * math.sqrt(1 + w * w) / w * t
        gradient = np.clip((y - x @ self.theta) / sigma, -limit, limit) / sigma
        self.V += np.outer(x, x) / (4 * sigma**2)
        self.theta = self.theta + gradient * np.linalg.solve(self.V, x)
        self.theta *= min(1.0, self.S / np.linalg.norm(self.theta))


class SlowHeavy:
    def __init__(self, d, eps, nu, S, T, delta, scale):
        self.c, self.eps = huber_constants(eps, T, d, delta, 1.0), eps
        self.nu, self.S, self.T, self.scale, self.d, self.fitted = nu, S, T, scale, d, 0
        self.rows, self.H, self.theta = [], d * np.eye(d), np.zeros(d)

    def index(self, x):
        power, log, kappa, _ = self.c
        growth = (len(self.rows) + 1) ** power * math.sqrt(2 * kappa) * math.log(3 * self.T) ** power
        width = 3 * math.sqrt(self.d) * self.S + 24 * growth * log ** (self.eps / (1 + self.eps))
        return x @ self.theta + self.scale * width * math.sqrt(x @ np.linalg.inv(self.H) @ x)

    def update(self, x, y):
        power, log, _, tau = self.c
        q = math.sqrt(x @ np.linalg.inv(self.H) @ x)
        sigma = max(self.nu, self.T**-0.5, q * (math.sqrt(23 * log) if self.scale == 1 else 1))
        w = q / sigma
        self.rows.append((x, y, sigma, tau * math.sqrt(1 + w * w) / w * (len(self.rows) + 1) ** power))
        self.H += np.outer(x, x) / sigma**2
        if len(self.rows) >= 1.05 * self.fitted or len(self.rows) < 20:
            self.fitted = len(self.rows)
            X, Y, sigmas, limits = (np.array(column) for column in zip(*self.rows, strict=True))
            for _ in range(6):
                fit = X @ self.theta
                clipped = fit + sigmas * np.clip((Y - fit) / sigmas, -limits, limits)
                self.theta = np.linalg.solve(self.H, X.T @ (clipped / sigmas**2))
