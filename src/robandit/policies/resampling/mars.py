"""MARS (Khorasani, Weyer 2023)."""

from __future__ import annotations

import math
from typing import Any

from robandit.policies._parts.records import params_of
from robandit.policies.assumptions import SYMMETRIC
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.resampling.signs import Resampled


class MARS(Resampled, Policy):
    """UCB policy on means of random subsets, for symmetric rewards of unknown scale: the predecessor of `RMMUCB`, with one block.

    The index of an arm is the largest mean of about t (log t)^2 subsets, which contain each reward with probability 1/2 and keep
    their members for the whole run. The bound is exact for every symmetric law, but as wide as the sample mean is uncertain. Use it
    if rewards are symmetric and not very heavy-tailed; otherwise use `RMMUCB`. Do not use it for skewed rewards or long runs: time
    grows as T^2 (log T)^2 and memory as T (log T)^2 (0.3 seconds and 6 MB for T = 2000).

    Parameters
    ----------
    limit
        The most pulls of a run. A longer horizon is rejected, with an estimate of its time.

    Guarantee
    ---------
    If every arm is symmetric about its mean, an index from a fixed number of rewards is at least the mean with probability exactly
    ``1 - 1/ceil(1 + t (log t)^2)``. Regret grows as ``sum gap/tau log T``, where tau comes from the moment generating function.
    (Tamas et al. quote this from Khorasani and Weyer, whose number of resamples differs.) Heavy tails have no such function, so the
    bound does not apply to them. Requires no prior knowledge. Anytime up to its limit, and randomised.

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

    use_when = "rewards are symmetric, not very heavy-tailed, and few"
    about = Facts(
        random=True,
        assumption=SYMMETRIC,
        bound="that of Khorasani and Weyer",
        instance="sum gap/tau log T",
        matches=(False, None),
        adaptive=Adaptive(True, True, True, True),
        notes=(
            "tau comes from the arm's moment generating function, so the bound does not cover heavy tails. It plays at most "
            "`limit` pulls, because a run of T takes T^2 (log T)^2 steps.",
        ),
        citation="Khorasani, Weyer 2023",
        source="a secondary source",
    )

    def _seconds(self, horizon: int) -> float:
        """Estimate the time of a run."""
        return 1.1e-9 * horizon**2 * math.log(horizon) ** 2

    def params(self) -> Any:
        return params_of(blocks=1, upper=0, limit=self.limit)
