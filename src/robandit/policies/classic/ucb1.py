"""UCB1 (Auer, Cesa-Bianchi, Fischer 2002)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.turns import TRIED, expire_pull, log_time, no_pulls, pulls_made, take_pull, untried
from robandit.policies.base import Policy, check_number
from robandit.policies.facts import Facts

__all__ = ["UCB1"]

SUM = 0
COUNT = 1
SLACK = 1e-12  # far above the rounding of an index


class Params(NamedTuple):
    """``scale`` as a number."""

    scale: float


class State(NamedTuple):
    """Sums and counts of rewards; pulls made; and the lazy arg-max."""

    arms: Floats  # (arms, 2): SUM, COUNT
    pulls: Ints
    lines: Floats
    lead: Ints


class UCB1(Policy):
    """Optimism on the sample mean: the classical policy for rewards in an interval of known length.

    The baseline that heavy tails break: one large sample moves the mean by any amount, and the policy believes it. Use it when
    rewards are bounded (clicks, capped scores); with unbounded rewards it has no guarantee, and its worst runs are
    as bad as never learning.

    Parameters
    ----------
    scale
        Length of the interval that holds the rewards; 1 for rewards in [0, 1].

    Guarantee
    ---------
    Regret at most the sum over arms of ``8 scale^2 log(T) / gap`` plus a constant, if all rewards lie in an interval of length
    ``scale``. Must know: the interval's length. Anytime, not random.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.UCB1(), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.1 * 300)  # uniform play: 300
    True

    References
    ----------
    P. Auer, N. Cesa-Bianchi, P. Fischer. Finite-time analysis of the multiarmed bandit problem. Machine Learning 47, 2002.
    """

    scale: float = 1.0

    columns = ("mean", "index")
    about = Facts(
        knows=("scale",),
        assumption="rewards in an interval of known length",
        bound="Theorem 1 of Auer et al.",
        instance="sum scale^2 / gap log T",
        worst="scale sqrt(K T log T)",
        title="UCB1",
        notes=(
            "Scale 1 unless told otherwise; where rewards are unbounded no scale is right, and it plays as a control.",
        ),
        citation="Auer, Cesa-Bianchi, Fischer 2002",
    )

    def validate(self) -> None:
        """The scale is a positive number."""
        check_number("UCB1", "scale", self.scale, above=0.0)

    def params(self) -> Params:
        """The scale."""
        return Params(float(self.scale))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        return State(np.zeros((arms, 2)), no_pulls(arms), *lazy_state(arms))

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index; t counts the pull that is about to be made."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, log_time(s))

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Add the reward to the arm's sum."""
        s.arms[arm, SUM] += reward
        s.arms[arm, COUNT] += 1.0
        if s.arms[arm, COUNT] == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Sample mean and index."""
        if s.arms[arm, COUNT] == 0.0:
            out[0] = math.nan
            out[1] = math.inf
        else:
            out[0] = s.arms[arm, SUM] / s.arms[arm, COUNT]
            out[1] = index(p, s, arm, log_time(s))


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Mean + scale sqrt(2 log t / n), with level = log t."""
    n = s.arms[arm, COUNT]
    return s.arms[arm, SUM] / n + p.scale * math.sqrt(2.0 * level / n)


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """The index is concave in the level, so its tangent stays above it for ever."""
    value = index(p, s, arm, level)
    n = s.arms[arm, COUNT]
    if level <= 0.0:
        return value, 0.0, 0.0
    width = p.scale * math.sqrt(2.0 * level / n)
    slack = SLACK * (abs(value - width) + width)
    return value + slack, 0.5 * width / level, math.inf
