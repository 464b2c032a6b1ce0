"""The slow functions of time in R-UCB: f grows and g falls.

f is chosen by name, as a function of ``level = log t``: ``"log"`` is log t, ``"log_squared"`` is (log t)^2, ``"log_log"`` is log
log t, and ``"corollary"`` is exp(sqrt(log log t) / 2) / 2, the function of Ashutosh et al. (2021) with Phi = log t and c0 = 1/2.
Before t = 3 (log_log: 16) f is constant. So only ``"corollary"`` can be below 1, until t = 929. g is a constant in (0, 1), or the
corollary's ``g(t) = (log log t)^(-1/2)``, which is 1 for t <= 15.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from robandit.policies._parts.records import params_of
from robandit.validation import choice, within

INPUTS = "f and g are inputs; to choose them well, one would have to know eps and u."
"""Footnote of the policies that use f and g."""

Growth = Literal["log", "log_squared", "log_log", "corollary"]
LOG, LOG_SQUARED, LOG_LOG, COROLLARY = 0, 1, 2, 3
_KINDS = {"log": LOG, "log_squared": LOG_SQUARED, "log_log": LOG_LOG, "corollary": COROLLARY}
FIRST = math.log(3.0)
KINK = math.log(16.0)  # where log_log begins to grow


class Growing:
    """Base class of the policies with a parameter f and, for some, g."""

    def validate(self: Any) -> None:
        choice(self.f, "f", _KINDS, owner=type(self).__name__)
        if hasattr(self, "g") and self.g != "corollary":
            owner, hint = type(self).__name__, "or pass 'corollary'"
            within(self.g, "g", 0.0, 1.0, open_low=True, open_high=True, owner=owner, hint=hint)

    def params(self: Any) -> Any:
        return params_of(f=growth_kind(self.f), g=decay_number(getattr(self, "g", 0.0)))


def growth_kind(f: Growth) -> int:
    """Return the number that stands for f in compiled code."""
    return _KINDS[f]


def decay_number(g: float | Literal["corollary"]) -> float:
    """Return the number that stands for g in compiled code, which is 0 for the corollary's g."""
    return 0.0 if isinstance(g, str) else float(g)


def growth(kind: int, level: float) -> float:
    """Return f(t) at ``level = log t``."""
    late = max(level, FIRST)
    if kind == LOG:
        return late
    if kind == LOG_SQUARED:
        return late * late
    if kind == LOG_LOG:
        return math.log(max(level, KINK))
    return 0.5 * math.exp(0.5 * math.sqrt(math.log(late)))


def steepest(kind: int, low: float, high: float) -> float:
    """Return the largest derivative of f with respect to the level between two levels. Only log_squared is convex."""
    late = max(low, FIRST)
    if kind == LOG:
        return 1.0
    if kind == LOG_SQUARED:
        return 2.0 * max(high, FIRST)
    if kind == LOG_LOG:
        return 1.0 / max(low, KINK)
    root = math.sqrt(math.log(late))
    return 0.125 * math.exp(0.5 * root) / (late * root)


def decay(fixed: float, level: float) -> float:
    """Return g(t) at ``level = log t``. ``fixed`` is g, or 0 for the corollary's g."""
    if fixed > 0.0:
        return fixed
    return 1.0 / math.sqrt(max(math.log(max(level, 1.0)), 1.0))
