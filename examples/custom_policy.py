"""A policy of your own, at the speed of the built-in ones: greedy on the median of three means, random now and then."""

from typing import Any, NamedTuple

import numpy as np

import robandit as rb
from robandit.kernel.random import uniform


class State(NamedTuple):
    sums: Any  # (arms, 3): rewards are dealt to three sums in turn
    counts: Any
    rng: Any  # seeded by Robandit, saved with the rest


class MedianGreedy(rb.Policy):
    epsilon: float = 0.05

    def init(self, arms: int, horizon: int | None) -> State:
        return State(np.zeros((arms, 3)), np.zeros(arms, dtype=np.int64), np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p: Any, s: State) -> int:
        best, chosen, explore = -np.inf, 0, uniform(s.rng) < p.epsilon
        for arm in range(len(s.counts)):
            if s.counts[arm] < 3:
                return arm
            a, b, c = s.sums[arm]
            value = uniform(s.rng) if explore else max(min(a, b), min(max(a, b), c)) / s.counts[arm]
            if value > best:
                best, chosen = value, arm
        return chosen

    @staticmethod
    def update(p: Any, s: State, arm: int, reward: float) -> None:
        s.sums[arm, s.counts[arm] % 3] += reward
        s.counts[arm] += 1


if __name__ == "__main__":
    problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    result = rb.simulate([MedianGreedy(), rb.AdaRUCB(), rb.UCB1()], problem, horizon=100_000, replications=50, seed=1)
    print(result.summary())
    print("ns per pull:", (result.seconds / (50 * 100_000) * 1e9).round())
