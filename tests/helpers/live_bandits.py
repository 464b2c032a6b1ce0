"""Live bandits with some experience."""

import numpy as np

import robandit as rb

QUICK = rb.AdaRUCB(c=0.4, delta_exp=0.5, bonus=0.2)  # uses rewards after a few rounds
ARMS = ["eu", "us", "asia"]


def loss(rng, arm=0):
    return -float(rng.pareto(1.6)) - 0.3 * arm - 0.01


def lived(policy, pulls=60, arms=ARMS, seed=3, **options):
    """Return a bandit with some experience."""
    rng = np.random.default_rng(seed)
    bandit = rb.Bandit(arms, policy, seed=seed, **options)
    for _ in range(pulls):
        arm = bandit.select()
        bandit.update(arm, loss(rng, bandit.arms.index(arm)))
    return bandit


def next_decisions(bandit, count=50, seed=9):
    """Let a bandit select and learn; return the arms that it chose."""
    rng = np.random.default_rng(seed)
    chosen = []
    for _ in range(count):
        chosen.append(bandit.select())
        bandit.update(chosen[-1], loss(rng, bandit.arms.index(chosen[-1])))
    return chosen
