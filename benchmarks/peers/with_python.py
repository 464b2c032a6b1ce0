"""The baseline: UCB1 as a plain loop over lists, without a library."""

from __future__ import annotations

import math
import random

import workload

PACKAGES: list[str] = []
TABLE = workload.table()


class UCB1:
    def __init__(self, arms: int) -> None:
        self.sums = [0.0] * arms
        self.counts = [0] * arms
        self.time = 0

    def select(self) -> int:
        if self.time < len(self.counts):
            return self.time
        level = 2.0 * math.log(self.time + 1)
        best, chosen = -math.inf, 0
        for arm, (total, count) in enumerate(zip(self.sums, self.counts, strict=True)):
            value = total / count + math.sqrt(level / count)
            if value > best:
                best, chosen = value, arm
        return chosen

    def update(self, arm: int, reward: float) -> None:
        self.sums[arm] += reward
        self.counts[arm] += 1
        self.time += 1


def live() -> float:
    policy, total = UCB1(workload.ARMS), 0.0
    for t in range(workload.ROUNDS):
        arm = policy.select()
        reward = TABLE[arm][t]
        policy.update(arm, reward)
        total += reward
    return total / workload.ROUNDS


def simulated() -> float:
    policy, total = UCB1(workload.ARMS), 0.0
    draw = random.Random(1).random
    for _ in range(workload.ROUNDS):
        arm = policy.select()
        reward = float(draw() < workload.MEANS[arm])
        policy.update(arm, reward)
        total += reward
    return total / workload.ROUNDS


ACTIONS = {"live": (live, workload.ROUNDS), "simulated": (simulated, workload.ROUNDS)}
