"""Asks whether an arm may hide its mean in rare large rewards, which policies that clip residuals do not see.

A calm arm leads, and another arm's rewards reach far to the right: their 99 % quantile (the maximum, if there are few) is at least
``FAR`` times as far above the median as the leader's rewards are wide, and as the 1 % quantile is below the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robandit.diagnostics.costs import has_long_right_tail
from robandit.diagnostics.words import words
from robandit.kernel.types import Floats

TEXT = (
    "{policy} clips rare large rewards, and arm {arm!r} may have them: {many} of the leading arm {leader!r} are close together, "
    "and those of {arm!r} reach far to the {side}. If its mean comes from them, {policy} may stay with a worse arm. LinStudentTS() "
    "does not clip; expect other losses with heavy tails.\n(This warning is issued once per bandit.)"
)
FEW = 4
FAR = 3.0


def hides_gains(samples: Sequence[Floats], leader: int) -> int | None:
    """Return an arm whose rewards (which are maximised) reach far beyond those of a calm leader, or None.

    >>> from robandit.laws import Gaussian, LogNormal
    >>> calm, heavy = Gaussian(1.0, 0.1).sample(500, seed=0), LogNormal(-1.0, 1.5).sample(20, seed=0)
    >>> hides_gains([calm, heavy], 0), hides_gains([calm, -heavy], 0), hides_gains([calm, calm], 0)
    (1, None, None)
    """
    if has_long_right_tail(samples[leader]):
        return None
    low, high = np.quantile(samples[leader], [0.05, 0.95])
    for arm, values in enumerate(samples):
        if arm != leader and len(values) >= FEW:
            least, median, most = np.quantile(
                values, [0.01, 0.5, 0.99], method="inverted_cdf" if len(values) > 100 else "linear"
            )
            if most - median >= FAR * max(0.5 * (high - low), median - least) and most > high:
                return arm
    return None


def gains_text(policy: str, leader: Any, arm: Any, minimize: bool) -> str:
    """Return the text of the warning."""
    many, side = words(minimize).many, "left" if minimize else "right"
    return TEXT.format(policy=policy, leader=leader, arm=arm, many=many, side=side)
