"""Compare fast policies with slow ones that compute every index from all rewards."""

import math


class SlowIndexPolicy:
    """Keeps all rewards of all arms in lists. A subclass writes the index, `value(arm, t)`, where t is the number of pulls made."""

    least = 1

    def __init__(self, arms):
        self.x = [[] for _ in range(arms)]

    @property
    def t(self):
        return sum(map(len, self.x))

    def indices(self):
        return [self.value(i, self.t) if len(x) >= self.least else math.inf for i, x in enumerate(self.x)]

    def learn(self, arm, reward):
        self.x[arm].append(reward)


def duel(live, slow, reward, steps, tolerance=1e-11):
    """Play ``steps`` pulls with ``reward(arm)``; every choice must be the slow policy's. Return how many differ within rounding."""
    close = 0
    for step in range(steps):
        arm = live.ask()
        values = slow.indices()
        expected = min(range(len(values)), key=lambda i: (-values[i], len(slow.x[i]), i))
        if arm != expected:
            gap = values[expected] - values[arm]
            size = max(slow.size(i) for i in (arm, expected))
            assert gap <= tolerance * size, f"pull {step}: {arm} instead of {expected}, indices {values}"
            close += 1
        value = float(reward(arm))
        live.tell(arm, value)
        slow.learn(arm, value)
    return close


def stream(kind, seed):
    """Return a function that draws one reward of a kind of `helpers.rewards`."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return lambda arm: kind(rng, arm, 1)[0]
