"""Draw the regret over time of AdaR-UCB, AdaKL-UCB and UCB1 on rewards with infinite variance: mean and 95 % quantile."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, save, write_values

import robandit as rb

HORIZON, REPLICATIONS = 1_000_000, 30
PROBLEM = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
POLICIES = [rb.UCB1(), rb.AdaRUCB(), rb.AdaRUCB(bonus="tight"), rb.AdaKLUCB()]

result = rb.simulate(POLICIES, PROBLEM, HORIZON, REPLICATIONS, seed=1, progress=False)
times = result.checkpoints
figure, axes = plt.subplots(figsize=(7.0, 3.8))
for regret, policy, colour in zip(result.regret, POLICIES, (ORANGE, BLUE, PURPLE, GREEN), strict=True):
    axes.plot(times, regret.mean(axis=0), color=colour, label=policy.name)
    axes.fill_between(
        times, regret.mean(axis=0), np.quantile(regret, 0.95, axis=0), color=colour, alpha=0.15, linewidth=0
    )
axes.plot(times, times * PROBLEM.gaps.mean(), color=GREY, linestyle="--", linewidth=0.9, label="at random")
axes.set_xscale("log")
axes.set_yscale("log")
axes.set_xlim(100, HORIZON)
axes.set_ylim(5, None)
axes.set_xlabel("pulls")
axes.set_ylabel("regret")
axes.set_title("Mean regret (line) up to the 95 % quantile (shade)")
axes.legend(fontsize=8)
figure.tight_layout()
save(figure, __file__)
write_values(
    [
        f"{row['policy']:24} mean {row['mean']:7,.0f}  95 % {row['q95']:7,.0f}  worst {row['worst']:7,.0f}"
        for row in result.summary().iter_rows(named=True)
    ],
    __file__,
)
