"""HTINF (Huang, Dai, Huang 2022)."""

from __future__ import annotations

import math
from typing import Any

from robandit.policies._parts.records import params_of
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive
from robandit.policies.tinf.ftrl import MADE, SKIPPED, Leader, hear, huang_facts, new_state, set_weights, solve

LEAST_SIGMA = 1e-300  # the inverse of a smaller one may overflow


def root(p: Any, x: float) -> float:
    """Return x^(1/alpha)."""
    return math.sqrt(x) if p.alpha == 2.0 else x ** (1.0 / p.alpha)


def rate(p: Any, t: float) -> float:
    """Return 1/eta at time t."""
    return p.sigma * root(p, t)


class Skipping(Leader):
    """The hooks of `HTINF` and `OptTINF`."""

    def init(self: Any, arms: int, horizon: int | None) -> Any:
        return new_state(arms, self.params().q)

    @staticmethod
    def refresh(p: Any, s: Any) -> None:
        set_weights(solve, s, 1.0 / rate(p, s.clock[MADE] + 1.0), p.q)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
        hear(s)
        if abs(reward) <= p.theta * rate(p, float(s.clock[MADE])) * root(p, mark):
            s.losses[arm] -= reward / mark
        else:
            s.clock[SKIPPED] += 1


class HTINF(Skipping, Policy):
    """Follow the regularised leader, skipping rewards that are too large, for heavy tails whose moments are known.

    The probability of an arm falls with its estimated cumulative loss (minus the reward). Each loss is divided by the probability
    of its choice; it is skipped if its size exceeds a threshold, which grows with time and with the probability. The worst case has
    no logarithm, even against an adversary, and regret on random rewards is logarithmic. Use it when you know u and eps and choices
    may be random (their probabilities are reported, for off-policy evaluation). Do not use it when large rewards are mostly gains,
    such as revenue: the guarantee does not hold there. A late reward uses the number of pulls at its arrival as t.

    Parameters
    ----------
    eps
        Order of the moment minus 1, in (0, 1] and at least 1e-9. None: not known yet.
    u
        Bound on E|X|^(1+eps) for every arm. None: not known yet.

    Guarantee
    ---------
    If the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (so its mean is at most 0), then regret
    is at worst ``K^(eps/(1+eps)) (u T)^(1/(1+eps))`` (printed constant 30), also against adversaries, and grows as
    ``sum (u/gap)^(1/eps) log T`` with a unique best arm. Requires eps and u. Anytime and randomised.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b", "c"], rb.HTINF(eps=0.5, u=2.0), seed=0)
    >>> bandit.update(bandit.select(), -0.05)
    >>> [round(row["probability"], 6) for row in bandit.estimates()]
    [0.346699, 0.346699, 0.306603]

    References
    ----------
    J. Huang, Y. Dai, L. Huang. Adaptive best-of-both-worlds algorithm for heavy-tailed multi-armed bandits. ICML 2022, PMLR 162.
    """

    eps: float | None = None
    u: float | None = None

    use_when = "you know eps and u, and rewards may be adversarial"
    about = huang_facts(
        knows=("eps", "u"),
        bound="HTINF of Huang et al.",
        instance="sum (u/gap)^(1/eps) log T",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps))",
        matches=(True, True),
        adaptive=Adaptive(False, False, False, False),
        row=8,
        notes=("The instance-dependent bound assumes that the best arm is unique.",),
    )

    def params(self: Any) -> Any:
        return tsallis_params(float(self.eps), float(self.u) ** (1.0 / (1.0 + self.eps)))


def tsallis_params(eps: float, sigma: float) -> Any:
    """Return the parameters for eps and the paper's sigma: q is the exponent of the weights, theta the skipping factor."""
    q, theta = (1.0 + eps) / eps, threshold_factor(eps)
    return params_of(alpha=1.0 + eps, sigma=max(sigma, LEAST_SIGMA), q=q, theta=theta)


def threshold_factor(eps: float) -> float:
    """Return theta = min(1 - 2^(-(alpha-1)/(2 alpha-1)), (2 - 2/alpha)^(1/(2-alpha))) for alpha = 1 + eps, to the last digits.

    >>> threshold_factor(0.5), threshold_factor(1.0)
    (0.159103585, 0.206299474)
    """
    first = -math.expm1(-math.log(2.0) * eps / (1.0 + 2.0 * eps))
    rest = 1.0 - eps
    if rest == 0.0:
        return min(first, math.exp(-0.5))
    # 2 - 2/alpha = 1 - rest/alpha: near 1 its logarithm is of order rest and needs log1p.
    log = math.log1p(-rest / (1.0 + eps)) if rest < 0.5 else math.log(2.0 * eps / (1.0 + eps))
    return min(first, math.exp(log / rest))
