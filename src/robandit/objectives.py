"""What is minimised or maximised: the mean, a quantile, or the share of rewards beyond a limit."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from robandit import validation

RULE = '"mean", a quantile from "p1" to "p99.9", or a limit such as "within:2.0"'
_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
_WITHIN = re.compile(r"within:([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)")


class Objective(NamedTuple):
    """An objective. One of ``q`` and ``limit`` is None, or both are: the mean.

    Quantiles and limits are those of rewards as the user sends them, so the sign of costs is that of costs.
    """

    text: str = "mean"
    q: float | None = None
    """The level of the quantile, in (0, 1)."""
    limit: float | None = None
    """A cost above it, or a reward below it, is beyond the limit. The share of those is minimised."""

    def is_beyond(self, value: float, *, minimize: bool) -> bool:
        """Return whether a reward is beyond the limit."""
        assert self.limit is not None
        return value > self.limit if minimize else value < self.limit


MEAN = Objective()


def objective_from(text: Any, name: str = "objective") -> Objective:
    """Return the objective that a text names. The same objective has one spelling in ``text``."""
    if text == MEAN.text and isinstance(text, str):
        return MEAN
    given = validation.text(text, name, RULE)
    quantile, within = _QUANTILE.fullmatch(given), _WITHIN.fullmatch(given)
    percent = float(quantile[1]) if quantile else 0.0
    if 1.0 <= percent <= 99.9:
        return Objective(f"p{percent:g}", q=round(percent / 100.0, 5))
    limit = float(within[1]) if within else math.inf
    if abs(limit) <= 1e150:
        return Objective(f"within:{limit!r}", limit=limit)
    raise validation.invalid(name, text, RULE)
