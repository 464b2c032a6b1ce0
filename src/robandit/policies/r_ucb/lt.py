"""R-UCB-LT (Ashutosh, Nair, Kagrecha, Jagannathan 2021), for light tails of unknown scale."""

from __future__ import annotations

import math
from typing import Any

from robandit.policies.assumptions import Assumption
from robandit.policies.classic.ucb1 import COUNT, UCB1
from robandit.policies.facts import Facts
from robandit.policies.index import SLACK, IndexPolicy, slightly_above
from robandit.policies.r_ucb.growth import INPUTS, KINK, LOG_LOG, LOG_SQUARED, Growing, Growth, growth, steepest


class RUCBLT(Growing, IndexPolicy):
    """UCB1 with a width that eventually exceeds the width for any scale, for light tails of unknown scale.

    Use it for light (sub-Gaussian) tails of unknown scale. Do not use it for heavy tails: it relies on the sample mean.

    Parameters
    ----------
    f
        The factor in ``mean + sqrt(f(t) log t / n)``: ``"log_squared"``, ``"log"``, ``"log_log"`` or ``"corollary"`` (see
        :mod:`robandit.policies.r_ucb.growth`). The paper has no default for this policy.

    Guarantee
    ---------
    For sub-Gaussian rewards and T so large that f(T) exceeds their scale, regret grows as the sum over arms of ``f(T) log T /
    gap``. Requires no prior knowledge. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.RUCBLT(f="log"), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.5 * 300)  # uniform play: 300
    True

    References
    ----------
    K. Ashutosh, J. Nair, A. Kagrecha, K. Jagannathan. Bandit algorithms: letting go of logarithmic regret for statistical
    robustness. AISTATS 2021, PMLR 130.
    """

    f: Growth = "log_squared"

    use_when = "tails are light and their scale is unknown: a baseline"
    label = "R-UCB-LT"
    row_length = UCB1.row_length
    about = Facts(
        assumption=Assumption("sub-Gaussian", "sub-Gaussian rewards, and T such that f(T) exceeds their scale"),
        bound="Ashutosh et al., 2021",
        instance="sum f(T)/gap log T",
        citation="Ashutosh, Nair, Kagrecha, Jagannathan 2021",
        source="the paper",
        notes=(INPUTS,),
    )

    add = staticmethod(UCB1.add)
    rewards = staticmethod(UCB1.rewards)
    mean = staticmethod(UCB1.mean)

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return mean + sqrt(f(t) log t / n), with level = log t."""
        return UCB1.mean(p, s, arm) + width(p, s, arm, level)

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return a line above the index: a chord if the width is convex (log_squared), else a tangent, up to log_log's kink."""
        wide = width(p, s, arm, level)
        height = slightly_above(UCB1.mean(p, s, arm), wide)
        if level <= 0.0:
            return height, 0.0, 0.0
        if p.f == LOG_SQUARED:
            until = level * (1.0 + min(0.25, 1.0 / math.sqrt(s.arms[arm, COUNT])))
            return height, (width(p, s, arm, until) - wide) / (until - level) + SLACK * wide / level, until
        slope = 0.5 * wide * (1.0 / level + steepest(p.f, level, level) / growth(p.f, level))
        return height, slope, KINK if p.f == LOG_LOG and level < KINK else math.inf


def width(p: Any, s: Any, arm: int, level: float) -> float:
    """Return sqrt(f(t) log t / n), with level = log t."""
    return math.sqrt(growth(p.f, level) * level / s.arms[arm, COUNT])
