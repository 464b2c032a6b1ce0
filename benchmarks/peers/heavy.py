"""The heavy-tailed problem: ten arms, negated Pareto rewards with tail index 1.5 and infinite variance."""

from __future__ import annotations

import numpy as np

from robandit.kernel.types import Floats

ARMS = 10
TAIL = 1.5
MEANS: list[float] = (-np.linspace(1.0, 5.5, ARMS)).tolist()
HORIZONS = (10_000, 20_000, 40_000)
CHECKED = 6_000  # pulls on which both implementations must agree; every index is finite by then


def table(pulls: int, seed: int) -> Floats:
    """Return rewards by arm and pull."""
    scales = -np.array(MEANS) * (TAIL - 1.0) / TAIL
    drawn: Floats = np.random.default_rng(seed).pareto(TAIL, (ARMS, pulls)) + 1.0
    return -scales[:, None] * drawn
