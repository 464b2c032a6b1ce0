"""Clipped-SGD-UCB by its definition: every index is computed from the arm's full history."""

import math
from statistics import median


class SlowClippedSGDUCB:
    """``draw()`` gives the standard normal numbers of the smoothing; each is kept with the batch that used it."""

    def __init__(self, arms, horizon, size, coeff=0.1, init_steps=3, groups=1, batch=1, smoothing=0.001, draw=None):
        self.rewards = [[] for _ in range(arms)]
        self.noises = [[] for _ in range(arms)]
        self.A = math.log(4 * (horizon + 1) / (1 / horizon**2))
        self.R, self.coeff, self.init_steps, self.groups, self.batch = size, coeff, init_steps, groups, batch
        self.smoothing, self.draw = smoothing, draw

    def batches(self, arm):
        """Return the rewards after the first ones, in complete batches."""
        rest, size = self.rewards[arm][self.init_steps :], self.groups * self.batch
        return [rest[k * size : (k + 1) * size] for k in range(len(rest) // size)]

    def estimate(self, arm):
        first = self.rewards[arm][: self.init_steps]
        x = median(first) if first else self.R
        for rewards, noises in zip(self.batches(arm), self.noises[arm], strict=True):
            means = [
                math.fsum(x - r for r in rewards[j * self.batch : (j + 1) * self.batch]) / self.batch
                for j in range(self.groups)
            ]
            g = median(m + self.smoothing * z for m, z in zip(means, noises, strict=True))
            gamma = 1 / self.A
            limit = self.R / (gamma * self.A)
            x -= gamma * math.copysign(min(abs(g), limit), g)
        return x

    def untold(self):
        """Return an arm whose first rewards or batch are incomplete, or else the arm with the largest index."""
        first, size = self.init_steps or self.groups * self.batch, self.groups * self.batch
        counts = list(map(len, self.rewards))
        inside = [i for i, n in enumerate(counts) if n and (n < first or (n - first) % size)]
        return (inside or [i for i, n in enumerate(counts) if n < first])[:1]

    def indices(self):
        t = sum(map(len, self.rewards)) + 1
        return [
            self.estimate(i) + self.coeff * math.sqrt(math.log(t) / len(self.rewards[i]))
            for i in range(len(self.rewards))
        ]

    def learn(self, arm, reward):
        self.rewards[arm].append(reward)
        if len(self.batches(arm)) > len(self.noises[arm]):
            self.noises[arm].append([self.draw() if self.smoothing else 0.0 for _ in range(self.groups)])
