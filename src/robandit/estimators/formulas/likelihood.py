"""The likelihood bound of a mean: ``U(C) = min over l of l - exp(-C + mean_j log(l - z_j))`` over l >= a known floor.

U is the largest mean of a law on (-inf, floor] whose Kullback-Leibler distance from the sample is at most C. The minimum is at the
floor, or where ``-C + mean_j log(1 - z_j/l) + log(mean_j 1/(1 - z_j/l)) = 0``. Every l gives an upper bound of U. So an inexact
minimiser is on the safe side, and its error is only of second order.
"""

from __future__ import annotations

import math


def bound_at(at: float, mean_log: float, exponent: float) -> float:
    """Return the bound for one l = ``at``, from mean_log = mean_j log(1 - z_j/l) and C, without cancellation of l."""
    return -at * math.expm1(mean_log - exponent)


def proved_exponent(level: float, n: float) -> float:
    """Return C for a bound that fails with probability at most exp(-level): P(n KLinf >= y) <= e (n + 2) exp(-y)."""
    return (level + 1.0 + math.log(n + 2.0)) / n
