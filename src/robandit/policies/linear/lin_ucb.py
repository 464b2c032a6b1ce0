"""LinUCB: an upper confidence bound on ridge regression (Li, Chu, Langford, Schapire 2010)."""

from __future__ import annotations

import math
from typing import Any

from robandit.kernel.types import Floats
from robandit.policies.facts import Facts
from robandit.policies.linear.model import MEAN, WIDTH, Linear, dot, model, ridge_step, uncertainty
from robandit.validation import finite, invalid


class LinUCB(Linear):
    """Ridge regression for each arm; pulls the arm with the largest estimate plus ``alpha`` standard errors.

    Use it as the usual baseline, or if the noise is light-tailed and its scale known. ``alpha`` is in units of the reward: with
    rewards in other units than the noise's, or with heavy tails, it often fails (docs/results/contexts.md).

    Parameters
    ----------
    d, shared
        As in `AdaClipTS`.
    alpha
        The width: a multiple of sqrt(x' P x), at least 0.

    Guarantee
    ---------
    Variants of it have regret of order sqrt(d T) for noise that is sub-Gaussian with a known scale; this one is the rule that
    libraries use. Requires the scale of the noise (alpha). Anytime and deterministic. Every arm is pulled once first.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.linear(arms=3, columns=2, noise=rb.laws.Gaussian(mean=0.0, sd=1.0))
    >>> result = rb.simulate(rb.LinUCB(), problem, horizon=1000, replications=10, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * problem.uniform_regret(1000))
    True

    References
    ----------
    L. Li, W. Chu, J. Langford, R. E. Schapire. A contextual-bandit approach to personalized news article recommendation. WWW 2010.
    """

    alpha: float = 1.0

    use_when = "you want the usual contextual baseline"
    about = Facts(citation="Li, Chu, Langford, Schapire 2010", source="a secondary source")

    def validate(self) -> None:
        super().validate()
        if finite(self.alpha, "alpha", owner="LinUCB") < 0.0:
            raise invalid("alpha", self.alpha, "at least 0", owner="LinUCB")

    add = staticmethod(ridge_step)

    @staticmethod
    def fill(p: Any, s: Any, arm: int, x: Floats) -> None:
        m = model(p, arm)
        s.draws[arm, MEAN] = dot(s.theta[m], x)
        s.draws[arm, WIDTH] = p.alpha * math.sqrt(uncertainty(s, m, x))
