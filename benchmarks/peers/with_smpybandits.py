"""SMPyBandits: ``UCB`` live, and its ``Evaluator``.

The package is unchanged; names that NumPy, SciPy and Python have removed are restored before its import.
"""

from __future__ import annotations

import inspect
import os
from importlib import import_module

import workload

os.environ["MPLBACKEND"] = "Agg"  # it imports matplotlib
os.environ["NOPLOTS"] = "True"
np = import_module("numpy")
special = import_module("scipy.special")
SHIMS = {
    "numpy.in1d": (np, "in1d", "isin"),
    "numpy.string_": (np, "string_", "bytes_"),
    "numpy.float": (np, "float", "float64"),
    "numpy.int": (np, "int", "int64"),
    "numpy.bool": (np, "bool", "bool_"),
    "numpy.trapz": (np, "trapz", "trapezoid"),
    "scipy.special.btdtri": (special, "btdtri", "betaincinv"),
    "inspect.getargspec": (inspect, "getargspec", "getfullargspec"),
}
FACTS = {"restored": ""}
for _name, (_module, _old, _new) in SHIMS.items():
    if _old not in vars(_module):
        setattr(_module, _old, getattr(_module, _new))
        FACTS["restored"] += f" {_name}"

PACKAGES = ["SMPyBandits", "numpy", "scipy", "matplotlib"]
TABLE = workload.table()
REPLICATIONS = 1
policies = import_module("SMPyBandits.Policies")
arms = import_module("SMPyBandits.Arms")
environment = import_module("SMPyBandits.Environment")


def live() -> float:
    policy, total = policies.UCB(workload.ARMS), 0.0
    policy.startGame()
    for t in range(workload.ROUNDS):
        arm = policy.choice()
        reward = TABLE[arm][t]
        policy.getReward(arm, reward)
        total += reward
    return total / workload.ROUNDS


def simulated() -> None:
    environment.Evaluator(
        {
            "horizon": workload.ROUNDS,
            "repetitions": REPLICATIONS,
            "n_jobs": 1,
            "verbosity": 0,
            "environment": [{"arm_type": arms.Bernoulli, "params": workload.MEANS}],
            "policies": [{"archtype": policies.UCB, "params": {}}],
        },
        moreAccurate=False,
    ).startAllEnv()


ACTIONS = {"live": (live, workload.ROUNDS), "simulated": (simulated, REPLICATIONS * workload.ROUNDS)}
