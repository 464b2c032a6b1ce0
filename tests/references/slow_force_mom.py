"""ForceMoM by its definition: everything recomputed every round."""

import math
from statistics import median


def blocks_of(n, arms):
    """The largest odd q <= min(n, 2 ceil(log 2K + l(n)) + 1)."""
    slow = math.log(math.log(math.e**math.e + n))
    q = min(n, 2 * math.ceil(math.log(2 * arms) + slow) + 1)
    return q if q % 2 == 1 else q - 1


def median_of_means(stored, arms):
    q = blocks_of(len(stored), arms)
    size = len(stored) // q
    return median(math.fsum(stored[b * size : (b + 1) * size]) / size for b in range(q))


class SlowForceMoM:
    def __init__(self, arms, rho=2 / 3):
        self.arms, self.rho = arms, rho
        self.stored = [[] for _ in range(arms)]
        self.pulls = [0] * arms
        self.t = 1
        self.forced = 0

    def exploring(self):
        m0 = math.ceil(16 * math.log(2 * self.arms + math.e))
        target = max(self.arms * m0, math.ceil(self.arms ** (1 - self.rho) * self.t**self.rho))
        return self.forced < target

    def estimates(self):
        return [median_of_means(stored, self.arms) for stored in self.stored]

    def choose(self):
        if self.exploring():
            return self.forced % self.arms
        estimates = self.estimates()
        return min(range(self.arms), key=lambda i: (-estimates[i], self.pulls[i], i))

    def learn(self, arm, reward):
        if self.exploring():
            self.stored[arm].append(reward)
            self.forced += 1
        self.pulls[arm] += 1
        self.t += 1
