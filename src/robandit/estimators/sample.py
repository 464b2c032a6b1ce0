"""The sample mean, with Chebyshev's bound."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from robandit.estimators.estimate import Estimate, bound_delta, interval, reject_non_finite, rows
from robandit.estimators.row_moments import row_means
from robandit.hints import guided
from robandit.validation import positive


@guided
def sample_mean(x: ArrayLike, *, delta: float | None = None, v: float | None = None, axis: int = -1) -> Estimate:
    """The plain mean, as a baseline.

    Use it for light tails and as a control. With heavy tails one value can move it arbitrarily far. Without further assumptions
    its only bound grows as 1/sqrt(delta), compared with sqrt(log(1/delta)) for robust means.

    Parameters
    ----------
    v
        A bound on the variance. Without it there is a value but no bound.
    delta
        0.05 if only v is given. Without v it is rejected.

    Guarantee
    ---------
    |value - mean| <= sqrt(v / (n delta)) with probability at least 1 - delta, for uncorrelated values (Chebyshev). For some laws
    it cannot be improved much. Requires v.

    Examples
    --------
    >>> from robandit.estimators import sample_mean
    >>> sample_mean([1.0, 2.0, 3.0, 6.0], delta=0.25, v=4.0)
    <Estimate 3 in [1, 5] with probability 0.75: variance <= 4 (Chebyshev)>

    References
    ----------
    O. Catoni. Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48, 2012, section 5.
    """
    delta = bound_delta(delta, v=v)
    matrix, shape = rows(x, axis, check=False)
    n = matrix.shape[1]
    width = math.inf
    assumed = "nothing: a value without bounds (give v for bounds)"
    if delta is not None:
        v = positive(v, "v")
        width = math.sqrt(v) / math.sqrt(n * delta)
        assumed = f"variance <= {v:g} (Chebyshev)"
    value = row_means(matrix)
    if not (abs(value) < math.inf).all():
        reject_non_finite(matrix)
    return interval(value, width, shape, delta=delta, assumed=assumed, n=n)
