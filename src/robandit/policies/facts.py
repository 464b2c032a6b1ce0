"""What is known about an algorithm, as data: what it must be told, its bounds, its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from robandit.policies.assumptions import NOTHING, Assumption


class Adaptive(NamedTuple):
    """Whether the estimator of the mean, and the whole algorithm, work without the moments' order eps and bound u (or v)."""

    eps_estimator: bool
    eps_algorithm: bool
    u_estimator: bool
    u_algorithm: bool


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known about an algorithm. Bounds are rates without constants; ``gap`` is an arm's, sums are over suboptimal arms."""

    knows: tuple[str, ...] = ()
    """Names of the parameters that it must be told: it cannot play while one of them is None."""
    anytime: bool = True
    """Whether it works without knowing the horizon."""
    random: bool = False
    """Whether it draws random numbers."""
    assumption: Assumption = NOTHING
    """What its bound assumes beyond its parameters. A string is accepted: an assumption that nothing checks."""
    bound: str = ""
    """Name of its regret bound; empty: not proved."""
    instance: str = ""
    """Instance-dependent bound; empty: none."""
    worst: str = ""
    """Worst-case bound; empty: none."""
    matches: tuple[bool | None, bool | None] = (None, None)
    """Whether the two bounds match the lower bounds of the non-adaptive setting."""
    adaptive: Adaptive | None = None
    citation: str = ""
    row: int = 0
    """Its row in Table 1 of the AdaR-UCB paper, from 1; 0: not in the table."""
    title: str = ""
    """Its name in that table, or here; by default the label."""
    notes: tuple[str, ...] = ()
    """Footnotes: where this differs from what the AdaR-UCB paper prints, and why."""

    def __post_init__(self) -> None:
        """Turn a string into an assumption."""
        if not isinstance(self.assumption, Assumption):
            object.__setattr__(self, "assumption", Assumption(self.assumption, self.assumption))
