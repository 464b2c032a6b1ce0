"""APE^2 (Lee, Yang, Lim, Oh 2020)."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np

from robandit.kernel.random import exponential
from robandit.kernel.types import Floats
from robandit.policies._parts.records import params_of
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.p_robust.perturbed import Perturbed
from robandit.policies.p_robust.running_mean import MEAN, SHRINK, learn_mean, mean_state, order_and_constant
from robandit.validation import choice

Perturbation = Literal["weibull", "gamma", "gev", "pareto", "frechet"]
EXPONENTIAL, GUMBEL, PARETO, FRECHET = 0, 1, 2, 3
# With the authors' parameters the Weibull and the gamma law are both exponential.
KINDS = {"weibull": EXPONENTIAL, "gamma": EXPONENTIAL, "gev": GUMBEL, "pareto": PARETO, "frechet": FRECHET}
LEAST = 2.0**-54  # replaces an exponential variable of 0, whose log is infinite; half the smallest positive variable
HUGE = 700.0  # the exponential function of a larger number overflows
STEEP = 1.5
POWER, SIZE = 0, 1  # ``law``: 1/alpha and lambda of the Pareto and Frechet laws


class APE2(Perturbed, Policy):
    """A policy that adds random noise to each arm's p-robust mean; the noise falls with the arm's number of rewards.

    Use it when you know an order of finite moments, but neither the size of the moments nor the horizon. The scale c replaces a
    bound on the moments and must fit the rewards. The estimate shrinks towards 0: centre rewards with a large mean.

    Parameters
    ----------
    eps
        Moments of order 1 + eps are finite, 0 < eps <= 1. Any smaller order is also valid.
    c
        Scale of the estimate and of the perturbation, in the units of the rewards. The authors search [1e-3, 1e2] for it.
    perturbation
        Law of the noise G, with the authors' parameters. ``"weibull"`` and ``"gamma"``: the standard exponential law. ``"gev"``:
        Gumbel's standard law. ``"pareto"``: lambda U^(-1/alpha). ``"frechet"``: lambda (-log U)^(-1/alpha). alpha = (1+eps)^2/eps
        and lambda = 1, or alpha = lambda = log K if this alpha is not above log K, which takes at least 55 arms.

    Guarantee
    ---------
    It pulls the arm with the largest mean + c G / n^(eps/(1+eps)), with n rewards and G drawn for each arm and round.
    Worst-case regret of order K^(eps/(1+eps)) (u T)^(1/(1+eps)) log T e^u, with Pareto or Frechet perturbations and alpha =
    lambda = log K (as far as we know). Requires eps. Anytime and randomised. The rule is that of the authors' code.
    The parameters for which the theory holds were not checked against the text. For Pareto and Frechet
    the theory requires lambda >= alpha. The first case above, which is the setting of the authors' experiments, violates this.

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

    use_when = "you know eps but not u, and choices may be random"
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
        source="the authors' code",
        row=6,
        notes=(
            "APE^2: its bounds depend on the law of the perturbation. These are printed in the AdaR-UCB paper, and seem to be "
            "for the Pareto and Frechet laws with alpha = lambda = log K.",
        ),
    )

    def validate(self) -> None:
        super().validate()
        choice(self.perturbation, "perturbation", get_args(Perturbation), owner="APE2")

    def params(self: Any) -> Any:
        order, b = order_and_constant(self.eps)
        return params_of(order=order, b=b, unit=float(self.c), kind=KINDS[self.perturbation])

    def init(self: Any, arms: int, horizon: int | None) -> Any:
        """Return a state without rewards. The law's parameters depend on the number of arms."""
        alpha, size = (1.0 + self.eps) * (1.0 + self.eps) / self.eps, 1.0
        if not alpha > math.log(arms):
            alpha = size = math.log(arms)
        law, stream = np.array([1.0 / alpha, size]), np.zeros(4, dtype=np.uint64)
        return mean_state(arms, self.eps, law=law, rng=stream)

    add = staticmethod(learn_mean)

    @staticmethod
    def reach(p: Any, s: Any, arm: int) -> float:
        return p.unit * s.arms[arm, SHRINK]

    @staticmethod
    def score(p: Any, s: Any, arm: int) -> float:
        noise = perturbation(p.kind, s.law, exponential(s.rng))
        return s.arms[arm, MEAN] + p.unit * noise * s.arms[arm, SHRINK]

    @staticmethod
    def exceeded(p: Any, s: Any, chance: float) -> float:
        if p.kind in (EXPONENTIAL, PARETO):
            return perturbation(p.kind, s.law, -math.log(chance))
        return perturbation(p.kind, s.law, -math.log1p(-chance) if chance < 1.0 else math.inf)

    @staticmethod
    def above(p: Any, s: Any, noise: float) -> float:
        return noise_above(p.kind, s.law, noise)

    @staticmethod
    def edges(p: Any, s: Any) -> tuple[float, float]:
        """Return the least noise, or the points that enclose the steep part of Gumbel's and Frechet's distribution function."""
        if p.kind == EXPONENTIAL:
            return 0.0, 0.0
        if p.kind == PARETO:
            return s.law[SIZE], s.law[SIZE]
        if p.kind == GUMBEL:
            return -STEEP, STEEP
        return s.law[SIZE] * math.exp(-STEEP * s.law[POWER]), s.law[SIZE] * math.exp(STEEP * s.law[POWER])


def perturbation(kind: int, law: Floats, drawn: float) -> float:
    """Transform an exponential variable into a variable of the given law."""
    if kind == EXPONENTIAL:
        return drawn
    if kind == PARETO:
        return law[SIZE] * math.exp(law[POWER] * drawn)
    gumbel = -math.log(max(drawn, LEAST))
    if kind == GUMBEL:
        return gumbel
    return law[SIZE] * math.exp(law[POWER] * gumbel)


def noise_above(kind: int, law: Floats, noise: float) -> float:
    """Return the probability that a variable of the given law is larger."""
    if kind in (PARETO, FRECHET):
        noise = math.log(noise / law[SIZE]) / law[POWER] if noise > 0.0 else -math.inf
    if kind in (EXPONENTIAL, PARETO):
        return math.exp(-max(noise, 0.0))
    return -math.expm1(-math.exp(min(-noise, HUGE)))
