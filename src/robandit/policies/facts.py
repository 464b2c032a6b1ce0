"""What is known about an algorithm, as data: what it must be told, its bounds, its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from robandit.policies.assumptions import NOTHING, Assumption

__all__ = ["Adaptive", "Facts"]


class Adaptive(NamedTuple):
    """Whether the mean's estimator, and the algorithm as a whole, do without the moments' order eps and bound u (or v)."""

    eps_estimator: bool
    eps_algorithm: bool
    u_estimator: bool
    u_algorithm: bool


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known about an algorithm. Bounds are rates: constants are left out, ``gap`` is an arm's, sums are over worse arms."""

    knows: tuple[str, ...] = ()
    """The parameters, by name, without which it cannot play: a policy that has None there must be told."""
    anytime: bool = True
    """Whether it does without the horizon."""
    random: bool = False
    """Whether it draws random numbers."""
    assumption: Assumption = NOTHING
    """What its bound assumes beyond its parameters. A string is accepted: an assumption that nothing checks."""
    bound: str = ""
    """Name of its regret bound; empty: none is proved."""
    instance: str = ""
    """Instance-dependent bound; empty: none."""
    worst: str = ""
    """Worst-case bound; empty: none."""
    matches: tuple[bool | None, bool | None] = (None, None)
    """Whether the two match the lower bounds of the non-adaptive setting."""
    adaptive: Adaptive | None = None
    citation: str = ""
    row: int = 0
    """Where it stands in Table 1 of the AdaR-UCB paper, from 1; 0: it is not there."""
    title: str = ""
    """Its name there, or here."""
    notes: tuple[str, ...] = ()
    """Footnotes: where this differs from what the AdaR-UCB paper prints, and why."""

    def __post_init__(self) -> None:
        """Turn a string into an assumption."""
        if not isinstance(self.assumption, Assumption):
            object.__setattr__(self, "assumption", Assumption(self.assumption, self.assumption))
