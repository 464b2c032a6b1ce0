"""Asks whether values that are maximised are costs whose sign was forgotten.

The question is asked if no value is below 0, few are 0 (clicks and revenue have many zeros), and most arms have a long right tail:
the 99 % quantile is at least ``LONG`` times as far above the median as the 75 % quantile (uniform 2, normal 3.4, exponential 5.6,
log-normal 9.6), and at least ``SKEWED`` times as far above it as the 1 % quantile is below.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from robandit.diagnostics.profile import Profile
from robandit.kernel.types import Floats

LEAST = 50
LEVELS = 10
LONG = 5.0
SKEWED = 3.0
ZEROS = 0.1  # share of zeros: a latency rounded to 0 is rare, a visitor without a purchase is not

QUESTION = (
    "Are these costs? Then minimise them: minimize=True in Python, --minimize on the command line. No value is negative, and the "
    "right tail is long, as latencies and prices have it. If more is better, ignore this question."
)


def sign_question(arms: Iterable[Profile]) -> str:
    """Return the question about the values of all arms; empty if there is no reason to ask, or the values are minimised."""
    known = [each for each in arms if len(each.values)]
    if any(each.minimize or each.least < 0.0 or np.mean(each.values == 0.0) > ZEROS for each in known):
        return ""
    long = [has_long_right_tail(each.values) for each in known if len(each.values) >= LEAST]
    return QUESTION if 2 * sum(long) > len(long) else ""


def has_long_right_tail(values: Floats) -> bool:
    """Return whether the right tail is long, by the rule of the module.

    >>> from robandit.laws import Gaussian, LogNormal
    >>> has_long_right_tail(LogNormal(mu=3.0, sigma=1.0).sample(1_000, seed=0))
    True
    >>> has_long_right_tail(Gaussian(mean=10.0, sd=2.0).sample(1_000, seed=0))
    False
    """
    low, median, quarter, high = np.quantile(values, [0.01, 0.5, 0.75, 0.99])
    reach = high - median
    if quarter == median or reach < LONG * (quarter - median) or reach < SKEWED * (median - low):
        return False
    return len(np.unique(values)) > LEVELS
