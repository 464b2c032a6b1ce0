"""pymab: its compiled ``UCBPolicy`` live, and ``Experiment`` on its compiled backend."""

from __future__ import annotations

from importlib import import_module

import workload

PACKAGES = ["pymab", "numpy"]
REPLICATIONS = 2
TABLE = workload.table()
np = import_module("numpy")
pymab = import_module("pymab")
policies = import_module("pymab.policies")
FACTS = {"compiled": str(import_module("pymab._native").native_available())}


def live() -> float:
    policy, total = policies.UCBPolicy(n_arms=workload.ARMS), 0.0
    rng = np.random.default_rng(0)
    for t in range(workload.ROUNDS):
        arm = policy.select_action(rng=rng)
        reward = TABLE[arm][t]
        policy.update(action=arm, reward=reward)
        total += reward
    return total / workload.ROUNDS


def simulated() -> None:
    pymab.Experiment(
        environment=pymab.BanditEnvironment(means=np.array(workload.MEANS), reward_model=pymab.BernoulliReward()),
        policies={"UCB1": policies.UCBPolicy(n_arms=workload.ARMS)},
        # Drawing rewards for the chosen arm only is faster.
        config=pymab.ExperimentConfig(
            horizon=workload.ROUNDS, n_replicates=REPLICATIONS, seed=1, reward_coupling="independent"
        ),
    ).run()


ACTIONS = {"live": (live, workload.ROUNDS), "simulated": (simulated, REPLICATIONS * workload.ROUNDS)}
