"""The problem for every peer: ten Bernoulli arms, and a table of rewards for live use.

Plain Python, because coba's environment has no NumPy.
"""

from __future__ import annotations

import random

ARMS = 10
ROUNDS = 10_000  # per run; each run starts a new policy
MEANS = [0.9 - 0.05 * arm for arm in range(ARMS)]


def table() -> list[list[float]]:
    """Return rewards by arm and round, the same for every peer."""
    rng = random.Random(0)
    return [[float(rng.random() < mean) for _ in range(ROUNDS)] for mean in MEANS]
