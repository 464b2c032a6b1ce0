"""R-UCB-LT (Ashutosh, Nair, Kagrecha, Jagannathan 2021), for light tails of unknown scale."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.lazy import best_arm, lazy_state
from robandit.kernel.types import Floats, Ints
from robandit.policies.assumptions import Assumption
from robandit.policies.base import Policy
from robandit.policies.classic.ucb1 import COUNT, SUM, UCB1
from robandit.policies.facts import Facts
from robandit.policies.index import TRIED, expire_pull, log_time, no_pulls, pulls_made, take_pull, untried
from robandit.policies.r_ucb.growth import (
    FIRST_LOG_LOG,
    INPUTS,
    LOG_LOG,
    LOG_SQUARED,
    Growth,
    check_growth,
    growth,
    growth_kind,
    steepest,
)

__all__ = ["RUCBLT"]

rewards = UCB1.rewards

SLACK = 1e-12  # far above the rounding of an index


class Params(NamedTuple):
    """Which f, as a number."""

    kind: int


class State(NamedTuple):
    """Sums and counts of rewards; pulls made; and the lazy arg-max."""

    arms: Floats  # (arms, 2): SUM, COUNT
    pulls: Ints
    lines: Floats
    lead: Ints


class RUCBLT(Policy):
    """UCB1 whose confidence width grows a little faster than any scale: for light tails of which nothing else is known.

    Use it when rewards have light (sub-Gaussian) tails and nobody knows their scale. Not for heavy tails:
    it trusts the sample mean.

    Parameters
    ----------
    f
        The factor in ``mean + sqrt(f(t) log t / n)``: ``"log_squared"``, ``"log"``, ``"log_log"`` or ``"corollary"``, see
        :mod:`robandit.policies.r_ucb.growth`. The paper names no default for this policy; ``"log_squared"`` is the one of its
        experiment with R-UCB-TEA (confidence 0.6).

    Guarantee
    ---------
    For sub-Gaussian rewards and T large enough (from when f(T) exceeds their scale), regret grows as the sum over arms of
    ``f(T) log T / gap``. Must know: nothing. Anytime, not random.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.RUCBLT(f="log"), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.5 * 300)  # uniform play: 300
    True

    References
    ----------
    K. Ashutosh, J. Nair, A. Kagrecha, K. Jagannathan. Bandit algorithms: letting go of logarithmic regret for
    statistical robustness. AISTATS 2021, PMLR 130.
    """

    f: Growth = "log_squared"

    label = "R-UCB-LT"
    columns = ("mean", "index")
    about = Facts(
        assumption=Assumption("sub-Gaussian", "sub-Gaussian rewards, and T such that f(T) exceeds their scale"),
        bound="Ashutosh et al., 2021",
        instance="sum f(T)/gap log T",
        citation="Ashutosh, Nair, Kagrecha, Jagannathan 2021",
        title="R-UCB-LT",
        notes=(INPUTS,),
    )

    def validate(self) -> None:
        """A known word."""
        check_growth("RUCBLT", self.f)

    def params(self) -> Params:
        """The word becomes a number."""
        return Params(growth_kind(self.f))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        return State(np.zeros((arms, 2)), no_pulls(arms), *lazy_state(arms))

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)
    update = staticmethod(UCB1.update)  # sums and counts

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index; t counts the pull that is about to be made."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, log_time(s))

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Sample mean and index."""
        if s.arms[arm, COUNT] == 0.0:
            out[0] = math.nan
            out[1] = math.inf
        else:
            out[0] = s.arms[arm, SUM] / s.arms[arm, COUNT]
            out[1] = index(p, s, arm, log_time(s))


def width(p: Params, s: State, arm: int, level: float) -> float:
    """sqrt(f(t) log t / n), with level = log t."""
    return math.sqrt(growth(p.kind, level) * level / s.arms[arm, COUNT])


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Mean plus width."""
    return s.arms[arm, SUM] / s.arms[arm, COUNT] + width(p, s, arm, level)


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """With log_squared the width is convex in the level, and a chord is above it. With the others it is concave from t = 3 on.

    The kink of log_log at t = 16 excepted: there a tangent ends.
    """
    mean = s.arms[arm, SUM] / s.arms[arm, COUNT]
    here = width(p, s, arm, level)
    value = mean + here + SLACK * (abs(mean) + here)
    if level <= 0.0:
        return value, 0.0, 0.0
    if p.kind == LOG_SQUARED:
        until = level * (1.0 + min(0.25, 1.0 / math.sqrt(s.arms[arm, COUNT])))
        return value, (width(p, s, arm, until) - here) / (until - level) + SLACK * here / level, until
    reach = growth(p.kind, level)
    slope = 0.5 * here * (1.0 / level + steepest(p.kind, level, level) / reach)
    if p.kind == LOG_LOG and level < FIRST_LOG_LOG:
        return value, slope, FIRST_LOG_LOG
    return value, slope, math.inf
