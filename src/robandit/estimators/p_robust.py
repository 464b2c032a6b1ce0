"""The p-robust mean of APE^2, in which values enter through a logarithm, without centring or root finding."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from robandit.estimators.estimate import Estimate, bound_delta, interval, log_over, rows
from robandit.estimators.formulas.catoni import HUGE, influence_constant
from robandit.estimators.row_moments import row_means
from robandit.hints import guided
from robandit.validation import invalid, positive, within


@guided
def p_robust_mean(
    x: ArrayLike, *, p: float, c: float, u: float | None = None, delta: float | None = None, axis: int = -1
) -> Estimate:
    """A mean of logarithms: each value enters as ``log(1 + z + b_p z^p)``, where z is its size in units of c n^(1/p).

    Use it if you know the order p of a moment but not its size, and want a closed form. c trades bias for spread and must be set
    to the scale of the data. The estimator shrinks towards 0, so it is not equivariant to adding a constant.

    Parameters
    ----------
    p, c
        Order of the moment, 1 < p <= 2, and the scale, > 0, in the units of x.
    u
        A known bound E|x|^p <= u. Without it there is a value but no bound.
    delta
        0.05 if only u is given. Without u it is rejected.

    Guarantee
    ---------
    With probability at least 1 - delta, |value - mean| <= c n^(1/p - 1) (log(2/delta) + b_p u / c^p), for independent values with
    E|x|^p <= u (the exponential moment of the sum is at most exp(n^(1-1/p) mean/c + b_p u / c^p)). Without u only the value is
    returned. Requires p, and u for bounds.

    Examples
    --------
    >>> from robandit.estimators import p_robust_mean
    >>> round(p_robust_mean([0.3, -1.2, 2.5, 0.1, -4], p=1.5, c=1.0).value, 9)
    -0.355483913

    References
    ----------
    K. Lee, H. Yang, S. Lim, S. Oh. Optimal algorithms for stochastic multi-armed bandits with heavy tailed rewards. NeurIPS 2020.
    """
    p, c = within(p, "p", 1.0, 2.0, open_low=True), positive(c, "c")
    delta = bound_delta(delta, u=u)
    matrix, shape = rows(x, axis)
    n = matrix.shape[1]
    b = influence_constant(p)
    width = math.inf
    assumed = "nothing: a value without bounds (give u for bounds)"
    if delta is not None:
        u = positive(u, "u")
        try:
            bias = b * (u ** (1.0 / p) / c) ** p
        except OverflowError:  # c is far too small for u
            bias = math.inf
        width = c * n ** (1.0 / p - 1.0) * (log_over(2.0, delta) + bias)
        assumed = f"E|x|^{p:g} <= {u:g} (Lee et al.)"
    unit = c * n ** (1.0 / p)
    if unit == math.inf:
        raise invalid("c", c, "small enough that c n^(1/p) does not overflow", hint="the scale of x is a good c")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        z = np.abs(matrix) / unit
        terms = np.log1p(z + b * z**p)
        far = z > HUGE
        if far.any():
            # 1 is negligible compared with z, and the quotient may have overflowed. If p is near 1, z matters next
            # to b z^p: log(z + b z^p) = log z + log(1 + b z^(p-1)).
            logs = np.log(np.abs(matrix[far])) - math.log(unit)
            terms[far] = logs + np.logaddexp(0.0, math.log(b) + (p - 1.0) * logs)
    # c n^(1/p - 1) times the sum is c n^(1/p) times the mean.
    value = unit * row_means(np.copysign(terms, matrix))
    return interval(value, width, shape, delta=delta, assumed=assumed, n=n)


@guided
def b_p(p: float) -> float:
    """Return the least b for which ``log(1 + z + b |z|^p)`` lies above ``-log(1 - z + b |z|^p)``.

    It is the constant of influence functions: 1/2 at p = 2, as for Catoni's function, and 1 in the limit p = 1.

    Examples
    --------
    >>> from robandit.estimators import b_p
    >>> b_p(2), round(b_p(1.5), 12)
    (0.5, 0.438691337651)
    """
    return influence_constant(within(p, "p", 1.0, 2.0, open_low=True))
