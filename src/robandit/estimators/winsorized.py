"""The winsorised mean, which is common in industry and serves here as a control."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from robandit.estimators.estimate import Estimate, interval, rows
from robandit.estimators.row_moments import row_means
from robandit.hints import guided
from robandit.validation import within


@guided
def winsorized_mean(x: ArrayLike, *, share: float = 0.05, axis: int = -1) -> Estimate:
    """The mean after the lowest and the highest share of values are replaced by the nearest remaining value.

    Use it only as a control, next to estimators with a bound. For a skewed law it does not estimate the mean, even with more
    data: at a share of 5 % it gives about 2.3 for a Pareto law of index 1.5, whose mean is 3. There is no bound.

    Parameters
    ----------
    share
        Share of the values replaced at EACH end, 0 <= share < 1/2; this is floor(share n) values.

    Guarantee
    ---------
    There is none for skewed heavy tails: the bias does not vanish. For symmetric laws the value is consistent, without a bound.

    Examples
    --------
    >>> from robandit.estimators import winsorized_mean
    >>> winsorized_mean([1.0, 2.0, 3.0, 4.0, 1000.0], share=0.2).value
    3.0

    References
    ----------
    W. J. Dixon. Simplified estimation from censored normal samples. Annals of Mathematical Statistics 31, 1960.
    """
    share = within(share, "share", 0.0, 0.5, open_high=True, hint="such as 0.05")
    matrix, shape = rows(x, axis)
    n = matrix.shape[1]
    cut = math.floor(share * n)
    value = row_means(matrix)
    if cut > 0:
        ends = np.partition(matrix, (cut, n - 1 - cut), axis=1)
        value = row_means(np.clip(matrix, ends[:, [cut]], ends[:, [n - 1 - cut]]))
    assumed = "a symmetric law, for the value; there is no valid bound"
    return interval(value, math.inf, shape, delta=None, assumed=assumed, n=n, share_trimmed=2.0 * cut / n)
