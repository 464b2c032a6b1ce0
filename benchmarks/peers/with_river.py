"""river: ``bandit.UCB`` live, and ``bandit.evaluate`` on its own ten-armed testbed (Gaussian rewards)."""

from __future__ import annotations

from importlib import import_module
from itertools import islice

import workload

bandit = import_module("river.bandit")
envs = import_module("river.bandit.envs")
PACKAGES = ["river", "gymnasium", "numpy"]
TABLE = workload.table()


def live() -> float:
    policy, total = bandit.UCB(delta=1.0, seed=0), 0.0
    arms = range(workload.ARMS)
    for t in range(workload.ROUNDS):
        arm = policy.pull(arms)
        reward = TABLE[arm][t]
        policy.update(arm, reward)
        total += reward
    return total / workload.ROUNDS


def simulated() -> None:
    # Not by gymnasium.make, which would add wrappers with slow checks.
    trace = bandit.evaluate([bandit.UCB(delta=1.0, seed=0)], envs.KArmedTestbed(workload.ARMS), n_episodes=1, seed=1)
    for _ in islice(trace, workload.ROUNDS):
        pass


ACTIONS = {"live": (live, workload.ROUNDS), "simulated": (simulated, workload.ROUNDS)}
