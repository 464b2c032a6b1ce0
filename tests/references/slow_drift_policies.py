"""Probes and restarts as their description has them, around a greedy policy, with lists and passes over all arms."""

import math

from references.slow_drift_detector import SlowDetector

SALT = 0x5851F42D4C957F2D


class SlowGreedy:
    """Untried arms first, then the greatest mean; the lowest arm in a tie."""

    def __init__(self, arms):
        self.rewards = [[] for _ in range(arms)]

    def choose(self, allowed):
        def key(arm):
            values = self.rewards[arm]
            return (math.inf if not values else math.fsum(values) / len(values), -arm)

        return max(allowed, key=key)


class SlowDrift:
    """``restarts`` = False: Probing; True: Restarting. ``clock`` counts pulls, as they are made."""

    def __init__(self, arms, rate, restarts):
        self.arms, self.rate, self.restarts = range(arms), rate, restarts
        self.inner = SlowGreedy(arms)
        self.detector = SlowDetector(arms, SALT)
        self.clock = self.since = 0
        self.last = [0] * arms
        self.burst = None  # the arm whose last probe paid
        self.in_burst = set()  # arms that were probed, until a reward does not pay
        self.probes = self.alarms = self.restarted = 0

    def idle(self, arm):
        """Whether an arm was idle for too long."""
        gap = min(math.sqrt(len(self.arms) * max(self.clock - self.since, 100)) / self.rate, 1000 * len(self.arms))
        return self.clock - self.last[arm] >= gap

    def choose(self, allowed):
        if self.rate > 0:
            if self.burst in allowed:
                return self.burst
            oldest = min(allowed, key=lambda arm: (self.last[arm], arm))
            if self.idle(oldest):
                return oldest
        return self.inner.choose(allowed)

    def pull(self, arm):
        if self.rate > 0 and (arm == self.burst or self.idle(arm)):
            self.probes += 1
            self.in_burst.add(arm)
            if arm == self.burst:
                self.burst = None
        self.clock += 1
        self.last[arm] = self.clock

    def learn(self, arm, reward):
        self.inner.rewards[arm].append(reward)
        watched = self.detector.arms[arm]
        if self.detector.watch(arm, reward):
            self.alarm(arm, watched)
        elif arm in self.in_burst:
            if watched.up > 0.5:
                self.burst = arm
            else:
                self.in_burst.remove(arm)

    def lose(self, arm):
        """The reward of a pull will never arrive."""
        self.in_burst.discard(arm)

    def alarm(self, arm, watched):
        self.alarms += 1
        self.in_burst.discard(arm)
        if self.restarts:
            best = max(range(len(watched.capital)), key=lambda k: watched.capital[k])
            for other in self.arms:
                kept = min(watched.excursion(best), 256) if other == arm else 8
                self.inner.rewards[other] = self.detector.arms[other].rewards[-kept:]
                self.last[other] = -math.inf
            self.last[arm] = self.since = self.clock
            self.burst, self.in_burst = None, set()
            self.restarted += 1
        watched.restart()
