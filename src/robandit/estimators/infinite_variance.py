"""Catoni's mean for laws whose variance may be infinite."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.estimators.estimate import Estimate, interval, log_over, moment_order, rows
from robandit.estimators.formulas.catoni import influence_constant
from robandit.estimators.roots import row_roots
from robandit.hints import guided
from robandit.validation import positive, probability


@guided
def infinite_variance_catoni(
    x: ArrayLike, *, eps: float, v: float, delta: float = 0.05, tau0: float | None = None, axis: int = -1
) -> Estimate:
    """Catoni's M-estimator with an influence function of order 1 + eps, for laws with a mean and a possibly infinite variance.

    Use it if you know a centred moment of order below 2: of all estimators for that case it has by far the smallest constants. If
    the variance is finite and bounded, `catoni_mean` is narrower and about forty times faster.

    Parameters
    ----------
    eps, v
        A known bound E|x - mean|^(1+eps) <= v with 0 < eps <= 1.
    tau0
        A free parameter > 0 of the theorem. None: the value with the narrowest bound, which depends only on n, eps and delta.

    Guarantee
    ---------
    Let L = log(2/delta), C = b_p(1 + eps) and D = ((1+eps)/eps) ((1+tau0)^((1+eps)/eps) / tau0^(1/eps)) C^(1/eps). If n > D L,
    then with probability at least 1 - delta |value - mean| is at most (1+tau0) (1+eps)^(1/2) (1-eps)^(1/(1+eps)-1/2)
    v^(1/(1+eps)) (L/n)^(eps/(1+eps)) / (1 - D L/n)^(eps/(1+eps)). Smaller samples are rejected. Requires eps and v.

    Examples
    --------
    >>> import numpy as np
    >>> from robandit.estimators import infinite_variance_catoni
    >>> x = np.random.default_rng(0).pareto(1.8, 10_000)  # mean 1.25
    >>> estimate = infinite_variance_catoni(x, eps=0.5, v=5.0, delta=0.05)
    >>> round(estimate.value, 6), round(estimate.upper - estimate.value, 6)
    (1.229798, 0.248437)

    References
    ----------
    S. Bhatt, G. Fang, P. Li, G. Samorodnitsky. Nearly optimal Catoni's M-estimator for infinite variance. ICML 2022, PMLR 162.
    """
    eps, v, delta = moment_order(eps), positive(v, "v"), probability(delta, "delta")
    matrix, shape = rows(x, axis)
    n = matrix.shape[1]
    order = 1.0 + eps
    tuned = tuning(n, log_over(2.0, delta), eps, tau0)
    scale = v ** (1.0 / order)
    alphas = np.full(len(matrix), tuned.alpha / scale)
    value = row_roots(matrix, alphas, order=order, factor=influence_constant(order))
    assumed = f"E|x - mean|^{order:g} <= {v:g} (Bhatt et al.)"
    return interval(value, tuned.width * scale, shape, delta=delta, assumed=assumed, n=n)


class Tuning(NamedTuple):
    """The theorem's numbers for v = 1. Divide alpha by the scale of the data, v^(1/(1+eps)), and multiply the width by it."""

    alpha: float
    width: float
    tau0: float


def tuning(n: int, level: float, eps: float, tau0: float | None = None) -> Tuning:
    """Return alpha and width for n values and L = ``level``. Raise `InvalidInput` if n is too small."""
    order = 1.0 + eps
    c = influence_constant(order)
    share = level / n
    # D of the theorem has its minimum at tau0 = 1/eps: if that tau0 fails, every tau0 fails.
    if tau0 is None:
        tau = _narrowest(share, eps, c) if share * _d(1.0 / eps, eps, c) < 1.0 else 1.0 / eps
    else:
        tau = positive(tau0, "tau0")
    rest = 1.0 - share * _d(tau, eps, c)
    if rest <= 0.0:
        ways = f" (tau0 = 1/eps needs {_least(level * _d(1.0 / eps, eps, c))})" if tau0 is not None else ""
        needs = f"the bound of order {order:g} needs {_least(level * _d(tau, eps, c))}{ways}"
        raise InvalidInput(f"the sample has {n} values, and {needs}: pass more values, or a larger delta")
    power = eps / order
    alpha = (eps * c) ** (-1.0 / order) * share ** (1.0 / order) * rest**power
    width = (1.0 + tau) * math.sqrt(order) * (1.0 - eps) ** (1.0 / order - 0.5) * (share / rest) ** power
    return Tuning(alpha, width, tau)


def _d(tau: float, eps: float, c: float) -> float:
    """Return D of the theorem, or infinity if it overflows."""
    try:
        return float((1.0 + eps) / eps * (1.0 + tau) * ((1.0 + tau) / tau * c) ** (1.0 / eps))
    except OverflowError:
        return math.inf


def _least(bound: float) -> str:
    """Return the least integer above a bound, for a message."""
    return f"{math.floor(bound) + 1}" if bound < 2**63 else f"more than {min(bound, 1.7e308):.3g}"


def _narrowest(share: float, eps: float, c: float) -> float:
    """Return the tau0 of the least width, where its derivative is 0: share D = (1+eps) tau0 / (1+tau0), left of 1/eps."""
    # Bisect down to neighbouring doubles, because the value of the estimator depends on every digit of tau0.
    low, high = 0.0, 1.0 / eps
    for _ in range(200):
        tau = 0.5 * (low + high)
        if not low < tau < high:
            break
        if share * _d(tau, eps, c) > (1.0 + eps) * tau / (1.0 + tau):
            low = tau
        else:
            high = tau
    return high
