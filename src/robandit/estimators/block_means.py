"""The median of the means of blocks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from robandit.estimators.estimate import Estimate, given_pair, interval, log_over, moment_order, reject_non_finite, rows
from robandit.estimators.row_moments import row_means, row_medians
from robandit.hints import guided
from robandit.validation import integer, positive, probability

MANY = 2**62  # a number of values so large that the number of blocks depends on delta alone


@guided
def median_of_means(
    x: ArrayLike, *, delta: float = 0.05, eps: float | None = None, v: float | None = None, axis: int = -1
) -> Estimate:
    """The median of the means of equal blocks: simple, fast, and equivariant to shift and scale.

    Use it for a value if little is known and n is large, and for bounds if a centred moment is known. Its constants are large:
    with a known variance bound `catoni_mean` is several times narrower. For skewed laws and small blocks it is biased.

    Parameters
    ----------
    x
        The sample, in an order that does not depend on its values. Blocks are consecutive. Up to k - 1 last values are unused.
    delta
        Sets the number of blocks, with or without bounds.
    eps, v
        A known bound E|x - mean|^(1+eps) <= v with 0 < eps <= 1. Give both or neither; without them there are no bounds.

    Guarantee
    ---------
    With D = log(e^(1/8) 2/delta) there are k = floor(min(8 D, n/2)) blocks, at least one. Then |value - mean| <= (12
    v)^(1/(1+eps)) (16 D / n)^(eps/(1+eps)) with probability at least 1 - delta, by Lemma 2 of the paper on both sides with half
    of delta each. Its proof needs floor(8 D) blocks of two values or more. With fewer values the formula can fail (for example
    with two values of a law with rare large ones, delta = 1e-4). So the bounds are then infinite, delta is None, and ``assumed``
    states the number of values needed; `median_of_means_width` still gives the formula. Requires eps and v.

    Examples
    --------
    >>> from robandit.estimators import median_of_means
    >>> median_of_means([0.3, -1.2, 2.5, 0.1, -4, 1.1, 0.7, 3.3], delta=0.02).value
    0.425

    References
    ----------
    S. Bubeck, N. Cesa-Bianchi, G. Lugosi. Bandits with heavy tail. IEEE Transactions on Information Theory 59, 2013. The method is
    A. Nemirovsky, D. Yudin, Problem complexity and method efficiency in optimization, 1983.
    """
    delta = probability(delta, "delta")
    matrix, shape = rows(x, axis, check=False)
    count, n = matrix.shape
    width, assumed = lemma(n, eps, v, delta)
    k = median_of_means_blocks(n, delta)
    used = k * (n // k)
    blocks = np.ascontiguousarray(matrix[:, :used]).reshape(count * k, n // k)
    means = row_means(blocks)
    # A NaN or infinity makes its block's mean non-finite. Values in no block need a separate check.
    if not (np.isfinite(means).all() and np.isfinite(matrix[:, used:]).all()):
        reject_non_finite(matrix)
    value = row_medians(means.reshape(count, k))
    return interval(value, width, shape, delta=delta if width < math.inf else None, assumed=assumed, n=n)


def lemma(n: int, eps: float | None, v: float | None, delta: float) -> tuple[float, str]:
    """Return the width of Lemma 2 for n values and its assumption. The width is infinite if the lemma does not apply."""
    if not given_pair(eps=eps, v=v):
        return math.inf, "nothing: a value without bounds (give eps and v for bounds)"
    eps, v = moment_order(eps), positive(v, "v")
    needed = 2 * median_of_means_blocks(MANY, delta)
    if n < needed:
        why = f"Lemma 2 needs n >= {needed} at this delta, and there are {n} values"
        return math.inf, f"nothing: a value without bounds ({why})"
    return median_of_means_width(n, eps=eps, v=v, delta=delta), f"E|x - mean|^{1.0 + eps:g} <= {v:g} (Lemma 2)"


@guided
def median_of_means_blocks(n: int, delta: float = 0.05) -> int:
    """The number of blocks for n values: floor(min(8 log(e^(1/8) 2/delta), n/2)), at least 1.

    >>> median_of_means_blocks(8, 0.02), median_of_means_blocks(1000, 0.02)
    (4, 37)
    """
    n, delta = integer(n, "n", 1, 2**63 - 1), probability(delta, "delta")
    return max(1, min(math.floor(1.0 + 8.0 * log_over(2.0, delta)), n // 2))


@guided
def median_of_means_width(n: int, *, eps: float, v: float, delta: float = 0.05) -> float:
    """The formula of the two-sided bound: (12 v)^(1/(1+eps)) (16 log(e^(1/8) 2/delta) / n)^(eps/(1+eps)).

    >>> round(median_of_means_width(8, eps=0.5, v=2.0, delta=0.02), 9)
    17.59718022
    """
    n, delta = integer(n, "n", 1, 2**63 - 1), probability(delta, "delta")
    eps, v = moment_order(eps), positive(v, "v")
    root = 1.0 / (1.0 + eps)
    return float(12.0**root * v**root * (16.0 * (0.125 + log_over(2.0, delta)) / n) ** (eps * root))
