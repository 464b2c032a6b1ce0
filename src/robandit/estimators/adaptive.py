"""The trimmed mean of AdaR-UCB, whose threshold comes from the data, with its confidence bounds."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, NoThresholdError
from robandit.estimators.estimate import (
    Estimate,
    Number,
    check_choice,
    check_delta,
    check_order,
    check_positive,
    log_over,
    rows,
    shaped,
)
from robandit.estimators.likelihood import row_bounds
from robandit.estimators.row_moments import row_means, row_medians, row_sds, trimmed
from robandit.estimators.threshold import C, row_thresholds
from robandit.kernel.types import Floats

__all__ = ["adaptive_trimmed_mean", "lemma_2", "theorem_6"]

CENTRED = 3.0  # values of X' per c L below which a centred bound is refused: see the docstring


def adaptive_trimmed_mean(
    x: ArrayLike,
    *,
    delta: float,
    seed: int | None = None,
    eps: float | None = None,
    u: float | None = None,
    bonus: Literal["paper", "tight", "likelihood"] = "paper",
    center: Literal["median"] | None = None,
    axis: int = -1,
) -> Estimate:
    """A mean trimmed at a threshold that the data choose: nothing about the tails must be known.

    Half of the sample (X') gives the threshold, the other half (X) the trimmed mean. Use it for an upper bound on values whose
    large ones are mostly negative or evenly spread: negated latencies, costs, losses, symmetric noise. Not for revenue and other
    right-skewed values: the bound then fails, and silently (give ``eps`` and ``u``, or use another estimator). For a mean far
    from zero, or positive, use ``center="median"``.

    Parameters
    ----------
    x
        The sample, or a batch along ``axis``.
    delta
        The bounds hold with probability at least 1 - delta.
    seed
        How X and X' are split. None: alternate values, X first; then the order of the input must not depend on its values (sorted
        data break the bound). An integer: after a shuffle with this seed, the same for every sample of a batch. With
        an odd number X gets one more; none is dropped.
    eps, u
        Where a bound E|x|^(1+eps) <= u is known, the answer is two-sided. Both or none; not with ``center`` or ``bonus``.
    bonus
        Of the one-sided bound. ``"paper"``: 10 M L / N. ``"tight"``: 14 M L / (3 (N - 1)), the same inequality
        before rounding. ``"likelihood"``: the largest mean whose Kullback-Leibler distance from X is allowed, the narrowest.
    center
        ``"median"``: work on x minus the median of X', and add it again.
    axis
        Where the values of one sample lie.

    Returns
    -------
    An `Estimate`; ``threshold`` is M (about the median, if centred) and ``share_trimmed`` the share of X above it.

    Raises
    ------
    NoThresholdError
        X' has too few non-zero values for this delta; with ``center``, too few values.

    Guarantee
    ---------
    With N the size of X and L = log(1/delta'). One theorem answers; ``assumed`` says which.

    - default, Lemma 2 with delta' = delta/2: mean <= value + sqrt(2 V L / N) + bonus, if E[x 1{|x| > M}] <= 0 for
      all M >= 0 (truncated non-positivity; it implies a mean <= 0). Must know nothing else. There is no lower bound.
    - ``bonus="likelihood"``, delta' = delta (project's own; from the concentration of KLinf for bounded laws): same assumption.
    - ``center="median"``: as these two, with the assumption about the sample median m of X': E[(x-m) 1{|x-m| > M}] <= 0. Proved
      where it holds for that m. For a symmetric law with one peak it holds when m is not below the centre, which is half of all
      samples; otherwise something is missed that grows with the share of values above M, and with few values per c L coverage
      falls to one half. So X' must have at least 3 c L values (n >= 106 at delta = 0.05, likelihood). From there on it is
      measured, not proved (tests/estimators/test_centred.py: Gaussian, Student 1.2 and negated Pareto 1.2, delta = 0.2 to 0.01).
    - with eps and u, Theorem 6 with delta' = delta/4: |value - mean| <= 5.6 u^(1/(1+eps)) (L/N)^(eps/(1+eps)), N the smaller half.
      Must know eps and u; nothing is assumed about the skew.

    Examples
    --------
    >>> import numpy as np
    >>> from robandit.estimators import adaptive_trimmed_mean
    >>> latency = 1.0 + np.random.default_rng(0).pareto(1.5, 10_000)  # mean 3
    >>> estimate = adaptive_trimmed_mean(-latency, delta=0.05, bonus="likelihood")
    >>> estimate.lower, round(estimate.upper, 3)
    (-inf, -2.384)

    References
    ----------
    G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed bandits.
    COLT 2024, PMLR 247, Lemma 2 and Theorem 6. For the likelihood bound: J. Honda, A. Takemura, Non-asymptotic analysis of a new
    bandit algorithm for semi-bounded rewards, JMLR 2015; A. Garivier, H. Hadiji, P. Menard, G. Stoltz, KL-UCB-switch, JMLR 2022.
    """
    delta = check_delta(delta)
    check_choice("bonus", bonus, ("paper", "tight", "likelihood"))
    check_choice("center", center, (None, "median"))
    if (eps is None) != (u is None):
        raise InvalidInput(f"eps = {eps!r} and u = {u!r}: give both for a two-sided bound, or none of them")
    if eps is not None:
        eps, u = check_order("eps", eps, 0.0, 1.0), check_positive("u", u)
        if center is not None or bonus != "paper":
            raise InvalidInput(
                f"center = {center!r} and bonus = {bonus!r} belong to the one-sided bound, eps and u to the two-sided one: "
                "leave out one of the two pairs"
            )
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
        raise InvalidInput(f"seed = {seed!r} must be an integer >= 0, or None to split the sample as it stands")

    matrix, shape = rows(x, axis, least=3)  # X' needs one value, and a variance needs two
    n = matrix.shape[1]
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    body = np.ascontiguousarray(matrix[:, order[0::2]])
    other = np.ascontiguousarray(matrix[:, order[1::2]])
    middle = np.zeros(len(matrix))
    if center is not None:
        middle = row_medians(other)
        with np.errstate(over="ignore"):
            body = body - middle[:, None]
            other = other - middle[:, None]
        if not (np.isfinite(body).all() and np.isfinite(other).all()):
            raise InvalidInput(
                "a value minus the median is beyond the largest double: divide the sample by a constant first"
            )
    parts = 4.0 if eps is not None else 1.0 if bonus == "likelihood" else 2.0
    level = log_over(parts, delta)
    if center is not None and other.shape[1] < CENTRED * C * level:
        needed = 2 * math.ceil(CENTRED * C * level)
        raise NoThresholdError(
            f"the sample has {n} values: a bound about the median needs at least {needed} at delta = {delta:g}; pass more "
            "values, a larger delta, or center=None"
        )
    thresholds = row_thresholds(other, level, parts=parts)
    kept = trimmed(body, thresholds)
    means = row_means(kept)
    lower = np.full(len(matrix), -math.inf)
    if eps is not None and u is not None:
        width = theorem_6(level, other.shape[1], eps, u)
        lower, upper = means - width, means + width
        assumed = f"E|x|^{1.0 + eps:g} <= {u:g} (Theorem 6)"
    else:
        upper = middle + _upper(kept, means, thresholds, level, bonus)
        about = "" if center is None else " about the median"
        assumed = f"truncated non-positivity{about} ({'likelihood' if bonus == 'likelihood' else 'Lemma 2'})"
    return Estimate(
        value=shaped(middle + means, shape),
        lower=shaped(lower, shape),
        upper=shaped(upper, shape),
        delta=delta,
        assumed=assumed,
        n=n,
        share_trimmed=shaped((np.abs(body) > thresholds[:, None]).mean(axis=1), shape),
        threshold=shaped(thresholds, shape),
    )


def _upper(kept: Floats, means: Floats, thresholds: Floats, level: float, bonus: str) -> Floats:
    """The one-sided bound of the trimmed mean's expectation, which is at least the mean under the assumption."""
    n = kept.shape[1]
    if bonus == "likelihood":
        # P(N KLinf >= y) <= e (N + 2) exp(-y) for laws on a bounded interval.
        return row_bounds(kept, thresholds, (level + 1.0 + math.log(n + 2.0)) / n)
    upper: Floats = means + lemma_2(level, n, bonus, row_sds(kept, means), thresholds)
    return upper


def lemma_2(level: float, n: int, bonus: str, sd: Number, threshold: Number) -> Number:
    """sqrt(2 V L / N) + bonus M L / N."""
    reach = 10.0 * level / n if bonus == "paper" else 14.0 * level / (3.0 * (n - 1.0))
    return sd * math.sqrt(2.0 * level / n) + reach * threshold


def theorem_6(level: float, n: int, eps: float, u: float) -> float:
    """5.6 u^(1/(1+eps)) (L/N)^(eps/(1+eps))."""
    order = 1.0 / (1.0 + eps)
    return float(5.6 * u**order * (level / n) ** (eps * order))
