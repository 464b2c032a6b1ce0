"""MR-APE (Lee, Lim 2022)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.random import uniform
from robandit.kernel.types import Floats, Ints, UInts
from robandit.policies._parts.reward_store import enlarged, store_full
from robandit.policies.base import Policy, check_horizon
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TRIED, expire_pull, no_pulls, take_pull, untried
from robandit.policies.p_robust.mr_ucb import log_left
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

__all__ = ["MRAPE"]

REACH = ARM_FLOATS  # the largest perturbation of the arm


class Params(NamedTuple):
    """Order of the moment and its constant, the scale, and the horizon."""

    order: float
    b: float
    unit: float
    horizon: float


class State(NamedTuple):
    """Means and reaches; pulls made; what the mean keeps; and the random stream."""

    arms: Floats
    pulls: Ints
    fit: Floats
    spans: Ints
    points: Floats
    work: Floats
    pool: Floats
    slots: Ints
    rng: UInts


class MRAPE(Policy):
    """Random exploration that ends: a p-robust mean plus a uniform share of a bonus that falls to 0 at T/K pulls of an arm.

    MR-UCB with a bonus that is drawn anew for each arm and round. Use it where the horizon and an order of finite moments are
    known, their size is not, and chance in decisions is welcome. The scale c must fit the rewards: it is the price of
    knowing no moment bound, and the guarantee is exponential in u. The estimate shrinks towards 0, so rewards far from 0
    compared with their spread should be centred first.

    Parameters
    ----------
    eps
        Moments of order 1 + eps are finite, 0 < eps <= 1. Any smaller order is valid too.
    horizon
        Number of pulls T; `simulate` fills it in.
    c
        Scale of the estimate and of the perturbation, in the units of the rewards.

    Guarantee
    ---------
    The arm with the largest mean + 2 c G log(max(T/(K n), 1)) / n^(eps/(1+eps)) is pulled, with n rewards, K arms and G uniform
    on (0, 1]. Worst-case regret of order K^(eps/(1+eps)) (u T)^(1/(1+eps)) e^u. Must know: eps and T. Not anytime; random. The
    rule is that of the authors' code, not checked against the journal's text (confidence 0.85): the factor 2 is a reading
    of their parameters, and they have a variant with G = 0 or 1, which is not here.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=2.2)
    >>> result = rb.simulate(rb.MRAPE(eps=1.0), problem, horizon=2000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 1000)  # uniform play: 1000
    True

    References
    ----------
    K. Lee, S. Lim. Minimax optimal bandits for heavy tail rewards. IEEE Transactions on Neural Networks and Learning Systems,
    2022 (volume 35, 2024).
    """

    eps: float | None = None
    horizon: int | None = None
    c: float = 0.5

    label = "MR-APE"
    columns = ("mean", "reach")
    about = Facts(
        knows=("eps", "horizon"),
        anytime=False,
        random=True,
        bound="regret bound of Lee, Lim for MR-APE",
        instance="sum (K e^u + log(T gap^((1+eps)/eps) / K)^((1+eps)/eps)) / gap^(1/eps)",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) e^u",
        matches=(False, False),
        adaptive=Adaptive(False, False, True, True),
        citation="Lee, Lim 2022",
        row=7,
        title="MR-APE",
        notes=("MR-APE: rule and constants are those of the authors' code, not checked against the text.",),
    )

    def validate(self) -> None:
        """Eps in (0, 1], a whole horizon, a positive scale."""
        check_mean("MRAPE", self.eps, {"c": self.c})
        check_horizon("MRAPE", self.horizon)

    def params(self) -> Params:
        """The order, its constant, the scale and the horizon."""
        assert self.eps is not None
        assert self.horizon is not None
        order = 1.0 + self.eps
        return Params(order, constant_of(order), float(self.c), float(self.horizon))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        assert self.eps is not None
        kept = mean_state(arms, 1.0 + self.eps)
        return State(np.zeros((arms, ARM_FLOATS + 1)), no_pulls(arms), *kept, np.zeros(4, dtype=np.uint64))

    def grow(self, state: State) -> State:
        """More room for rewards."""
        pool, slots = enlarged(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    full = staticmethod(store_full)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest perturbed mean; one draw per arm, in their order."""
        arms = s.arms.shape[0]
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        chosen = -1
        best = -math.inf
        for arm in range(arms):
            value = s.arms[arm, MEAN] + s.arms[arm, REACH] * uniform(s.rng)
            if chosen < 0 or value > best or (value == best and s.pulls[arm] < s.pulls[chosen]):
                best = value
                chosen = arm
        return chosen

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Only the arm's own rewards change its mean and its reach."""
        learn_mean(p, s, arm, reward)
        s.arms[arm, REACH] = 2.0 * p.unit * log_left(p, s, arm) * s.arms[arm, SHRINK]
        if s.arms[arm, COUNT] == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """The p-robust mean, and the largest perturbation that may be added to it."""
        if s.arms[arm, COUNT] == 0.0:
            out[0] = math.nan
            out[1] = math.inf
        else:
            out[0] = s.arms[arm, MEAN]
            out[1] = s.arms[arm, REACH]
