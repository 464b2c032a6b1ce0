"""LinTS: Thompson sampling on ridge regression, with a known or an unknown variance of the noise."""

from __future__ import annotations

import math
from typing import Any

from robandit.kernel.types import Floats
from robandit.policies.facts import Facts
from robandit.policies.linear.model import (
    COUNT,
    FREEDOM,
    MEAN,
    NORMAL,
    SQUARES,
    WIDTH,
    Linear,
    dot,
    model,
    ridge_step,
    uncertainty,
)
from robandit.validation import positive


class LinTS(Linear):
    """Draws the mean of each arm at x from the posterior of a normal model with a known variance; the largest draw is chosen.

    Use it as the usual baseline. ``v`` is in units of the reward, so that it has the weaknesses of `LinUCB`.

    Parameters
    ----------
    d, shared
        As in `AdaClipTS`.
    v
        The standard deviation of the noise, above 0.

    Guarantee
    ---------
    Variants with a larger v have regret of order d sqrt(d T) for sub-Gaussian noise; this one is the rule that libraries use.
    Requires the scale of the noise (v). Anytime and randomised. Propensities are computed by integration. Every arm is pulled
    once first.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.linear(arms=3, columns=2, noise=rb.laws.Gaussian(mean=0.0, sd=1.0))
    >>> result = rb.simulate(rb.LinTS(), problem, horizon=1000, replications=10, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * problem.uniform_regret(1000))
    True

    References
    ----------
    S. Agrawal, N. Goyal. Thompson sampling for contextual bandits with linear payoffs. ICML 2013, PMLR 28.
    """

    v: float = 1.0

    use_when = "you want the usual baseline, with random choices"
    about = Facts(random=True, citation="Agrawal, Goyal 2013", source="a secondary source")
    draws = True

    def validate(self) -> None:
        super().validate()
        positive(self.v, "v", owner="LinTS")

    add = staticmethod(ridge_step)

    @staticmethod
    def fill(p: Any, s: Any, arm: int, x: Floats) -> None:
        m = model(p, arm)
        s.draws[arm, MEAN] = dot(s.theta[m], x)
        s.draws[arm, WIDTH] = p.v * math.sqrt(uncertainty(s, m, x))
        s.draws[arm, FREEDOM] = NORMAL


class LinStudentTS(Linear):
    """`LinTS` with a variance of each arm that is learned, too: draws have Student's law.

    Use it if rewards are close to normal, in any unit. With heavy tails, one huge reward widens all draws for long.

    Parameters
    ----------
    d, shared
        As in `AdaClipTS`.

    Guarantee
    ---------
    None known. Requires no prior knowledge. Anytime and randomised. Propensities are computed by integration. Every arm is pulled
    twice first. The variance is (squared residuals + theta' theta) / n, and draws have n degrees of freedom.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.linear(arms=3, columns=2, noise=rb.laws.Gaussian(mean=0.0, sd=1.0), scale=30.0)
    >>> result = rb.simulate(rb.LinStudentTS(), problem, horizon=1000, replications=10, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * problem.uniform_regret(1000))
    True

    References
    ----------
    C. Riquelme, G. Tucker, J. Snoek. Deep Bayesian bandits showdown. ICLR 2018: its linear posterior.
    """

    use_when = "rewards are linear in features, and nearly normal"
    label = "LinStudent-TS"
    about = Facts(random=True, citation="Riquelme, Tucker, Snoek 2018", source="a secondary source")
    draws = True
    first = 2.0

    add = staticmethod(ridge_step)

    @staticmethod
    def fill(p: Any, s: Any, arm: int, x: Floats) -> None:
        m = model(p, arm)
        n = s.arms[m, COUNT]
        s.draws[arm, MEAN] = dot(s.theta[m], x)
        s.draws[arm, WIDTH] = math.sqrt(s.arms[m, SQUARES] / n * uncertainty(s, m, x))
        s.draws[arm, FREEDOM] = n
