"""AdaKL-UCB's adaptive schedule by its definition: all rewards kept, everything computed anew each round, by bisection."""

import math

import numpy as np

from references.slow_adakl_ucb import centre, likelihood_bound, threshold

C = 2.5
FARTHEST = 512


class SlowAdaptive:
    def __init__(self, arms, borrow=1.5):
        self.borrow = borrow
        self.x = [[] for _ in range(arms)]
        self.made = [0] * arms
        self.rounds = self.learned = 0
        self.g, self.tail_next = 0.25, 8
        self.leader, self.profile, self.profile_next = None, None, 0

    # --- the index ---

    def own_level(self, n):
        x = self.rounds / len(self.x)
        limit = 0.3 + 0.7 * self.g
        factor = limit + (1.0 - limit) * min(1.0, 24.0 / n)
        return factor * (self.g * math.log(1.0 + x) + (1.0 - self.g) * math.log(1.0 + x / n))

    def bound(self, arm):
        """The centre, the smaller bound, the reach, and the threshold if the index clips (else infinity)."""
        n = len(self.x[arm])
        if n < 2:
            return 0.0, math.inf, 0.0, math.inf
        m = centre(self.x[arm])
        z = np.array(self.x[arm]) - m
        level, own, high = math.log(1.0 + self.rounds / len(self.x)), self.own_level(n), max(float(z.max()), 0.0)
        if high == 0.0 and n <= 4.0 * own:
            return m, math.inf, 0.0, math.inf
        if not z.any():
            return m, 0.0, 0.0, math.inf
        floor = reach = high * math.exp(level / (n - 1))
        bound, limit = likelihood_bound(z, own / n, floor), math.inf
        if np.count_nonzero(z) > 3.0 * C * level:
            root = threshold(np.abs(z), C * level)
            clipped = likelihood_bound(np.clip(z, -root, root), own / n, root)
            if clipped < bound and root < floor:
                limit = root
            bound, reach = min(bound, clipped), min(reach, root)
        return m, bound, reach, limit

    def index(self, arm):
        m, bound, reach, _ = self.bound(arm)
        if math.isfinite(bound) and len(self.x[arm]) < len(self.x[self.leader]):
            bound += self.borrow * self.borrowed(reach, len(self.x[arm]))
        return m + bound

    def ask(self):
        values = [self.index(arm) for arm in range(len(self.x))]
        best = max(values)
        return min((self.made[arm], arm) for arm, value in enumerate(values) if value == best)[1]

    # --- the leader ---

    def borrowed(self, reach, own):
        """The most that the leader owes to rewards beyond the reach, and beyond what the arm would have seen."""
        z, least, n = self.profile
        often = math.floor(2.0 * math.log(1.0 + self.rounds / len(self.x)) * n / own)
        reach = max(reach, least, abs(z[often]) if often < len(z) else 0.0)

        def owed(d):
            return float(np.sum(np.sign(z) * np.maximum(np.abs(z) - d, 0.0))) / n

        return max([0.0, owed(reach), *(owed(size) for size in np.abs(z) if size > reach)])

    def renew_profile(self):
        _, _, _, limit = self.bound(self.leader)
        z = np.array(self.x[self.leader]) - centre(self.x[self.leader])
        z = sorted(z[z != 0.0].tolist(), key=abs, reverse=True)
        least = abs(z[FARTHEST - 1]) if len(z) > FARTHEST else 0.0
        n = len(self.x[self.leader])
        self.profile = np.array([value for value in z[:FARTHEST] if abs(value) <= limit]), least, n
        self.profile_next = n + max(1, n // 16)

    # --- the left tails ---

    def renew_tail(self):
        weights = total = 0.0
        for rewards in self.x:
            n = len(rewards)
            if n < 8:
                continue
            k = min(int(math.sqrt(n)), 60)
            below = np.sort(centre(rewards) - np.array(rewards))[::-1]
            below = below[below > 0.0]
            weights += k
            if len(below) > 1:
                used = min(k, len(below) - 1)
                total += k * float(np.mean(np.log(below[:used] / below[used])))
        self.g = min(1.0, max(0.25, total / weights)) if weights else 0.25
        self.tail_next = self.learned + max(1, self.learned // 7)

    def tell(self, arm, reward):
        self.made[arm] += 1
        self.rounds += 1
        self.learned += 1
        self.x[arm].append(reward)
        if self.learned >= self.tail_next:
            self.renew_tail()
        if self.leader is None or len(self.x[arm]) > len(self.x[self.leader]):
            self.leader = arm
            self.renew_profile()
        elif arm == self.leader and len(self.x[arm]) >= self.profile_next:
            self.renew_profile()
