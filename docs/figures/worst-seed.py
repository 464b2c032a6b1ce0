"""Draw the regret of fifty runs of UCB1 and AdaKL-UCB on the same rewards, with the worst seed of each in bold."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, ORANGE, save, write_values

import robandit as rb

HORIZON, REPLICATIONS = 50_000, 50
PROBLEM = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
POLICIES = [rb.UCB1(), rb.AdaKLUCB()]

times = np.linspace(0, HORIZON, 201).astype(int)[1:]
result = rb.simulate(POLICIES, PROBLEM, HORIZON, REPLICATIONS, seed=1, checkpoints=times.tolist(), progress=False)
figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.4), sharey=True)
for axes, regret, policy, colour in zip(panels, result.regret, POLICIES, (ORANGE, BLUE), strict=True):
    final = regret[:, -1]
    worst = int(np.argmax(final))
    for run in regret:
        axes.plot(result.checkpoints, run, color=colour, alpha=0.25, linewidth=0.8)
    axes.plot(result.checkpoints, regret[worst], color=colour, linewidth=2.4)
    axes.plot(result.checkpoints, result.checkpoints * PROBLEM.gaps.mean(), color=GREY, linestyle="--", linewidth=0.9)
    axes.set_title(f"{policy.name}: median {np.median(final):,.0f}, worst seed {final[worst]:,.0f}")
    axes.set_xlabel("pulls")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
panels[0].set_ylabel("regret")
panels[1].annotate("choosing at random", (HORIZON * 0.62, HORIZON * 0.62 * PROBLEM.gaps.mean()), color=GREY, ha="right")
figure.tight_layout()
save(figure, __file__)
limit = 0.4 * HORIZON * PROBLEM.gaps.mean()
write_values(
    [
        f"{policy.name:10} median {np.median(final):4,.0f}, worst seed {final.max():6,.0f}; "
        f"{(final > limit).sum()} of {REPLICATIONS} runs with more than 40 % of the regret of choosing at random"
        for policy, final in zip(POLICIES, result.regret[:, :, -1], strict=True)
    ],
    __file__,
)
