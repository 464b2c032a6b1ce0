"""UCB for normal rewards with unknown means and variances (Cowan, Honda, Katehakis 2018)."""

from __future__ import annotations

import math
from typing import Any

from robandit.policies.assumptions import NORMAL
from robandit.policies.classic.moments_policy import COUNT, MomentsPolicy, mean_of, variance_of
from robandit.policies.facts import Facts
from robandit.policies.index import SLACK, TAKEN

LOG_TWO = math.log(2.0)
WINDOW = 0.1  # growth of the exponent 2 log(t)/(n-2) under one chord, which is then within 0.1% of the width


class NormalUCB(MomentsPolicy):
    """UCB policy on the sample mean and sample variance, which is asymptotically optimal for normal rewards.

    Shifting or scaling the rewards changes no decision. Use it when rewards are close to normal. Otherwise it has no guarantee.

    Guarantee
    ---------
    If all arms are normal, regret grows as the sum over arms of ``2 gap / log(1 + gap^2/variance) log T``, which no policy beats.
    Requires no prior knowledge. Anytime and deterministic. Every arm is pulled three times first. The rule is
    reconstructed: it was not checked against the paper's text.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.Problem([rb.laws.Gaussian(mean=0.0, sd=1.0), rb.laws.Gaussian(mean=1.0, sd=1.0)])
    >>> result = rb.simulate(rb.NormalUCB(), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.1 * 500)  # uniform play: 500
    True

    References
    ----------
    W. Cowan, J. Honda, M. N. Katehakis. Normal bandits of unknown means and variances. J. of Machine Learning Research 18, 2018.
    """

    use_when = "rewards are close to normal"
    label = "Normal UCB"
    about = Facts(
        assumption=NORMAL,
        bound="Cowan et al., 2018",
        instance="sum gap / log(1 + gap^2/variance) log T",
        citation="Cowan, Honda, Katehakis 2018",
        source="reconstructed",
    )

    @staticmethod
    def first(p: Any) -> float:
        return 3.0

    @staticmethod
    def level(p: Any, s: Any) -> float:
        """Return log t, where t is the number of pulls made so far."""
        return math.log(s.pulls[s.pulls.shape[0] - 2 + TAKEN])

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        return mean_of(s.arms[arm]) + width(s, arm, level)

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the tangent while t^(2/(n-2)) <= 2, where the width is concave in the level, then a chord, where it is convex."""
        mean = mean_of(s.arms[arm])
        now = width(s, arm, level)
        value = mean + now + SLACK * (abs(mean) + now)
        rate = 2.0 / (s.arms[arm, COUNT] - 2.0)
        if now == 0.0:
            return value, 0.0, math.inf
        if now == math.inf:
            return now, 0.0, math.inf
        if rate * level <= LOG_TWO:
            # d/dl sqrt(e^(rl) - 1) = r e^(rl) / (2 (e^(rl) - 1)) times itself
            return value, 0.5 * rate * now / -math.expm1(-rate * level), LOG_TWO / rate
        length = WINDOW / rate
        later = width(s, arm, level + length)
        return value, (later - now) / length + SLACK * now / length, level + length


def width(s: Any, arm: int, level: float) -> float:
    """Return S sqrt(t^(2/(n-2)) - 1), with level = log t. Roots are taken separately: it overflows only if S t does (n = 3)."""
    return math.sqrt(variance_of(s.arms[arm])) * math.sqrt(math.expm1(2.0 * level / (s.arms[arm, COUNT] - 2.0)))
