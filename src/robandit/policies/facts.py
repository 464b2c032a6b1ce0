"""Facts about an algorithm as data: required parameters, bounds and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from robandit.policies.assumptions import NOTHING, Assumption
from robandit.validation import choice

Source = Literal["the paper", "the authors' code", "a secondary source", "reconstructed", ""]


Late = Literal["counted", "at random", "ignored", ""]


class Adaptive(NamedTuple):
    """Whether the estimator of the mean, and the whole algorithm, work without the moments' order eps and bound u (or v)."""

    eps_estimator: bool
    eps_algorithm: bool
    u_estimator: bool
    u_algorithm: bool


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts about an algorithm. Bounds are rates without constants. ``gap`` belongs to an arm; sums are over suboptimal arms."""

    knows: tuple[str, ...] = ()
    """The names of the required parameters. The algorithm cannot play while one of them is None."""
    anytime: bool = True
    """Whether it works without knowing the horizon."""
    random: bool = False
    """Whether it draws random numbers."""
    assumption: Assumption = NOTHING
    """The assumption of its bound, in addition to its parameters. A string is an assumption that is not checked."""
    bound: str = ""
    """The name of its regret bound; empty if there is no proof."""
    instance: str = ""
    """The instance-dependent bound, or an empty string."""
    worst: str = ""
    """The worst-case bound, or an empty string."""
    matches: tuple[bool | None, bool | None] = (None, None)
    """Whether the two bounds match the lower bounds of the non-adaptive setting."""
    adaptive: Adaptive | None = None
    citation: str = ""
    source: Source = ""
    """What the rule was written from. "the paper": its text. "the authors' code": their public code; the text was not checked. "a
    secondary source": a paper or a public implementation of others. "reconstructed": what is known about it, with constants derived
    again; neither text nor code was checked. Empty: it is our own, or needs no source."""
    late: Late = ""
    """What happens to pulls whose reward is still to come. "counted": they count as pulls that said nothing. "at random": they do
    not count, but once every arm has rewards, choices are random and spread. "ignored": it repeats its choice until a reward
    comes. Empty: what follows from the policy's class."""
    row: int = 0
    """Its row in Table 1 of the AdaR-UCB paper, from 1; 0 if it is not in the table."""
    title: str = ""
    """Its name in that table or in ours; by default the label."""
    notes: tuple[str, ...] = ()
    """Footnotes on differences from the AdaR-UCB paper's table, with the reasons."""

    def __post_init__(self) -> None:
        """Turn a string into an assumption, and check the source."""
        choice(self.source, "source", get_args(Source), owner="Facts")
        if not isinstance(self.assumption, Assumption):
            object.__setattr__(self, "assumption", Assumption(self.assumption, self.assumption))
