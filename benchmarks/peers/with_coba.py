"""coba: ``BanditUCBLearner`` (UCB1-Tuned, its only UCB) live, and ``SequentialCB`` on a ``LambdaSimulation``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import workload

PACKAGES = ["coba"]
TABLE = workload.table()
CHOICES = list(range(workload.ARMS))
coba = import_module("coba")
learners = import_module("coba.learners")
evaluators = import_module("coba.evaluators")
environments = import_module("coba.environments")


def live() -> float:
    learner, total = learners.BanditUCBLearner(seed=1), 0.0
    for t in range(workload.ROUNDS):
        arm, probability = learner.predict(None, CHOICES)[:2]
        reward = TABLE[arm][t]
        learner.learn(None, arm, reward, probability)
        total += reward
    return total / workload.ROUNDS


def reward(_round: int, _context: Any, arm: int, rng: Any) -> float:
    return float(rng.random() < workload.MEANS[arm])


def simulated() -> None:
    simulation = environments.LambdaSimulation(
        workload.ROUNDS, lambda _i, _rng: None, lambda _i, _context, _rng: CHOICES, reward, seed=1
    )
    for _ in evaluators.SequentialCB(record=["reward"]).evaluate(simulation, learners.BanditUCBLearner(seed=1)):
        pass


ACTIONS = {"live": (live, workload.ROUNDS), "simulated": (simulated, workload.ROUNDS)}
