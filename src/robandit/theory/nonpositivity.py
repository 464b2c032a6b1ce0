"""A check of AdaR-UCB's assumption for a law, and a test of it on a sample."""

from __future__ import annotations

from typing import Any, Literal

from robandit import diagnostics
from robandit.diagnostics.assumption import Nonpositivity
from robandit.laws import Law, Verdict
from robandit.laws.median import law_median
from robandit.validation import invalid, text


def truncated_nonpositivity(
    law_or_sample: Any, about: float | Literal["median"] = 0.0, *, confidence: float | None = None
) -> Verdict | Nonpositivity:
    """Return whether E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0. Laws are decided, samples are tested.

    AdaR-UCB assumes this for the best arm about 0; centred policies assume it about the arm's median.

    Parameters
    ----------
    law_or_sample
        A law, or independent values of one arm.
    about
        The point, or ``"median"``.
    confidence
        For samples only. A true assumption is contradicted with probability at most 1 - confidence. None: 0.99.

    Returns
    -------
    `Verdict` for a law, true if the assumption holds; `Nonpositivity` for a sample, true if the sample does not contradict it.

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
        return diagnostics.truncated_nonpositivity(law_or_sample, about, 0.99 if confidence is None else confidence)
    if confidence is not None:
        raise invalid("confidence", confidence, "None for a law, which is decided exactly", hint="omit it")
    if isinstance(about, str):
        if text(about, "about") != "median":
            raise invalid("about", about, "a finite number, or 'median'")
        about = law_median(law_or_sample)
    return law_or_sample.truncated_nonpositivity(about)
