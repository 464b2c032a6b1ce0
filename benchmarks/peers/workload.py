"""What every peer is given: ten Bernoulli arms, and a table of rewards for live use. In plain Python: coba has no NumPy."""

from __future__ import annotations

import random

ARMS = 10
ROUNDS = 10_000  # of one run, then the policy starts anew
MEANS = [0.9 - 0.05 * arm for arm in range(ARMS)]


def table() -> list[list[float]]:
    """Rewards by arm and round, the same for all."""
    rng = random.Random(0)
    return [[float(rng.random() < mean) for _ in range(ROUNDS)] for mean in MEANS]
