"""Draw AdaR-UCB's index of two arms over a live run: forced exploration, then an index that approaches the trimmed mean."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, ORANGE, save

import robandit as rb

PULLS, ARMS = 200_000, ("a", "b")
PROBLEM = rb.problems.negated_pareto(means=[-1.0, -3.0], tail=1.8)
CHECKPOINTS = set(np.geomspace(20, PULLS, 120).astype(int).tolist())

bandit = rb.Bandit(ARMS, rb.AdaRUCB(), seed=0)
rewards = {
    name: iter(law.sample(PULLS, seed=i).tolist()) for i, (name, law) in enumerate(zip(ARMS, PROBLEM.laws, strict=True))
}
history: list[tuple[int, list[dict[str, float]]]] = []
for pull in range(1, PULLS + 1):
    arm = bandit.select()
    bandit.update(arm, next(rewards[arm]))
    if pull in CHECKPOINTS:
        history.append((pull, bandit.estimates()))

times = np.array([pull for pull, _ in history])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4))
for i, colour in enumerate((BLUE, ORANGE)):
    index = np.array([rows[i]["index"] for _, rows in history])
    index[~np.isfinite(index)] = np.nan  # infinite during forced exploration
    mean = np.array([rows[i]["mean"] for _, rows in history])
    left.plot(times, index, color=colour, label=f"index of {ARMS[i]}")
    left.plot(times, mean, color=colour, linestyle=":", label=f"trimmed mean of {ARMS[i]}")
    left.axhline(PROBLEM.means[i], color=colour, linewidth=0.6)
    right.plot(times, [rows[i]["pulls"] for _, rows in history], color=colour, label=ARMS[i])
left.set_xscale("log")
left.set_ylim(-3.4, 5.0)
left.set_xlabel("pulls")
left.set_title("Index and trimmed mean")
left.legend(fontsize=8)
right.plot(times, times / 2, color=GREY, linewidth=0.8, linestyle="--", label="half")
right.set_xscale("log")
right.set_yscale("log")
right.set_xlabel("pulls")
right.set_title("Pulls of each arm")
right.legend(fontsize=8)
figure.tight_layout()
save(figure, __file__)
