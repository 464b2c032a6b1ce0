"""Catoni's mean where the variance may be infinite."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.estimators.estimate import Estimate, check_delta, check_order, check_positive, log_over, rows, shaped
from robandit.estimators.p_robust import b_p
from robandit.estimators.roots import row_roots

__all__ = ["Tuning", "infinite_variance_catoni", "tuning"]


def infinite_variance_catoni(
    x: ArrayLike, *, eps: float, v: float, delta: float, tau0: float | None = None, axis: int = -1
) -> Estimate:
    """Catoni's M-estimator with an influence function of order 1 + eps, for laws with a mean but perhaps no variance.

    Use it where a centred moment of order below 2 is known: its constants are by far the smallest of the estimators for that
    case. Where the variance is finite and bounded, `catoni_mean` is narrower. It takes about forty times `catoni_mean`'s time.

    Parameters
    ----------
    x
        The sample, or a batch along ``axis``.
    eps, v
        E|x - mean|^(1+eps) <= v with 0 < eps <= 1.
    delta
        The bounds hold with probability at least 1 - delta.
    tau0
        A free number > 0 of the theorem. None: the one that makes the bound narrowest; it depends on n, eps and delta alone, so
        the guarantee is untouched.
    axis
        Where the values of one sample lie.

    Guarantee
    ---------
    With L = log(2/delta), C = b_p(1 + eps) and D = ((1+eps)/eps) ((1+tau0)^((1+eps)/eps) / tau0^(1/eps)) C^(1/eps), if n > D L then
    with probability at least 1 - delta |value - mean| is at most (1+tau0) (1+eps)^(1/2) (1-eps)^(1/(1+eps)-1/2) v^(1/(1+eps))
    (L/n)^(eps/(1+eps)) / (1 - D L/n)^(eps/(1+eps)). Smaller samples are refused. Must know eps and v.

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
    eps, v, delta = check_order("eps", eps, 0.0, 1.0), check_positive("v", v), check_delta(delta)
    matrix, shape = rows(x, axis)
    n = matrix.shape[1]
    tuned = tuning(n, log_over(2.0, delta), eps, tau0)
    scale = v ** (1.0 / (1.0 + eps))
    value = row_roots(matrix, np.full(len(matrix), tuned.alpha / scale), order=1.0 + eps, factor=b_p(1.0 + eps))
    width = tuned.width * scale
    return Estimate(
        value=shaped(value, shape),
        lower=shaped(value - width, shape),
        upper=shaped(value + width, shape),
        delta=delta,
        assumed=f"E|x - mean|^{1.0 + eps:g} <= {v:g} (Bhatt et al.)",
        n=n,
    )


class Tuning(NamedTuple):
    """Numbers of the theorem for v = 1; the scale of the data is v^(1/(1+eps))."""

    alpha: float
    """Divide it by the scale."""
    width: float
    """Multiply it by the scale."""
    tau0: float


def tuning(n: int, level: float, eps: float, tau0: float | None = None) -> Tuning:
    """alpha and width for n values and L = ``level``; refuses samples that are too small."""
    order = 1.0 + eps
    c = b_p(order)
    share = level / n
    # D of the theorem is least at tau0 = 1/eps, so that decides whether any tau0 will do.
    if tau0 is None:
        tau = _narrowest(share, eps, c) if share * _d(1.0 / eps, eps, c) < 1.0 else 1.0 / eps
    else:
        tau = check_positive("tau0", tau0)
    rest = 1.0 - share * _d(tau, eps, c)
    if rest <= 0.0:
        least = _least(level * _d(tau, eps, c))
        ways = f" (tau0 = 1/eps needs {_least(level * _d(1.0 / eps, eps, c))})" if tau0 is not None else ""
        raise InvalidInput(
            f"the sample has {n} values, and the bound of order {order:g} needs {least}{ways}: pass more values, or a larger delta"
        )
    power = eps / order
    alpha = (eps * c) ** (-1.0 / order) * share ** (1.0 / order) * rest**power
    width = (1.0 + tau) * math.sqrt(order) * (1.0 - eps) ** (1.0 / order - 0.5) * (share / rest) ** power
    return Tuning(alpha, width, tau)


def _d(tau: float, eps: float, c: float) -> float:
    """D of the theorem; infinite where it is no double."""
    try:
        return float((1.0 + eps) / eps * (1.0 + tau) * ((1.0 + tau) / tau * c) ** (1.0 / eps))
    except OverflowError:
        return math.inf


def _least(bound: float) -> str:
    """The least whole number above a bound, for a message."""
    return f"{math.floor(bound) + 1}" if bound < 2**63 else f"more than {min(bound, 1.7e308):.3g}"


def _narrowest(share: float, eps: float, c: float) -> float:
    """The tau0 of the least width: the zero of its derivative, where share D = (1+eps) tau0 / (1+tau0), left of 1/eps."""
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
