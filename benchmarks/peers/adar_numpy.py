"""AdaR-UCB implemented directly from the paper: keeps all rewards and solves every arm's threshold in every round.

Nothing is lazy or cached. SciPy's ``brentq`` finds the root with far fewer evaluations than bisection.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from robandit.kernel.types import Floats

C = (1.0 + math.sqrt(2.0)) ** 2


def threshold(second: Floats, target: float) -> float:
    """Return the M with sum_j min((x'_j / M)^2, 1) = target; unique if more than ``target`` values are not 0."""
    squares = second * second
    low = math.sqrt(float(squares[squares > 0.0].min()))  # the sum exceeds the target here
    high = math.sqrt(float(squares.sum()) / target)  # and is at most the target here
    if low >= high:
        return high

    def excess(size: float) -> float:
        return float(np.minimum(squares / (size * size), 1.0).sum()) - target

    return float(brentq(excess, low, high, xtol=1e-14 * high, rtol=1e-13))


def index(first: Floats, second: Floats, level: float, bonus: float) -> float:
    """Return an upper bound of the mean; ``first`` gives the trimmed mean, ``second`` the threshold."""
    n = len(first)
    if n == 0 or np.count_nonzero(second) <= C * level:
        return math.inf
    size = threshold(second, C * level)
    kept = np.where(np.abs(first) <= size, first, 0.0)
    return float(kept.mean()) + math.sqrt(2.0 * float(kept.var(ddof=1)) * level / n) + bonus * size * level / n


def play(table: Floats, pulls: int, bonus: float = 10.0) -> list[int]:
    """Return the arms pulled; the k-th pull of arm i returns table[i, k]. ``pulls`` must be even."""
    arms = len(table)
    chosen = []
    # Each round pulls an arm twice: even columns are first rewards, odd columns second rewards.
    firsts, seconds = np.ascontiguousarray(table[:, 0::2]), np.ascontiguousarray(table[:, 1::2])
    counts = [0] * arms
    for tau in range(1, pulls // 2 + 1):
        level = 3.0 * math.log(tau)
        values = [index(firsts[i, : counts[i]], seconds[i, : counts[i]], level, bonus) for i in range(arms)]
        arm = min(range(arms), key=lambda i: (-values[i], counts[i], i))
        counts[arm] += 1
        chosen += [arm, arm]
    return chosen
