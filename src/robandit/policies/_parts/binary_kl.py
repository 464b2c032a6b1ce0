"""The divergence of two Bernoulli laws, and the bound that it puts on an unknown probability."""

from __future__ import annotations

import math

STEPS = 40


def binary_kl(a: float, b: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(a) from Bernoulli(b), for b in (0, 1)."""
    total = 0.0
    if a > 0.0:
        total += a * math.log(a / b)
    if a < 1.0:
        total += (1.0 - a) * math.log((1.0 - a) / (1.0 - b))
    return total


def largest_probability(share: float, n: float, level: float) -> float:
    """Return the largest probability b with n KL(share, b) <= level.

    Newton's method from above: KL is convex in b, so the steps go down to the solution. It begins at the smaller of two bounds,
    from KL >= 2 (b - share)^2, and from KL >= -(1 - share) log(1 - b) - entropy.
    """
    if share >= 1.0 or level <= 0.0:
        return share
    rest = 1.0 - share
    entropy = -rest * math.log(rest) - (share * math.log(share) if share > 0.0 else 0.0)
    b = min(share + math.sqrt(0.5 * level / n), 1.0 - math.exp(-(level / n + entropy) / rest))
    for _ in range(STEPS):
        if b >= 1.0:
            return 1.0
        step = (binary_kl(share, b) - level / n) * b * (1.0 - b) / (b - share) if b > share else 0.0
        if not step > 1e-16:
            break
        b -= step
    return max(b, share)
