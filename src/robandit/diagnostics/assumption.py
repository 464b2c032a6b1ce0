"""Tests whether recorded rewards contradict the assumption of AdaR-UCB.

:mod:`robandit.estimators.formulas.nonpositivity` describes the test.
"""

from __future__ import annotations

from typing import Any, Literal

from robandit.diagnostics.samples import checked_about, sample
from robandit.estimators.formulas.nonpositivity import Nonpositivity, Point, Verdict, judge
from robandit.validation import flag, probability

__all__ = ["Nonpositivity", "Point", "Verdict", "judge", "truncated_nonpositivity"]


def truncated_nonpositivity(
    x: Any, about: float | Literal["median"] = 0.0, confidence: float = 0.99, *, minimize: bool = False
) -> Nonpositivity:
    """Test whether a sample contradicts E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0.

    AdaR-UCB assumes this of the best arm about 0, and centred policies about its median. A law has its own method of this name.

    Parameters
    ----------
    x
        Independent values of one arm, in an order that does not depend on them.
    about
        The point, or ``"median"``.
    confidence
        One minus the largest probability of a false contradiction. It holds for laws at or below the point, and for symmetric laws
        (about the median, only with a single peak). `robandit.estimators.formulas.nonpositivity` describes the test and the other
        laws for which it holds.
    minimize
        Whether the values are costs: then E[(X - about) 1{|X - about| > M}] >= 0 is tested.

    Examples
    --------
    >>> from robandit.laws import Pareto, StudentT
    >>> print(truncated_nonpositivity(StudentT(dof=1.5, loc=3.0).sample(2000, seed=0), "median"))
    about the median (at most 3.181): not contradicted (z = 0.248 against 3.98)
    >>> truncated_nonpositivity(StudentT(dof=1.5, loc=3.0).sample(2000, seed=0)).verdict
    'contradicted'
    >>> truncated_nonpositivity(Pareto(tail=1.5).sample(2000, seed=0), "median").verdict
    'contradicted'
    >>> truncated_nonpositivity(Pareto(tail=1.5).sample(2000, seed=0), "median", minimize=True).verdict
    'not contradicted'

    References
    ----------
    B. Efron. Student's t-test under symmetry conditions. Journal of the American Statistical Association 64, 1969.
    """
    values = sample(x)
    level = 1.0 - probability(confidence, "confidence")
    return judge(values, checked_about(about), level, flag(minimize, "minimize"))
