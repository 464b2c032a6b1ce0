"""UCB for normal rewards with unknown means and variances (Cowan, Honda, Katehakis 2018)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.running_moments import COUNT, MOMENTS, add_reward, mean_of, variance_of
from robandit.policies.assumptions import NORMAL
from robandit.policies.base import Policy
from robandit.policies.facts import Facts
from robandit.policies.index import TAKEN, TRIED, expire_pull, no_pulls, pulls_made, take_pull, untried

__all__ = ["NormalUCB"]

FIRST = 3.0  # rewards of every arm before the first index
LOG_TWO = math.log(2.0)
WINDOW = 0.1  # how much the exponent 2 log(t)/(n-2) grows under one chord: the chord is then within 0.1% of the width
SLACK = 1e-12  # far above the rounding of an index


class Params(NamedTuple):
    """There are none."""

    nothing: float


class State(NamedTuple):
    """Moments of the arms; pulls made; and the lazy arg-max."""

    arms: Floats  # (arms, MOMENTS)
    pulls: Ints
    lines: Floats
    lead: Ints


class NormalUCB(Policy):
    """Optimism on the sample mean and sample variance of normal rewards: the best constant that normal arms allow.

    Nothing must be known, and rewards may be shifted and scaled as one likes. Use it when rewards are close to normal. It
    trusts that they are: with heavy tails it has no guarantee.

    Guarantee
    ---------
    If all arms are normal, regret grows as the sum over arms of ``2 gap / log(1 + gap^2/variance) log T``, which no policy beats.
    Must know: nothing. Anytime, not random. Every arm is pulled three times first. The algorithm is written down from memory,
    not checked against the paper's text (confidence 0.88).

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.Problem([rb.laws.Gaussian(mean=0.0, sd=1.0), rb.laws.Gaussian(mean=1.0, sd=1.0)])
    >>> result = rb.simulate(rb.NormalUCB(), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.1 * 500)  # uniform play: 500
    True

    References
    ----------
    W. Cowan, J. Honda, M. N. Katehakis. Normal bandits of unknown means and variances. Journal of Machine Learning Research 18,
    2018.
    """

    label = "Normal UCB"
    columns = ("mean", "index", "variance")
    about = Facts(
        assumption=NORMAL,
        bound="Cowan et al., 2018",
        instance="sum gap / log(1 + gap^2/variance) log T",
        title="Normal UCB",
        citation="Cowan, Honda, Katehakis 2018",
        notes=("Written down from memory, not checked against the paper's text.",),
    )

    def params(self) -> Params:
        """A placeholder."""
        return Params(0.0)

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        return State(np.zeros((arms, MOMENTS)), no_pulls(arms), *lazy_state(arms))

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm three times, then the largest index."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, FIRST)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, log_pulls(s))

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Learn the arm's moments."""
        add_reward(s.arms[arm], reward)
        if s.arms[arm, COUNT] == FIRST:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Sample mean, index and sample variance."""
        out[0] = out[2] = math.nan
        out[1] = math.inf
        if s.arms[arm, COUNT] > 0.0:
            out[0] = mean_of(s.arms[arm])
            out[2] = variance_of(s.arms[arm])
        if s.arms[arm, COUNT] >= FIRST:
            out[1] = index(p, s, arm, log_pulls(s))


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def log_pulls(s: State) -> float:
    """log t, where t is the number of pulls made so far."""
    return math.log(s.pulls[s.pulls.shape[0] - 2 + TAKEN])


def width(s: State, arm: int, level: float) -> float:
    """S sqrt(t^(2/(n-2)) - 1), with level = log t; roots apart, so that it overflows only if S t does (at n = 3)."""
    return math.sqrt(variance_of(s.arms[arm])) * math.sqrt(math.expm1(2.0 * level / (s.arms[arm, COUNT] - 2.0)))


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Mean plus width."""
    return mean_of(s.arms[arm]) + width(s, arm, level)


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """While t^(2/(n-2)) <= 2 the width is concave in the level, and its tangent above it; then convex, and a chord is above it."""
    mean = mean_of(s.arms[arm])
    here = width(s, arm, level)
    value = mean + here + SLACK * (abs(mean) + here)
    rate = 2.0 / (s.arms[arm, COUNT] - 2.0)
    if here == 0.0:
        return value, 0.0, math.inf
    if here == math.inf:
        return here, 0.0, math.inf
    if rate * level <= LOG_TWO:
        # d/dl sqrt(e^(rl) - 1) = r e^(rl) / (2 (e^(rl) - 1)) times itself
        return value, 0.5 * rate * here / -math.expm1(-rate * level), LOG_TWO / rate
    length = WINDOW / rate
    there = width(s, arm, level + length)
    return value, (there - here) / length + SLACK * here / length, level + length
