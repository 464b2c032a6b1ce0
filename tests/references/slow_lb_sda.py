"""LB-SDA, with limited memory and sliding window, by its definition: everything recomputed every round, in exact arithmetic."""

import math
from fractions import Fraction


def exact(rewards):
    return [Fraction(reward) for reward in rewards]


def mean(rewards):
    return Fraction(sum(exact(rewards)), len(rewards))


class SlowLBSDA:
    """All arms are always allowed, and every pull has its reward at once."""

    def __init__(self, arms, memory="all", window=None):
        self.arms, self.memory, self.window = arms, memory, window
        self.log = []  # (arm, reward) in order
        self.stored = [[] for _ in range(arms)]  # for a limited memory
        self.queue, self.winners = [], list(range(arms))
        self.leader, self.since, self.r = -1, 0, 0
        self.drawn = [1] * arms

    def rewards(self, arm):
        """The rewards that count for the leader and for forced pulls."""
        log = self.log if self.window is None else self.log[-self.window :]
        return [reward for k, reward in log if k == arm]

    def compared(self, arm):
        """The rewards that count in duels."""
        return self.stored[arm] if self.memory == "limited" else self.rewards(arm)

    def choose(self):
        untried = [arm for arm in range(self.arms) if not any(k == arm for k, _ in self.log)]
        if untried:
            return untried[0]
        if not self.queue:
            self.start()
        return self.queue[0]

    def start(self):
        self.r += 1
        counts = [len(self.rewards(arm)) for arm in range(self.arms)]
        leader = self.find_leader(counts)
        if leader != self.leader:
            self.leader, self.since = leader, self.r
        self.winners = [arm for arm in range(self.arms) if self.is_pulled(arm, counts)]
        self.queue = list(self.winners) or [leader]
        self.winners = list(self.queue)

    def find_leader(self, counts):
        eligible = list(range(self.arms))
        if self.window is not None and self.leader >= 0:
            share = Fraction(min(self.r, self.window), self.arms)
            if counts[self.leader] >= share / 2:
                eligible = [k for k in eligible if k == self.leader or (k in self.winners and counts[k] >= share)]
        return max(eligible, key=lambda k: (counts[k], sum(exact(self.rewards(k))), k == self.leader, -k))

    def is_pulled(self, arm, counts):
        if self.window is None:
            if counts[arm] >= counts[self.leader]:
                return False
            return counts[arm] <= math.sqrt(math.log(self.r)) or self.wins(arm)
        level = math.log(self.window)
        if counts[arm] <= math.sqrt(level):
            return True
        if arm == self.leader:
            return False
        patience = int((self.arms - 1) * level**2)
        quiet = self.r - self.since >= patience and self.r - self.drawn[self.leader] >= patience
        rare = self.r - self.drawn[arm] >= patience and counts[arm] <= level**2
        return self.wins(arm) or (quiet and rare)

    def wins(self, arm):
        own, others = self.compared(arm), self.compared(self.leader)
        return mean(own) >= mean(others[-len(own) :])

    def learn(self, arm, reward):
        if self.queue:
            assert self.queue.pop(0) == arm
        r = max(1, self.r)
        self.drawn[arm] = r
        self.log.append((arm, reward))
        if len(self.stored[arm]) >= max(10, math.log(r) ** 2):
            self.stored[arm].pop(0)
        self.stored[arm].append(reward)
