"""Draw the threshold equation of AdaR-UCB, its root in two rounds, and the rewards trimmed there."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, ORANGE, PURPLE, save

from robandit import estimators, laws
from robandit.estimators.formulas.threshold import C

REWARDS, ROUNDS = 3_000, (20, 10_000)
LAW = -laws.Pareto(tail=1.5) * (1.0 / 3.0)  # mean -1, infinite variance

seconds = LAW.sample(REWARDS, seed=4)  # X': for the threshold
firsts = LAW.sample(REWARDS, seed=5)  # X: for the mean
sizes = np.geomspace(0.2, 300.0, 400)
sums = [np.minimum((seconds / m) ** 2, 1.0).sum() for m in sizes]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4))
left.plot(sizes, sums, color=GREY)
left.set_xscale("log")
left.set_yscale("log")
left.set_xlabel("M")
left.set_title("The threshold M solves: sum = c L")
left.annotate(r"$\sum_j\ \min\{(X'_j/M)^2,\ 1\}$", (0.9, 1500.0), color=GREY)
thresholds = []
for rounds, colour in zip(ROUNDS, (BLUE, ORANGE), strict=True):
    root = estimators.trimming_threshold(seconds, rounds**-3.0)
    thresholds.append(root)
    level = C * 3.0 * np.log(rounds)
    left.plot([sizes[0], root, root], [level, level, min(sums)], color=colour, linestyle="--")
    left.plot(root, level, "o", color=colour)
    label = f"round {rounds:,}: $c\\,L$ = {level:.0f}, M = {root:.1f}"
    left.annotate(label, (root * 1.3, level * 1.1), color=colour, va="center")

spread = np.random.default_rng(0).uniform(-0.6, 0.35, REWARDS)
right.scatter(firsts, spread, s=6, color=GREY, alpha=0.5, linewidths=0, rasterized=True)
for root, rounds, colour, height in zip(thresholds, ROUNDS, (BLUE, ORANGE), (0.86, 0.66), strict=True):
    right.axvline(-root, color=colour, linestyle="--", ymax=0.76)
    mean = estimators.trimmed_mean(firsts, threshold=root)
    trimmed = int((np.abs(firsts) > root).sum())
    label = f"round {rounds:,}: {trimmed} trimmed, trimmed mean {mean:.2f}"
    right.text(0.02, 0.5 + 0.5 * height, label, color=colour, transform=right.transAxes)
right.text(
    -thresholds[0] * 1.08, -0.85, f"true mean {LAW.mean:.0f}, sample mean {firsts.mean():.2f}", color=PURPLE, ha="right"
)
right.axvline(LAW.mean, color=PURPLE, linewidth=1.0, ymax=0.76)
right.set_xscale("symlog", linthresh=0.3)
right.set_xlim(-2.0 * np.abs(firsts).max(), -0.3)
right.set_ylim(-1.0, 1.0)
right.set_yticks([])
right.spines["left"].set_visible(False)
right.set_xticks([-100, -10, -1], ["-100", "-10", "-1"])
right.set_xlabel("first rewards X of the same arm")
right.set_title("Rewards beyond the threshold count as 0")
figure.tight_layout()
save(figure, __file__)
