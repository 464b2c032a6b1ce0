"""The trimmed mean of AdaR-UCB, whose threshold comes from the data, with its confidence bounds."""

from __future__ import annotations

import math
import warnings
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import AssumptionWarning, InvalidInput, NoThresholdError
from robandit.estimators.estimate import Estimate, Number, bounded, given_pair, log_over, moment_order, rows
from robandit.estimators.formulas.likelihood import proved_exponent
from robandit.estimators.formulas.nonpositivity import judge
from robandit.estimators.formulas.threshold import C
from robandit.estimators.likelihood import row_bounds
from robandit.estimators.row_moments import row_means, row_medians, row_sds, trimmed
from robandit.estimators.threshold import row_thresholds
from robandit.hints import guided
from robandit.kernel.types import Floats
from robandit.validation import choice, flag, invalid, positive, probability
from robandit.validation import seed as valid_seed

CENTRED = 3.0  # values of X' per c L below which a centred bound is rejected; the docstring has the reason
RISK = 0.01  # the largest probability of a false AssumptionWarning
MOST_TESTED = 100_000  # values; the test sorts them, which for longer samples would take longer than the estimate


@guided
def adaptive_trimmed_mean(
    x: ArrayLike,
    *,
    delta: float = 0.05,
    seed: int | None = None,
    eps: float | None = None,
    u: float | None = None,
    bonus: Literal["paper", "tight", "likelihood"] = "paper",
    center: Literal["median"] | None = None,
    warn: bool = True,
    axis: int = -1,
) -> Estimate:
    """A mean trimmed at a threshold that the data choose; it needs no knowledge about the tails.

    Half of the sample (X') gives the threshold, the other half (X) the trimmed mean. Use it for an upper bound if large values
    are mostly negative or symmetric: negated latencies, costs, losses. For revenue and other right-skewed values the bound fails
    (give ``eps`` and ``u``, or use another estimator); an `AssumptionWarning` says so if the sample shows it. For a mean that is
    positive or far from zero, use ``center="median"``. The estimate's ``threshold`` is M (about the median, if centred).
    `NoThresholdError` is raised if X' has too few non-zero values for this delta or, with ``center``, too few values.

    Parameters
    ----------
    seed
        Sets the split into X and X'. None: values alternate, X first. The order must then not depend on the values (sorted data
        break the bound). An integer: split after a shuffle with this seed, one for the whole batch. X gets the odd value.
    eps, u
        A known bound E|x|^(1+eps) <= u makes the answer two-sided. Give both or neither, and neither with ``center`` or ``bonus``.
    bonus
        Form of the one-sided bound. ``"paper"``: 10 M L / N. ``"tight"``: 14 M L / (3 (N - 1)), the same inequality before
        rounding. ``"likelihood"``: the largest mean within an allowed Kullback-Leibler distance from X, which is the narrowest.
    center
        ``"median"``: subtract the median of X' first and add it back at the end.
    warn
        Test the sample, unless eps and u are given, as `robandit.diagnostics.truncated_nonpositivity` does: at most 100,000 evenly
        spaced values. This may take several times as long as the estimate. For laws that are symmetric about the point (0 or, with
        one peak, the median) or lie at or below it, a call warns with probability at most 1 %, for a batch as for one sample.

    Guarantee
    ---------
    Let N be the size of X and L = log(1/delta'). One of these theorems applies, and ``assumed`` names it.

    - Default, Lemma 2 with delta' = delta/2: mean <= value + sqrt(2 V L / N) + bonus, if E[x 1{|x| > M}] <= 0 for all M >= 0
      (truncated non-positivity, which implies a mean <= 0). Requires no other knowledge. There is no lower bound.
    - ``bonus="likelihood"``, delta' = delta (ours; from the concentration of KLinf for bounded laws): same assumption.
    - ``center="median"``: like the two cases above, with the assumption about the sample median m of X': E[(x-m) 1{|x-m| > M}] <=
      0. Proved if this holds for that m. For a symmetric law with one peak it holds if m is not below the centre, as for half of
      all samples. Otherwise the bound is too low by an amount that grows with the share of values above M. With few values per c L
      coverage then is one half. So X' must have at least 3 c L values (n >= 106 at delta = 0.05, likelihood). Then coverage is
      measured, not proved (tests/estimators/test_centred.py: Gaussian, Student 1.2, negated Pareto 1.2, delta = 0.2 to 0.01).
    - With eps and u, Theorem 6 with delta' = delta/4: |value - mean| <= 5.6 u^(1/(1+eps)) (L/N)^(eps/(1+eps)), where N is the
      size of the smaller half. Requires eps and u, and assumes nothing about the skew.

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
    delta = probability(delta, "delta")
    bonus = choice(bonus, "bonus", ("paper", "tight", "likelihood"))
    center = choice(center, "center", (None, "median"))
    moment = (moment_order(eps), positive(u, "u")) if given_pair(eps=eps, u=u) else None
    if moment:
        for name, value, default in (("bonus", bonus, "paper"), ("center", center, None)):
            if value != default:
                hint = "leave out one: eps and u belong to the two-sided bound"
                raise invalid(name, value, f"{default!r} with eps and u", hint=hint)
    seed = valid_seed(seed)
    warn = flag(warn, "warn")

    matrix, shape = rows(x, axis, least=3)  # X' needs one value, and a variance needs two
    n = matrix.shape[1]
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    body = np.ascontiguousarray(matrix[:, order[0::2]])
    other = np.ascontiguousarray(matrix[:, order[1::2]])
    middle = np.zeros(len(matrix))
    if center is not None:
        middle = row_medians(other)
        body, other = _centred(body, middle), _centred(other, middle)
    parts = 4.0 if moment else 1.0 if bonus == "likelihood" else 2.0
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
    about = "" if center is None else " about the median"
    assumed = f"truncated non-positivity{about} ({'likelihood' if bonus == 'likelihood' else 'Lemma 2'})"
    if moment:
        width = theorem_6(level, other.shape[1], *moment)
        lower, upper = means - width, means + width
        assumed = f"E|x|^{1.0 + moment[0]:g} <= {moment[1]:g} (Theorem 6)"
    elif bonus == "likelihood":
        upper = middle + row_bounds(kept, thresholds, proved_exponent(level, kept.shape[1]))
    else:
        upper = middle + (means + lemma_2(level, kept.shape[1], bonus, row_sds(kept, means), thresholds))
    share = (np.abs(body) > thresholds[:, None]).mean(axis=1)
    if warn and not moment:
        _warn_if_contradicted(matrix, "median" if center else 0.0)
    more = {"assumed": assumed, "n": n, "share_trimmed": share, "threshold": thresholds}
    return bounded(middle + means, lower, upper, shape, delta=delta, **more)


def _warn_if_contradicted(matrix: Floats, about: float | Literal["median"]) -> None:
    """Warn if a row contradicts the assumption. The level RISK is shared by the rows."""
    step = -(-matrix.shape[1] // MOST_TESTED)
    for row in np.flatnonzero((matrix > 0.0).any(axis=1) if about == 0.0 else np.ones(len(matrix))):
        result = judge(matrix[row, ::step], about, RISK / len(matrix))
        if not result:
            sample = f"sample {row} of the batch" if len(matrix) > 1 else "the sample"
            other = "center='median', " if about == 0.0 else ""
            way_out = f"negate costs, or use {other}eps and u, or another estimator"
            warnings.warn(
                f"{sample} contradicts truncated non-positivity {result.point}, so the upper bound may be too low "
                f"({result.evidence}): {way_out}",
                AssumptionWarning,
                stacklevel=4,
            )
            return


def _centred(values: Floats, middle: Floats) -> Floats:
    with np.errstate(over="ignore"):
        out: Floats = values - middle[:, None]
    if not np.isfinite(out).all():
        raise InvalidInput("a value minus the median exceeds the largest double: divide the sample by a constant first")
    return out


def lemma_2(level: float, n: int, bonus: str, sd: Number, threshold: Number) -> Number:
    """Return sqrt(2 V L / N) + bonus M L / N."""
    reach = 10.0 * level / n if bonus == "paper" else 14.0 * level / (3.0 * (n - 1.0))
    return sd * math.sqrt(2.0 * level / n) + reach * threshold


def theorem_6(level: float, n: int, eps: float, u: float) -> float:
    """Return 5.6 u^(1/(1+eps)) (L/N)^(eps/(1+eps))."""
    order = 1.0 / (1.0 + eps)
    return float(5.6 * u**order * (level / n) ** (eps * order))
