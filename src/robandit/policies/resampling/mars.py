"""MARS (Khorasani, Weyer 2023)."""

from __future__ import annotations

import math
from typing import Self

from robandit.policies.assumptions import SYMMETRIC
from robandit.policies.base import Policy, check_whole
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.resampling.signs import LARGEST_LIMIT, Params, Resampled, refuse_beyond

__all__ = ["MARS"]


class MARS(Resampled, Policy):
    """Optimism on means of random subsets: symmetric rewards of unknown size; the forerunner of `RMMUCB`, with a single block.

    The index of an arm is the largest of the means of about t (log t)^2 random subsets of its rewards, each reward being in a
    subset with probability 1/2. It is an exact bound for every symmetric law, but as wide as the mean is uncertain, which heavy
    tails make it: use it where rewards are symmetric and not very heavy, and `RMMUCB` where they are. Not for skewed rewards, and
    not for long runs: time and memory grow as T^2 (log T)^2 and T (log T)^2, 0.3 seconds and 6 MB for T = 2000.

    Parameters
    ----------
    limit
        The most pulls that it makes; a longer horizon is refused, with the time that it would take.

    Guarantee
    ---------
    If every arm is symmetric about its mean, an index from a fixed number of rewards is at least the mean with probability exactly
    ``1 - 1/ceil(1 + t (log t)^2)``. Regret grows as ``sum gap/tau log T``, where tau comes from the moment generating function
    (as Tamas et al. quote Khorasani and Weyer, for resamples of their own number); for heavy tails, which have none, that says
    nothing. Must know: nothing. Anytime up to its limit, random.

    Notes
    -----
    The number of resamples and the treatment of empty subsets are those of `RMMUCB`, of which this is the case of one block, as
    Tamas et al. (2025) have it. A subset keeps its members for the whole run; new rewards join it or not. Late rewards as there.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b"], rb.MARS(), seed=0)
    >>> bandit.update_many(["a", "b"] * 20, [0.1, 1.0, -0.3, 1.2, 0.2, 0.9, 0.0, 1.1] * 5)
    >>> [(round(row["mean"], 6), round(row["index"], 6)) for row in bandit.estimates()]
    [(0.0, 0.12), (1.05, 1.175)]

    References
    ----------
    M. M. Khorasani, E. Weyer. Maximum average randomly sampled: a scale free and non-parametric algorithm for stochastic bandits.
    NeurIPS 2023.
    """

    limit: int = 2000

    columns = ("mean", "index")
    about = Facts(
        random=True,
        assumption=SYMMETRIC,
        bound="that of Khorasani and Weyer",
        instance="sum gap/tau log T",
        matches=(False, None),
        adaptive=Adaptive(True, True, True, True),
        title="MARS",
        notes=(
            "tau comes from the arm's moment generating function: the bound says nothing about heavy tails. It plays at most "
            "`limit` pulls, because a run of T takes T^2 (log T)^2 steps.",
        ),
        citation="Khorasani, Weyer 2023",
    )

    def validate(self) -> None:
        """A limit."""
        check_whole("MARS", "limit", self.limit, 1, LARGEST_LIMIT)

    def prepared(self, horizon: int | None) -> Self:
        """This policy, unless more pulls are asked for than its limit."""
        ready = super().prepared(horizon)
        refuse_beyond(self.label, self.limit, horizon, 1.1e-9 * (horizon or 1) ** 2 * math.log(horizon or 1) ** 2)
        return ready

    def params(self) -> Params:
        """A single block."""
        return Params(1, 0)
