"""The sample mean, with Chebyshev's bound."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.estimators.estimate import Estimate, check_delta, check_positive, refuse_non_finite, rows, shaped
from robandit.estimators.row_moments import row_means

__all__ = ["sample_mean"]


def sample_mean(x: ArrayLike, *, delta: float | None = None, v: float | None = None, axis: int = -1) -> Estimate:
    """The plain mean: the yardstick.

    Use it for light tails and as a control. With heavy tails one value can move it anywhere, and its only bound without further
    assumptions grows as 1/sqrt(delta), where robust means have sqrt(log(1/delta)).

    Parameters
    ----------
    x
        The sample, or a batch along ``axis``.
    delta, v
        Where the variance is at most v: bounds that hold with probability at least 1 - delta. Both or none.
    axis
        Where the values of one sample lie.

    Guarantee
    ---------
    |value - mean| <= sqrt(v / (n delta)) with probability at least 1 - delta, for uncorrelated values with variance at most v
    (Chebyshev). Nearly sharp: there are laws for which it cannot be improved much. Must know v.

    Examples
    --------
    >>> from robandit.estimators import sample_mean
    >>> sample_mean([1.0, 2.0, 3.0, 6.0], delta=0.25, v=4.0)
    <Estimate 3 in [1, 5] with probability 0.75: variance <= 4 (Chebyshev)>

    References
    ----------
    O. Catoni. Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48, 2012, section 5.
    """
    if (v is None) != (delta is None):
        raise InvalidInput(
            f"v = {v!r} and delta = {delta!r}: give both for bounds, or none of them for the value alone"
        )
    matrix, shape = rows(x, axis, check=False)
    n = matrix.shape[1]
    width = math.inf
    assumed = "nothing: a value without bounds (give v and delta for bounds)"
    if v is not None and delta is not None:
        v, delta = check_positive("v", v), check_delta(delta)
        width = math.sqrt(v) / math.sqrt(n * delta)
        assumed = f"variance <= {v:g} (Chebyshev)"
    value = row_means(matrix)
    if not (abs(value) < math.inf).all():
        refuse_non_finite(matrix)
    return Estimate(
        value=shaped(value, shape),
        lower=shaped(value - width, shape),
        upper=shaped(value + width, shape),
        delta=delta,
        assumed=assumed,
        n=n,
    )
