"""Measure the price of a floor: ``python benchmarks/floors.py [REPLICATIONS]`` prints a Markdown table. Takes a minute.

Regret of AdaKL-UCB after 5,000 pulls, in per cent of that of uniform play: the average of five problems, and that of their 95 %
quantiles. All floors play the same rewards, so the standard error of a price is that of paired differences.
"""

from __future__ import annotations

import math
import sys

import numpy as np

import robandit as rb

HORIZON = 5_000
SHARES = (0.01, 0.02, 0.05, 0.1)


def log_normal(costs: list[float], sigma: float) -> rb.Problem:
    return rb.Problem([-rb.laws.LogNormal(math.log(cost) - sigma * sigma / 2.0, sigma) for cost in costs])


PROBLEMS = (
    log_normal([1.0, 1.05, 1.1, 1.2, 1.5], 1.0),
    log_normal([1.0, 1.05], 0.5),
    log_normal(np.linspace(1.0, 2.0, 10).tolist(), 1.5),
    rb.problems.negated_pareto([-1.0, -1.5, -2.0], tail=1.5),
    rb.problems.pareto([2.0, 1.6, 1.4, 1.0], tail=2.2),
)


def main() -> None:
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    policies = [rb.AdaKLUCB(), *(rb.Floor(share=share) for share in SHARES)]
    arms = [np.argsort(-problem.means) for problem in PROBLEMS]
    runs = []  # problem, policy, replication
    for problem, order in zip(PROBLEMS, arms, strict=True):
        holdout = rb.Floor(arms={int(order[1]): 0.05})
        result = rb.simulate([*policies, holdout], problem, HORIZON, replications, seed=9, progress=False)
        runs.append(100.0 * result.regret[:, :, -1] / problem.uniform_regret(HORIZON))
    regret = np.array(runs)
    print("| floor | regret | 95 % quantile | price | highest price of a problem |\n| --- | --- | --- | --- | --- |")
    names = ["none", *(f"{share:.0%} uniform" for share in SHARES), "5% on the second-best arm"]
    for k, name in enumerate(names):
        price = (regret[:, k] - regret[:, 0]).mean(axis=1)
        error = math.sqrt(float((regret[:, k] - regret[:, 0]).var(axis=1, ddof=1).sum() / replications)) / len(PROBLEMS)
        cost = f"+{price.mean():.2f} +- {error:.2f} | +{price.max():.1f}" if k else "- | -"
        quantile = np.quantile(regret[:, k], 0.95, axis=1).mean()
        print(f"| {name.replace('%', ' %')} | {regret[:, k].mean():.2f} | {quantile:.1f} | {cost} |")


if __name__ == "__main__":
    main()
