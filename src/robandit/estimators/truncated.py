"""The truncated mean of Robust UCB."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robandit.estimators.estimate import Estimate, interval, log_over, moment_order, rows
from robandit.estimators.row_moments import row_means
from robandit.hints import guided
from robandit.validation import choice, positive, probability


@guided
def truncated_mean(
    x: ArrayLike, *, eps: float, u: float, delta: float = 0.05, common_threshold: bool = False, axis: int = -1
) -> Estimate:
    """The mean of a sample after values above a known, growing threshold are set to zero.

    Use it if you can justify a bound on a raw moment. Its bound then holds at every sample size, but it is wide if u is too
    large. It is not equivariant to adding a constant: centre the data first if their mean is far from zero.

    Parameters
    ----------
    x
        The sample in the order in which it was observed.
    eps, u
        A known bound E|x|^(1+eps) <= u with 0 < eps <= 1.
    common_threshold
        False (as published): value j is compared with ``(u j / L)^(1/(1+eps))``, so that thresholds stay the same when the sample
        grows. True: every value is compared with the last and largest threshold.

    Guarantee
    ---------
    With L = log(2/delta), |value - mean| <= 4 u^(1/(1+eps)) (L/n)^(eps/(1+eps)) with probability at least 1 - delta, for
    independent values with E|x|^(1+eps) <= u and every n. This is Lemma 1 of the paper on both sides with half of delta each.
    With the common threshold the same proof gives a constant below 4. Requires eps and u.

    Examples
    --------
    >>> from robandit.estimators import truncated_mean
    >>> estimate = truncated_mean([0.3, -1.2, 2.5, 0.1, -4, 1.1, 0.7, 3.3], eps=0.5, u=2.0, delta=0.02)
    >>> round(estimate.value, 12), round(estimate.upper - estimate.value, 9)
    (0.275, 5.282001914)

    References
    ----------
    S. Bubeck, N. Cesa-Bianchi, G. Lugosi. Bandits with heavy tail. IEEE Transactions on Information Theory 59, 2013.
    """
    eps, u, delta = moment_order(eps), positive(u, "u"), probability(delta, "delta")
    choice(common_threshold, "common_threshold", (True, False))
    matrix, shape = rows(x, axis)
    n = matrix.shape[1]
    level = log_over(2.0, delta)
    root = 1.0 / (1.0 + eps)
    # u^(1/(1+eps)) has the size of x. As a separate factor it prevents the overflow of u j.
    last = u**root * (n / level) ** root
    every = last if common_threshold else u**root * (np.arange(1.0, n + 1.0) / level) ** root
    inside = np.abs(matrix) <= every
    value = row_means(np.where(inside, matrix, 0.0))
    width = 4.0 * u**root * (level / n) ** (eps * root)
    assumed = f"E|x|^{1.0 + eps:g} <= {u:g} (Lemma 1)"
    more = {"share_trimmed": 1.0 - inside.mean(axis=1), "threshold": np.full(len(matrix), last)}
    return interval(value, width, shape, delta=delta, assumed=assumed, n=n, **more)
