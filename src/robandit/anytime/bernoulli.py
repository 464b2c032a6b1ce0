"""The e-process for a rate: evidence against "at most this share of the values is 1".

The prior of the true rate is Beta(a, b), restricted to rates above the limit. After n values with the sum S,

    log E = log B(a + S, b + n - S) + log(1 - I(a + S, b + n - S)) - log B(a, b) - log(1 - I(a, b))
            - S log(rate) - (n - S) log(1 - rate),    where I(p, q) is the regularised incomplete beta function at the rate.

If the mean of each value, given all earlier ones, is at most the rate, then P(E ever reaches 1/alpha) <= alpha (Ville). This holds
also for values between 0 and 1: each likelihood ratio is convex in the value, so it is below the line between those of 0 and 1.
E grows with S, so a value that is not known may be counted as 0.
"""

from __future__ import annotations

import math
from functools import cache

from scipy.special import betaincc, betaln

from robandit.validation import invalid, positive, probability


def log_e_value(total: float, n: int, rate: float, *, a: float = 1.0, b: float | None = None) -> float:
    """Return log E after ``n`` values between 0 and 1 that sum to ``total``: -inf if E is too small for a double.

    ``b`` is 1/rate - 1 by default, which centres the prior on the rate when a = 1. For the sign of a difference use
    ``rate=0.5``: then a = b = 1.

    >>> round(log_e_value(10, 100, 0.05), 10)
    1.4660007401
    >>> round(log_e_value(6, 6, 0.5), 10)
    2.8982769374
    """
    rate = probability(rate, "rate")
    if not 0.0 <= total <= n:
        raise invalid("total", total, f"a sum of {n} values between 0 and 1")
    b = 1.0 / rate - 1.0 if b is None else b
    return (
        _above(a + total, b + n - total, rate)
        - _prior(a, b, rate)
        - (total * math.log(rate) + (n - total) * math.log1p(-rate))
    )


@cache
def _prior(a: float, b: float, rate: float) -> float:
    return _above(positive(a, "a"), positive(b, "b"), rate)


def _above(a: float, b: float, rate: float) -> float:
    """Return the logarithm of the integral of x^(a - 1) (1 - x)^(b - 1) over x from the rate to 1."""
    share = float(betaincc(a, b, rate))
    return float(betaln(a, b)) + math.log(share) if share > 0.0 else -math.inf
