"""The ends of an interval of rewards, taken from a problem."""

from __future__ import annotations

import math
from typing import Any

from robandit.errors import NotApplicable


def ends_of(problem: Any, owner: str, *, low: bool = True) -> tuple[float, float]:
    """Return the ends of the support of all rewards. Raise `NotApplicable` if the upper end is infinite (``low``: or the lower)."""
    lowest = min(float(law.support[0]) for law in problem.reward_laws)
    highest = max(float(law.support[1]) for law in problem.reward_laws)
    for name, end, needed in (("lower", lowest, low), ("upper", highest, True)):
        if needed and not math.isfinite(end):
            rule = "it must be finite: take another policy"
            raise NotApplicable(f"{owner} needs {name}, which is {end:g} on this problem, and {rule}")
    return lowest, highest
