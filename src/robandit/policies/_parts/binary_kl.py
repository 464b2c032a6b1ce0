"""The divergence of two Bernoulli laws, and the bound that it puts on an unknown probability."""

from __future__ import annotations

import math

HALVINGS = 45


def binary_kl(a: float, b: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(a) from Bernoulli(b), for b in (0, 1)."""
    total = 0.0
    if a > 0.0:
        total += a * math.log(a / b)
    if a < 1.0:
        total += (1.0 - a) * math.log((1.0 - a) / (1.0 - b))
    return total


def largest_probability(share: float, n: float, level: float) -> float:
    """Return the largest probability b with n KL(share, b) <= level."""
    low, high = share, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle < 1.0 and n * binary_kl(share, middle) <= level:
            low = middle
        else:
            high = middle
    return low
