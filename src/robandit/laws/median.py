"""The median of a law."""

from __future__ import annotations

import math

from robandit.laws.base import Law


def law_median(law: Law) -> float:
    """Return the centre of symmetry if the law has one, else the smallest x with P(X <= x) >= 1/2."""
    if law.symmetric_about is not None:
        return law.symmetric_about
    low, high = law.support
    if not math.isfinite(low):
        low = -1.0 if not math.isfinite(high) else min(-1.0, 2.0 * high - 1.0)
        while float(law.cdf(low)) >= 0.5:
            low *= 2.0
    if float(law.cdf(low)) >= 0.5:
        return low
    if not math.isfinite(high):
        high = max(1.0, low + 1.0)
        while float(law.cdf(high)) < 0.5:
            high *= 2.0
    # Bisection, not brentq, because at a jump of the cdf the median must be exactly the place of the jump.
    while low < (middle := 0.5 * low + 0.5 * high) < high:
        low, high = (low, middle) if float(law.cdf(middle)) >= 0.5 else (middle, high)
    return high
