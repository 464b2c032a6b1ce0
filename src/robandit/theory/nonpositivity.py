"""The assumption of AdaR-UCB, checked for a law or tested on a sample."""

from __future__ import annotations

from typing import Any, Literal

from robandit import diagnostics
from robandit.diagnostics.assumption import Nonpositivity
from robandit.laws import Law, Verdict
from robandit.laws.median import law_median
from robandit.validation import invalid


def truncated_nonpositivity(
    law_or_sample: Any, about: float | Literal["median"] = 0.0, *, confidence: float | None = None
) -> Verdict | Nonpositivity:
    """Return whether E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0: decided for a law, tested for a sample.

    AdaR-UCB assumes this of the best arm about 0, and centred policies about its median.

    Parameters
    ----------
    law_or_sample
        A law, or independent values of one arm.
    about
        The point, or ``"median"``.
    confidence
        For a sample only: a true assumption is contradicted with probability at most 1 - confidence. None: 0.99.

    Returns
    -------
    A verdict that is true where the assumption holds (law: `Verdict`) or is not contradicted (sample: `Nonpositivity`).

    Examples
    --------
    >>> from robandit.laws import StudentT
    >>> from robandit.theory import truncated_nonpositivity
    >>> law = StudentT(dof=1.5, loc=3.0)
    >>> bool(truncated_nonpositivity(law)), bool(truncated_nonpositivity(law, "median"))
    (False, True)
    >>> print(truncated_nonpositivity(law.sample(2000, seed=0)))
    about 0: CONTRADICTED (...)
    """
    if not isinstance(law_or_sample, Law):
        options = {} if confidence is None else {"confidence": confidence}
        return diagnostics.truncated_nonpositivity(law_or_sample, about, **options)
    if confidence is not None:
        raise invalid("confidence", confidence, "None for a law, which is decided exactly", hint="leave it out")
    if isinstance(about, str):
        if about != "median":
            raise invalid("about", about, "a finite number, or 'median'")
        about = law_median(law_or_sample)
    return law_or_sample.truncated_nonpositivity(about)
