"""AdaKL-UCB by its definition: all rewards kept, everything computed anew each round, by bisection."""

import math

import numpy as np


def centre(first):
    """The median of the first 2^k rewards, up to 128."""
    if not first:
        return 0.0
    count = min(2 ** int(math.log2(len(first))), 128)
    return float(np.median(first[:count]))


def threshold(sizes, a):
    """The root of sum min((x/M)^2, 1) = a, by bisection."""
    sizes = sizes[sizes > 0.0]
    low, high = 0.0, math.sqrt(float(np.sum((sizes / sizes.max()) ** 2)) / a) * sizes.max() * 2.0 + sizes.max()
    for _ in range(110):
        middle = 0.5 * (low + high)
        if np.sum(np.minimum((sizes / middle) ** 2, 1.0)) > a:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def likelihood_bound(z, exponent, floor):
    """The minimum over l >= floor of l - exp(-C + mean log(l - z)), by bisection on the sign of the derivative."""
    n = len(z)
    highest = max(float(z.max()), 0.0)
    scale = float(np.abs(z).max()) or floor
    if scale == 0.0:
        return 0.0

    def falls(at):  # is the derivative negative?
        tilt = z / (at - z)
        return np.sum(np.log1p(-z / at)) + n * np.log1p(np.mean(tilt)) > n * exponent

    low, high = math.log(scale) - 34.0, math.log(scale) + 60.0
    for _ in range(62):
        middle = 0.5 * (low + high)
        if falls(highest + math.exp(middle)):
            low = middle
        else:
            high = middle
    at = max(highest + math.exp(0.5 * (low + high)), floor)
    if at <= highest:  # no room between the two in doubles
        return at
    return -at * math.expm1(-exponent + float(np.mean(np.log1p(-z / at))))


class SlowAdaKLUCB:
    def __init__(self, arms, schedule="practical", center="median", pulls="single"):
        self.practical = schedule == "practical"
        self.centred = center == "median"
        self.double = pulls == "double"
        self.x = [[] for _ in range(arms)]
        self.x_prime = [[] for _ in range(arms)]
        self.made = [0] * arms
        self.rounds = 0
        self.current = None

    def index(self, arm):
        tau = self.rounds + 1
        x, x_prime = self.x[arm], self.x_prime[arm]
        if self.practical:
            x = x_prime = self.x[arm]
            level, c, guard = math.log(1.0 + (tau - 1.0) / len(self.x)), 2.5, 7.5
        else:
            level, c = 3.0 * math.log(tau), (1.0 + math.sqrt(2.0)) ** 2
            guard = 3.0 * c if self.centred else c
        m = centre(x_prime) if self.centred else 0.0
        z = np.array(x) - m
        sizes = np.abs(np.array(x_prime) - m)
        bound = math.inf
        n = len(z)
        if self.practical:
            if n < 2 or (z.max() <= 0.0 and n <= 4.0 * level):
                return math.inf
            bound = likelihood_bound(z, level / n, max(z.max(), 0.0) * math.exp(level / (n - 1)))
        if n > 0 and np.sum(sizes > 0.0) > guard * level:
            if not np.any(sizes > 0.0):
                return math.inf
            exponent = level / n if self.practical else (level + math.log(math.e * (n + 2))) / n
            limit = threshold(sizes, c * level) if level > 0.0 else math.inf
            bound = min(bound, likelihood_bound(np.where(np.abs(z) <= limit, z, 0.0), exponent, limit))
        return m + bound

    def ask(self):
        if self.current is not None:
            return self.current
        values = [self.index(arm) for arm in range(len(self.x))]
        best = max(values)
        return min((self.made[arm], arm) for arm, value in enumerate(values) if value == best)[1]

    def tell(self, arm, reward):
        first = self.made[arm] % 2 == 0
        self.made[arm] += 1
        self.rounds += first if self.double else 1
        self.current = arm if self.double and first else None
        (self.x if first or self.practical else self.x_prime)[arm].append(reward)
