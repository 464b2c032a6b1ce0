"""APE^2 (Lee, Yang, Lim, Oh 2020)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from robandit.errors import InvalidInput
from robandit.kernel.random import exponential
from robandit.kernel.types import Floats, Ints, UInts
from robandit.policies._parts.reward_store import enlarged, store_full
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TRIED, expire_pull, no_pulls, take_pull, untried
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

__all__ = ["APE2"]

Perturbation = Literal["weibull", "gamma", "gev", "pareto", "frechet"]
EXPONENTIAL, GUMBEL, PARETO, FRECHET = 0, 1, 2, 3
# With the authors' parameters a Weibull and a gamma variable are the same: exponential.
KINDS = {"weibull": EXPONENTIAL, "gamma": EXPONENTIAL, "gev": GUMBEL, "pareto": PARETO, "frechet": FRECHET}
LEAST = 2.0**-54  # in place of an exponential variable of 0, whose logarithm is infinite: half the smallest other one
POWER, SIZE = 0, 1  # what ``law`` holds: 1/alpha and lambda of Pareto's and Frechet's laws


class Params(NamedTuple):
    """Order of the moment and its constant, the scale, and the perturbation's law as a number."""

    order: float
    b: float
    unit: float
    kind: int


class State(NamedTuple):
    """Means; pulls made; what the mean keeps; the perturbation's parameters; and the random stream."""

    arms: Floats
    pulls: Ints
    fit: Floats
    spans: Ints
    points: Floats
    work: Floats
    pool: Floats
    slots: Ints
    law: Floats
    rng: UInts


class APE2(Policy):
    """Perturbed exploration with a p-robust mean: each arm's mean plus random noise that falls with its rewards.

    Use it where an order of finite moments is known, but neither their size nor the horizon. The scale c must fit the
    rewards: it is the price of knowing no moment bound, and the guarantee is exponential in u. The estimate shrinks towards 0, so
    rewards far from 0 compared with their spread should be centred first.

    Parameters
    ----------
    eps
        Moments of order 1 + eps are finite, 0 < eps <= 1. Any smaller order is valid too.
    c
        Scale of the estimate and of the perturbation, in the units of the rewards. The authors search [1e-3, 1e2] for it.
    perturbation
        Law of the noise G, with the authors' parameters: ``"weibull"`` and ``"gamma"``, both of shape 1, which is the standard
        exponential law; ``"gev"``, Gumbel's standard law; ``"pareto"``, lambda U^(-1/alpha), and ``"frechet"``,
        lambda (-log U)^(-1/alpha), with alpha = (1+eps)^2/eps and lambda = 1 where this alpha is above log K, else with
        alpha = lambda = log K. As (1+eps)^2/eps >= 4, the second case begins at 55 arms or later; so 2 arms, where log K < 1
        would be no valid alpha, are in the first.

    Guarantee
    ---------
    The arm with the largest mean + c G / n^(eps/(1+eps)) is pulled, with n rewards and G drawn anew for each arm and round.
    Worst-case regret of order K^(eps/(1+eps)) (u T)^(1/(1+eps)) log T e^u, with Pareto or Frechet perturbations and alpha =
    lambda = log K (as far as we know). Must know: eps. Anytime; random. The rule is that of
    the authors' code (confidence 0.95). The parameters of the laws for which the theory holds are from memory, not
    checked against the text (0.85): for Pareto and Frechet it asks for lambda >= alpha, which the first case above,
    the setting of the authors' experiments, does not keep.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=2.2)
    >>> result = rb.simulate(rb.APE2(eps=1.0), problem, horizon=2000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 1000)  # uniform play: 1000
    True

    References
    ----------
    K. Lee, H. Yang, S. Lim, S. Oh. Optimal algorithms for stochastic multi-armed bandits with heavy tailed rewards. NeurIPS 2020.
    """

    eps: float | None = None
    c: float = 1.0
    perturbation: Perturbation = "weibull"

    label = "APE^2"
    columns = ("mean", "scale")
    about = Facts(
        knows=("eps",),
        random=True,
        bound="regret bounds of Lee et al. for each perturbation",
        instance="sum (e^u + (T gap^((1+eps)/eps) log K)^((1+eps)/(eps log K))) / gap^(1/eps)",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) log T e^u",
        matches=(False, False),
        adaptive=Adaptive(False, False, True, True),
        citation="Lee, Yang, Lim, Oh 2020",
        row=6,
        title="APE^2",
        notes=(
            "APE^2: its bounds depend on the law of the perturbation; those that the AdaR-UCB paper prints stand here, and seem to "
            "be for Pareto's and Frechet's laws with alpha = lambda = log K.",
        ),
    )

    def validate(self) -> None:
        """Eps in (0, 1], a positive scale, a known law."""
        check_mean("APE2", self.eps, {"c": self.c})
        if self.perturbation not in get_args(Perturbation):
            laws = ", ".join(repr(name) for name in KINDS)
            raise InvalidInput(f"APE2: perturbation = {self.perturbation!r} must be one of {laws}")

    def params(self) -> Params:
        """The order, its constant, the scale and the law."""
        assert self.eps is not None
        order = 1.0 + self.eps
        return Params(order, constant_of(order), float(self.c), KINDS[self.perturbation])

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known. The law's parameters depend on the number of arms."""
        assert self.eps is not None
        order = 1.0 + self.eps
        alpha, size = order * order / self.eps, 1.0
        if not alpha > math.log(arms):
            alpha = size = math.log(arms)
        law = np.array([1.0 / alpha, size])
        return State(
            np.zeros((arms, ARM_FLOATS)), no_pulls(arms), *mean_state(arms, order), law, np.zeros(4, dtype=np.uint64)
        )

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
            noise = perturbation(p.kind, s.law, exponential(s.rng))
            value = s.arms[arm, MEAN] + p.unit * noise * s.arms[arm, SHRINK]
            if chosen < 0 or value > best or (value == best and s.pulls[arm] < s.pulls[chosen]):
                best = value
                chosen = arm
        return chosen

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Only the arm's own rewards change its mean."""
        learn_mean(p, s, arm, reward)
        if s.arms[arm, COUNT] == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """The p-robust mean, and what the perturbation is multiplied with."""
        if s.arms[arm, COUNT] == 0.0:
            out[0] = math.nan
            out[1] = math.inf
        else:
            out[0] = s.arms[arm, MEAN]
            out[1] = p.unit * s.arms[arm, SHRINK]


def perturbation(kind: int, law: Floats, drawn: float) -> float:
    """A variable of the law, from an exponential one: Pareto's and Frechet's are exponentials of it and of a Gumbel one."""
    if kind == EXPONENTIAL:
        return drawn
    if kind == PARETO:
        return law[SIZE] * math.exp(law[POWER] * drawn)
    gumbel = -math.log(max(drawn, LEAST))
    if kind == GUMBEL:
        return gumbel
    return law[SIZE] * math.exp(law[POWER] * gumbel)
