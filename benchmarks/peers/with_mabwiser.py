"""MABWiser: ``predict`` and ``partial_fit`` one reward at a time, and its ``Simulator`` with batches of one."""

from __future__ import annotations

import logging
import random
from importlib import import_module
from typing import Any

import workload

PACKAGES = ["mabwiser", "numpy", "pandas", "scikit-learn"]
TABLE = workload.table()
LOGGED = 500  # few rounds: it copies its lists and makes a confusion matrix in each round
np = import_module("numpy")
mab = import_module("mabwiser.mab")
simulator = import_module("mabwiser.simulator")


def ucb1() -> Any:
    return mab.MAB(list(range(workload.ARMS)), mab.LearningPolicy.UCB1(alpha=1.0), seed=0)


def live() -> float:
    policy, total = ucb1(), 0.0
    # predict() needs a fit() first: one reward per arm. It converts lists to arrays, so we pass arrays.
    policy.fit(np.arange(workload.ARMS), np.array([TABLE[arm][0] for arm in range(workload.ARMS)]))
    decisions, rewards = np.zeros(1, dtype=int), np.zeros(1)
    for t in range(workload.ROUNDS):
        arm = policy.predict()
        reward = TABLE[arm][t]
        decisions[0] = arm
        rewards[0] = reward
        policy.partial_fit(decisions, rewards)
        total += reward
    return total / workload.ROUNDS


def simulated() -> None:
    rng = random.Random(1)
    count = 2 * LOGGED
    decisions = np.array([i % workload.ARMS for i in range(count)])
    rewards = np.array([float(rng.random() < workload.MEANS[i % workload.ARMS]) for i in range(count)])
    run = simulator.Simulator(
        [("UCB1", ucb1())], decisions, rewards, test_size=0.5, is_ordered=True, batch_size=1, is_quick=True
    )
    logging.disable(logging.CRITICAL)  # logging would take longer than the rounds
    run.run()


def batched() -> None:
    """Learn from all rewards in one batch, without choosing arms."""
    arms = np.tile(np.arange(workload.ARMS), workload.ROUNDS // workload.ARMS)
    ucb1().fit(arms, BATCH)


BATCH = np.array([TABLE[i % workload.ARMS][i] for i in range(workload.ROUNDS)])
ACTIONS = {"live": (live, workload.ROUNDS), "simulated": (simulated, LOGGED), "batched": (batched, workload.ROUNDS)}
