"""Slow functions of time for policies that are given one: f, which grows, and g, which falls.

f is chosen by a word, as a function of ``level = log t``:

- ``"log"``: log t, from t = 3;
- ``"log_squared"``: (log t)^2, from t = 3;
- ``"log_log"``: log log t, from t = 16;
- ``"corollary"``: exp(sqrt(log log t) / 2) / 2, from t = 3.

Before that t, f has its value there. So the first three are above 1 at all times, the last is from t = 929. The corollary is
that of Ashutosh et al. (2021) with Phi = log t and c0 = 1/2.

g is a number in (0, 1), the same at all times, or the corollary's, ``g(t) = (log log t)^(-1/2)``, at most 1 (t <= 15).
"""

from __future__ import annotations

import math
from typing import Any, Literal

from robandit.errors import InvalidInput
from robandit.policies.base import check_number

__all__ = [
    "INPUTS",
    "LOG",
    "LOG_LOG",
    "LOG_SQUARED",
    "Growth",
    "check_decay",
    "check_growth",
    "decay",
    "decay_number",
    "growth",
    "growth_kind",
    "steepest",
]

INPUTS = "f and g are inputs; choosing them well would require knowing eps and u."
"""Footnote of the policies that use them."""

Growth = Literal["log", "log_squared", "log_log", "corollary"]
LOG, LOG_SQUARED, LOG_LOG, COROLLARY = 0, 1, 2, 3
_KINDS = {"log": LOG, "log_squared": LOG_SQUARED, "log_log": LOG_LOG, "corollary": COROLLARY}
FIRST = math.log(3.0)
FIRST_LOG_LOG = math.log(16.0)


def check_growth(owner: str, f: Any, *, words: tuple[str, ...] = tuple(_KINDS)) -> None:
    """Raise `InvalidInput` unless f is one of these words."""
    if f not in words:
        raise InvalidInput(f"{owner}: f = {f!r} must be one of {', '.join(map(repr, words))}")


def check_decay(owner: str, g: Any) -> None:
    """Raise `InvalidInput` unless g is a number in (0, 1) or the word "corollary"."""
    if isinstance(g, str):
        if g != "corollary":
            raise InvalidInput(f"{owner}: g = {g!r} must be 'corollary' or a number > 0 and < 1")
    else:
        check_number(owner, "g", g, above=0.0, below=1.0)


def growth_kind(f: Growth) -> int:
    """The number that stands for the word in compiled code."""
    return _KINDS[f]


def decay_number(g: float | Literal["corollary"]) -> float:
    """The number that stands for g in compiled code: 0 for the corollary's."""
    return 0.0 if isinstance(g, str) else float(g)


def growth(kind: int, level: float) -> float:
    """f(t) at ``level = log t``."""
    late = max(level, FIRST)
    if kind == LOG:
        return late
    if kind == LOG_SQUARED:
        return late * late
    if kind == LOG_LOG:
        return math.log(max(level, FIRST_LOG_LOG))
    return 0.5 * math.exp(0.5 * math.sqrt(math.log(late)))


def steepest(kind: int, low: float, high: float) -> float:
    """The largest derivative of f by the level between two levels. Only log_squared is convex; the others are concave."""
    late = max(low, FIRST)
    if kind == LOG:
        return 1.0
    if kind == LOG_SQUARED:
        return 2.0 * max(high, FIRST)
    if kind == LOG_LOG:
        return 1.0 / max(low, FIRST_LOG_LOG)
    root = math.sqrt(math.log(late))
    return 0.125 * math.exp(0.5 * root) / (late * root)


def decay(fixed: float, level: float) -> float:
    """g(t) at ``level = log t``; ``fixed`` is 0 for the corollary's."""
    if fixed > 0.0:
        return fixed
    return 1.0 / math.sqrt(max(math.log(max(level, 1.0)), 1.0))
