"""Draw what a bandit sees of an arm that hangs now and then, by what becomes of time-outs, and what it then does."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, ORANGE, PURPLE, save

import robandit as rb

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from deadlines import LIMIT, RATES, WAYS, play

warnings.simplefilter("ignore", rb.errors.DriftWarning)
HANG, RATE, SECONDS = "the best arm hangs in 5 %", RATES[1], 60
COLOURS = dict(zip(WAYS, (PURPLE, ORANGE, BLUE), strict=True))
LABELS = dict(zip(WAYS, ("expired: survivors only", "30 s when they end", "with their ages: deadline=30"), strict=True))


def seen(way: str) -> list[float]:
    """Return the mean cost of one arm, as a bandit sees it, at each second of steady calls."""
    rng, now = np.random.default_rng(1), 0.0
    deadline = LIMIT if way == WAYS[2] else None
    bandit = rb.Bandit([0], rb.UCB1(), minimize=True, deadline=deadline, clock=lambda: now, compile="never")
    took = np.exp(0.7 * rng.standard_normal(int(RATE) * SECONDS) - 0.245)
    took[rng.random(took.size) < 0.05] = np.inf
    ends: list[tuple[float, str]] = []
    costs: dict[str, float] = {}
    means = []
    for k, cost in enumerate(took.tolist()):
        now = k / RATE
        for end, id in [each for each in ends if each[0] <= now]:
            ends.remove((end, id))
            if costs[id] < LIMIT or way == WAYS[1]:
                bandit.reward(id, costs[id])
            elif way == WAYS[0]:
                bandit.expire(id)  # with a deadline, the bandit closes it itself
        decision = bandit.decide()
        costs[decision.id] = min(cost, LIMIT)
        ends.append((now + costs[decision.id], decision.id))
        if (k + 1) % int(RATE) == 0:
            row = bandit.estimates()[0]
            means.append(row["mean"] + row.get("waiting", 0.0))
    return means


figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.2))
for way in WAYS:
    left.plot(range(1, SECONDS + 1), seen(way), color=COLOURS[way])
left.axhline(0.95 + 0.05 * LIMIT, color=GREY, linestyle="--")
left.annotate("true mean cost: 2.45 s", (38.0, 2.75), color=GREY)
left.set_ylim(0.8, 3.0)
left.set_xlabel("seconds")
left.set_title("Mean cost of an arm that hangs in 5 %, as seen")
calls = [np.mean([play(HANG, RATE, way, run)[0] for run in range(20)]) for way in WAYS]
right.barh(range(3), calls, height=0.5, color=[COLOURS[way] for way in WAYS])
for k, (way, count) in enumerate(zip(WAYS, calls, strict=True)):
    right.text(30.0, k + 0.36, f"{LABELS[way]}: {count:,.0f}", color=COLOURS[way])
right.set_yticks([])
right.set_ylim(-0.6, 3.0)
right.set_xlabel("requests")
right.set_title("Its requests, of 3,000 in 60 s")
figure.tight_layout()
save(figure, __file__)
