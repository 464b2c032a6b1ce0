"""Which laws are normal."""

from __future__ import annotations

from robandit.laws.base import Law
from robandit.laws.combinators import leaves
from robandit.laws.gaussian import Gaussian

__all__ = ["normal_variance"]


def normal_variance(law: Law) -> float | None:
    """The variance of a normal law, moved and scaled as one likes; None: it is not known to be one."""
    parts = tuple(leaves(law))
    return law.variance if len(parts) == 1 and isinstance(parts[0].law, Gaussian) else None
