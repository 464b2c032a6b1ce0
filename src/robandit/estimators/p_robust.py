"""The p-robust mean of APE^2: bounded by a logarithm, without centring and without a root."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.estimators.estimate import Estimate, check_delta, check_order, check_positive, log_over, rows, shaped
from robandit.estimators.row_moments import row_means

__all__ = ["b_p", "p_robust_mean"]

_HUGE = 1e150  # beyond it a square may overflow


def p_robust_mean(
    x: ArrayLike, *, p: float, c: float, u: float | None = None, delta: float | None = None, axis: int = -1
) -> Estimate:
    """A mean of logarithms: each value enters as ``log(1 + z + b_p z^p)`` of its size z in units of c n^(1/p).

    Use it where the order p of a moment is known and its size is not, and a closed form is wanted; c trades bias for spread and
    must be set to the scale of the data. Not invariant to adding a constant: it shrinks towards 0.

    Parameters
    ----------
    x
        The sample, or a batch along ``axis``.
    p
        Order of the moment, 1 < p <= 2.
    c
        Scale, > 0, in the units of x.
    u, delta
        Where E|x|^p <= u is known: bounds that hold with probability at least 1 - delta. Both or none.
    axis
        Where the values of one sample lie.

    Guarantee
    ---------
    With probability at least 1 - delta, |value - mean| <= c n^(1/p - 1) (log(2/delta) + b_p u / c^p), for independent values with
    E|x|^p <= u (the exponential moment of the sum is at most exp(n^(1-1/p) mean/c + b_p u / c^p)). Without u the value alone.
    Must know p, and u for bounds.

    Examples
    --------
    >>> from robandit.estimators import p_robust_mean
    >>> round(p_robust_mean([0.3, -1.2, 2.5, 0.1, -4], p=1.5, c=1.0).value, 9)
    -0.355483913

    References
    ----------
    K. Lee, H. Yang, S. Lim, S. Oh. Optimal algorithms for stochastic multi-armed bandits with heavy tailed rewards. NeurIPS 2020.
    """
    p, c = check_order("p", p, 1.0, 2.0), check_positive("c", c)
    if (u is None) != (delta is None):
        raise InvalidInput(
            f"u = {u!r} and delta = {delta!r}: give both for bounds, or none of them for the value alone"
        )
    matrix, shape = rows(x, axis)
    n = matrix.shape[1]
    b = b_p(p)
    width = math.inf
    assumed = "nothing: a value without bounds (give u and delta for bounds)"
    if u is not None and delta is not None:
        u, delta = check_positive("u", u), check_delta(delta)
        try:
            bias = b * (u ** (1.0 / p) / c) ** p
        except OverflowError:  # c is far too small for u
            bias = math.inf
        width = c * n ** (1.0 / p - 1.0) * (log_over(2.0, delta) + bias)
        assumed = f"E|x|^{p:g} <= {u:g} (Lee et al.)"
    unit = c * n ** (1.0 / p)
    if unit == math.inf:
        raise InvalidInput(f"c = {c:g} is too large: c n^(1/p) is beyond a double; the scale of x is a good c")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        z = np.abs(matrix) / unit
        terms = np.log1p(z + b * z**p)
        far = z > _HUGE
        if far.any():
            # There 1 is nothing beside z, the quotient itself may have overflowed, and z counts beside b z^p if p is near 1:
            # log(z + b z^p) = log z + log(1 + b z^(p-1)).
            logs = np.log(np.abs(matrix[far])) - math.log(unit)
            terms[far] = logs + np.logaddexp(0.0, math.log(b) + (p - 1.0) * logs)
    # c n^(1/p - 1) times the sum is c n^(1/p) times the mean.
    value = unit * row_means(np.copysign(terms, matrix))
    return Estimate(
        value=shaped(value, shape),
        lower=shaped(value - width, shape),
        upper=shaped(value + width, shape),
        delta=delta,
        assumed=assumed,
        n=n,
    )


def b_p(p: float) -> float:
    """The least b for which ``log(1 + z + b |z|^p)`` lies above ``-log(1 - z + b |z|^p)``: the constant of influence functions.

    1/2 at p = 2, where it is Catoni's, and 1 in the limit p = 1.

    Examples
    --------
    >>> from robandit.estimators import b_p
    >>> b_p(2), round(b_p(1.5), 12)
    (0.5, 0.438691337651)
    """
    p = check_order("p", p, 1.0, 2.0)
    eps, rest = p - 1.0, 2.0 - p  # both exact
    return float((rest / eps) ** (0.5 * rest) * (eps / p) ** (0.5 * p))
