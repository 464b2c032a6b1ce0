"""APE^2, MR-UCB and MR-APE by their formulas, recomputed every time."""

import math

import numpy as np

from robandit.kernel.random import uniform


def constant(p):
    """Return b_p by the authors' formula; the library uses another."""
    if p == 2.0:
        return 0.5
    r = (2 - p) / (p - 1)
    return (2 * r ** (1 - 2 / p) + r ** (2 - 2 / p)) ** (-p / 2)


def psi(x, p):
    """Return the influence function; for huge x without the power, which overflows."""
    x = np.asarray(x, dtype=float)
    z = np.abs(x)
    near = np.minimum(z, 1e100)
    terms = np.log1p(near + constant(p) * near**p)
    huge = z > 1e100
    terms[huge] = np.log(z[huge]) + np.log1p(constant(p) * z[huge] ** (p - 1))
    return np.copysign(terms, x)


def robust_mean(x, p, c):
    """Return the p-robust mean, and the mean size of its terms, the unit of its error."""
    n = len(x)
    terms = psi(np.asarray(x, dtype=float) / c / n ** (1 / p), p)
    scale = c * n ** (1 / p - 1)
    return scale * math.fsum(terms), scale * math.fsum(np.abs(terms))


class Slow:
    """What the three share; ``pulls`` break ties."""

    def __init__(self, arms, eps, c, stream=None):
        self.p, self.c = 1 + eps, c
        self.data = [[] for _ in range(arms)]
        self.rng = None if stream is None else stream.copy()

    def choose(self):
        """The largest index, after each arm's first reward."""
        for arm, data in enumerate(self.data):
            if not data:
                return arm
        values = [self.index(arm) for arm in range(len(self.data))]
        return min(range(len(values)), key=lambda i: (-values[i], len(self.data[i]), i))

    def learn(self, arm, reward):
        self.data[arm].append(reward)

    def mean(self, arm, c=None):
        return robust_mean(self.data[arm], self.p, c or self.c)[0]

    def width(self, arm):
        return self.c / len(self.data[arm]) ** (1 - 1 / self.p)

    def draw(self):
        with np.errstate(over="ignore"):
            return float(uniform(self.rng))


class SlowAPE2(Slow):
    def __init__(self, arms, eps, c, perturbation, stream):
        super().__init__(arms, eps, c, stream)
        self.perturbation = perturbation

    def noise(self, u):
        """Apply the inverse distribution functions; 1 - u is uniform if u is."""
        alpha, size = self.p**2 / (self.p - 1), 1.0
        if alpha <= math.log(len(self.data)):
            alpha = size = math.log(len(self.data))
        laws = {
            "weibull": lambda: -math.log(u),
            "gamma": lambda: -math.log(u),
            "gev": lambda: -math.log(-math.log(u)),
            "pareto": lambda: size * u ** (-1 / alpha),
            "frechet": lambda: size * (-math.log(u)) ** (-1 / alpha),
        }
        return laws[self.perturbation]()

    def index(self, arm):
        return self.mean(arm) + self.width(arm) * self.noise(self.draw())


class SlowMRUCB(Slow):
    def __init__(self, arms, eps, c, c_est, horizon):
        super().__init__(arms, eps, c)
        self.c_est, self.horizon = c_est, horizon

    def index(self, arm):
        left = math.log(max(self.horizon / (len(self.data) * len(self.data[arm])), 1.0))
        return self.mean(arm, self.c_est) + self.width(arm) * left


class SlowMRAPE(Slow):
    def __init__(self, arms, eps, c, horizon, stream):
        super().__init__(arms, eps, c, stream)
        self.horizon = horizon

    def index(self, arm):
        left = math.log(max(self.horizon / (len(self.data) * len(self.data[arm])), 1.0))
        return self.mean(arm) + 2 * self.draw() * self.width(arm) * left
