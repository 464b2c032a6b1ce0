"""What a law's check of truncated non-positivity found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Whether E[(X - about) 1{|X - about| > M}] <= 0 for every M >= 0.

    ``how`` is "exact" when the answer follows from the law's form, "numeric" when it was checked on a grid of M and
    for the tails. When the statement fails, ``worst`` is an M where it does and ``excess`` the expectation there. A
    verdict is true exactly when the statement holds.
    """

    holds: bool
    how: Literal["exact", "numeric"]
    reason: str
    worst: float | None = None
    excess: float | None = None

    def __bool__(self) -> bool:
        """Whether the statement holds."""
        return self.holds
