"""Catoni's mean for a known bound on the variance."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.estimators.estimate import Estimate, Number, interval, log_over, rows, shaped
from robandit.estimators.roots import row_roots
from robandit.hints import guided
from robandit.validation import choice, positive, probability


@guided
def catoni_mean(
    x: ArrayLike, *, v: float, delta: float = 0.05, bonus: Literal["paper", "tight"] = "paper", axis: int = -1
) -> Estimate:
    """Catoni's M-estimator, which is nearly as narrow as the Gaussian interval for any law with a bounded variance.

    Use it whenever the variance is finite and a bound on it is known. For laws without a variance see `infinite_variance_catoni`.

    Parameters
    ----------
    v
        A bound on the variance that you know without ``x``, such as from older data. Without one, use `adaptive_trimmed_mean`.
    bonus
        ``"paper"``: the width 2 sqrt(v L / n) that Robust UCB uses. ``"tight"``: Catoni's own width sqrt(2 v L / (n - 2 L)). It
        is never wider, and for large n it is narrower by a factor 1.41. The value is the same.

    Guarantee
    ---------
    With L = log(2/delta): |value - mean| <= width with probability at least 1 - delta, for independent values with variance at
    most v, if n >= 4 L ("paper") or n > 2 L ("tight"). Smaller samples are rejected. Requires v.

    Examples
    --------
    >>> import math
    >>> from robandit.estimators import catoni_mean
    >>> x = [3 * math.sin(7 * j) + 10 * (j == 5) for j in range(1, 41)]
    >>> estimate = catoni_mean(x, v=2.0, delta=0.02)
    >>> round(estimate.value, 9), round(estimate.upper - estimate.value, 9)
    (0.405941005, 0.959705182)

    References
    ----------
    O. Catoni. Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48, 2012, Proposition 2.4.
    S. Bubeck, N. Cesa-Bianchi, G. Lugosi. Bandits with heavy tail. IEEE Transactions on Information Theory 59, 2013, Lemma 3.
    """
    v, delta = positive(v, "v"), probability(delta, "delta")
    choice(bonus, "bonus", ("paper", "tight"))
    matrix, shape = rows(x, axis)
    n = matrix.shape[1]
    level = log_over(2.0, delta)
    least = least_values(level, bonus)
    if n < least:
        ways = (
            f"a larger delta, or bonus='tight' ({least_values(level, 'tight')})"
            if bonus == "paper"
            else "or a larger delta"
        )
        needs = f"this bound needs {least} at delta = {delta:g}"
        raise InvalidInput(f"there are {n} values, and {needs}: pass more values, {ways}")
    value = row_roots(matrix, np.full(len(matrix), tuned_alpha(n, v, level)))
    if bonus == "paper":
        width, theorem = 2.0 * math.sqrt(v) * math.sqrt(level / n), "Lemma 3"
    else:
        width, theorem = math.sqrt(v) * math.sqrt(2.0 * level / (n - 2.0 * level)), "Catoni, Proposition 2.4"
    return interval(value, width, shape, delta=delta, assumed=f"variance <= {v:g} ({theorem})", n=n)


def least_values(level: float, bonus: str) -> int:
    """Return the smallest sample size for which the bound holds, with level = log(2/delta)."""
    return math.ceil(4.0 * level) if bonus == "paper" else math.floor(2.0 * level) + 1


def tuned_alpha(n: int, v: float, level: float) -> float:
    """Return sqrt(ell / (n (v + v ell / (n - ell)))) with ell = 2 level, without a sum that overflows for a large v."""
    ell = 2.0 * level
    return math.sqrt(ell * (n - ell)) / n / math.sqrt(v)


@guided
def catoni_root(x: ArrayLike, alpha: float, *, axis: int = -1) -> Number:
    """The theta with ``sum_j psi(alpha (x_j - theta)) = 0`` for Catoni's widest psi: log(1 + z + z^2/2) for z >= 0, odd.

    Use it to choose alpha > 0 (in units of 1/x) yourself. A small alpha gives the mean, a large one the middle of the sample.

    Guarantee
    ---------
    The root is unique. Its error is at most 1e-11 of the spread of the sample (or of its distance from the median, if that is
    larger), or the rounding of the last digit; for moderate alpha 1e-12. With the alpha of `catoni_mean` its bounds hold.

    Examples
    --------
    >>> from robandit.estimators import catoni_root
    >>> round(catoni_root([0.0, 1.0, 2.0, 50.0], 0.5), 9)
    5.928368104
    """
    alpha = positive(alpha, "alpha")
    matrix, shape = rows(x, axis)
    return shaped(row_roots(matrix, np.full(len(matrix), alpha)), shape)
