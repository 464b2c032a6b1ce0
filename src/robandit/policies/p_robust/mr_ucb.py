"""MR-UCB (Lee, Lim 2022)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.reward_store import enlarged, store_full
from robandit.policies.base import Policy, check_horizon
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TRIED, expire_pull, no_pulls, pulls_made, take_pull, untried
from robandit.policies.p_robust.running_mean import (
    ARM_FLOATS,
    COUNT,
    MEAN,
    SHRINK,
    check_mean,
    constant_of,
    learn_mean,
    mean_state,
    rewards,
)

__all__ = ["MRUCB", "log_left"]

INDEX = ARM_FLOATS


class Params(NamedTuple):
    """Order of the moment and its constant, scale of the estimate, scale of the bonus, and the horizon."""

    order: float
    b: float
    unit: float
    c: float
    horizon: float


class State(NamedTuple):
    """Means and indices; pulls made; what the mean keeps; and the lazy arg-max."""

    arms: Floats
    pulls: Ints
    fit: Floats
    spans: Ints
    points: Floats
    work: Floats
    pool: Floats
    slots: Ints
    lines: Floats
    lead: Ints


class MRUCB(Policy):
    """Optimism that ends: a p-robust mean plus a bonus that falls to 0 when an arm has its fair share T/K of the pulls.

    Use it where the horizon and an order of finite moments are known, and their size is not. The scales must fit the rewards:
    they are the price of knowing no moment bound. The estimate shrinks towards 0, so rewards far from 0 compared with their
    spread should be centred first.

    Parameters
    ----------
    eps
        Moments of order 1 + eps are finite, 0 < eps <= 1. Any smaller order is valid too.
    horizon
        Number of pulls T; `simulate` fills it in.
    c
        Scale of the bonus, in the units of the rewards. The authors search a grid for it.
    c_est
        Scale of the estimate, in the units of the rewards.

    Guarantee
    ---------
    The index is mean + c log(max(T/(K n), 1)) / n^(eps/(1+eps)) with n rewards and K arms. Worst-case regret of order
    K^(eps/(1+eps)) (u T)^(1/(1+eps)) e^u, as for MR-APE. Must know: eps and T. Not anytime, not random. The rule and the default
    c_est = 0.1 are those of the authors' code, not checked against the journal's text, and neither is the rate (confidence 0.85).

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=2.2)
    >>> result = rb.simulate(rb.MRUCB(eps=1.0), problem, horizon=2000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 1000)  # uniform play: 1000
    True

    References
    ----------
    K. Lee, S. Lim. Minimax optimal bandits for heavy tail rewards. IEEE Transactions on Neural Networks and Learning Systems,
    2022 (volume 35, 2024).
    """

    eps: float | None = None
    horizon: int | None = None
    c: float = 1.0
    c_est: float = 0.1

    label = "MR-UCB"
    columns = ("mean", "index")
    about = Facts(
        knows=("eps", "horizon"),
        anytime=False,
        bound="regret bound of Lee, Lim for MR-UCB",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) e^u",
        matches=(None, False),
        adaptive=Adaptive(False, False, True, True),
        title="MR-UCB",
        citation="Lee, Lim 2022",
        notes=(
            "MR-UCB: rule and constants are those of the authors' code, the rate is taken to be MR-APE's; neither was checked "
            "against the text.",
        ),
    )

    def validate(self) -> None:
        """Eps in (0, 1], a whole horizon, positive scales."""
        check_mean("MRUCB", self.eps, {"c": self.c, "c_est": self.c_est})
        check_horizon("MRUCB", self.horizon)

    def params(self) -> Params:
        """The order, its constant, the scales and the horizon."""
        assert self.eps is not None
        assert self.horizon is not None
        order = 1.0 + self.eps
        return Params(order, constant_of(order), float(self.c_est), float(self.c), float(self.horizon))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        assert self.eps is not None
        kept = mean_state(arms, 1.0 + self.eps)
        return State(np.zeros((arms, ARM_FLOATS + 1)), no_pulls(arms), *kept, *lazy_state(arms))

    def grow(self, state: State) -> State:
        """More room for rewards."""
        pool, slots = enlarged(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    full = staticmethod(store_full)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, 0.0)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Only the arm's own rewards change its index."""
        learn_mean(p, s, arm, reward)
        s.arms[arm, INDEX] = s.arms[arm, MEAN] + p.c * log_left(p, s, arm) * s.arms[arm, SHRINK]
        if s.arms[arm, COUNT] == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """The p-robust mean and the index."""
        if s.arms[arm, COUNT] == 0.0:
            out[0] = math.nan
            out[1] = math.inf
        else:
            out[0] = s.arms[arm, MEAN]
            out[1] = s.arms[arm, INDEX]


def log_left(p: Any, s: Any, arm: int) -> float:
    """log(max(T/(K n), 1)): how far the arm is from its fair share of the pulls."""
    return math.log(max(p.horizon / (s.arms.shape[0] * s.arms[arm, COUNT]), 1.0))


def index(p: Params, s: State, arm: int, level: float) -> float:
    """The index as it was after the arm's last reward: time does not change it."""
    return s.arms[arm, INDEX]


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """It stays."""
    return s.arms[arm, INDEX], 0.0, math.inf
