"""HTINF (Huang, Dai, Huang 2022)."""

from __future__ import annotations

import math
from typing import NamedTuple

from robandit.kernel.types import Floats
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.base import Policy, check_eps, check_number
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.tinf.ftrl import (
    FRESH,
    HEARD,
    MADE,
    SKIPPED,
    State,
    believe,
    check_alpha,
    decide,
    drawn,
    look,
    new_state,
    solve,
)

__all__ = ["HTINF", "theta"]

LEAST_SIGMA = 1e-300  # its inverse must be a double
LOG_2 = math.log(2.0)


class Params(NamedTuple):
    """alpha = 1 + eps, sigma = u^(1/alpha), the exponent of the weights, and the factor of the skipping threshold."""

    alpha: float
    sigma: float
    q: float
    theta: float


class HTINF(Policy):
    """Random choices by follow the regularised leader, skipping rewards that are too large: heavy tails of known size.

    Every arm has a probability, which falls with its estimated cumulative loss. A loss is divided by the probability of its
    choice and added to the estimate; one whose absolute value exceeds a threshold, which grows with time and with the
    probability, is skipped. It is good in both worlds: no logarithm in the worst case, even against an adversary, and
    logarithmic regret on random rewards. Use it when u and eps are known and choices may be random (their probabilities are
    reported, for off-policy evaluation); not when large rewards are mostly gains (revenue), where its guarantee fails.

    Parameters
    ----------
    eps
        Order of the moment minus 1, in (0, 1] and at least 1e-9. None: not told yet.
    u
        Bound on E|X|^(1+eps) for every arm. None: not told yet.

    Guarantee
    ---------
    If the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (so its mean is at most 0), then regret
    is at worst ``K^(eps/(1+eps)) (u T)^(1/(1+eps))`` (printed constant 30), against adversaries too, and grows as
    ``sum (u/gap)^(1/eps) log T`` with a unique best arm. Must know: eps and u. Anytime, random.

    Notes
    -----
    The paper is about losses; here the loss is minus the reward. The paper's rewards come at once; with late rewards, the threshold
    of a reward takes the number of pulls made when it arrives for t, and the probability of its own decision.

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

    weighted = True
    columns = ("mean", "probability")
    about = Facts(
        knows=("eps", "u"),
        random=True,
        assumption=NONPOSITIVE,
        bound="HTINF of Huang et al.",
        instance="sum (u/gap)^(1/eps) log T",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps))",
        matches=(True, True),
        adaptive=Adaptive(False, False, False, False),
        citation="Huang, Dai, Huang 2022",
        row=8,
        title="HTINF",
        notes=("The instance-dependent bound assumes that the best arm is unique.",),
    )

    def validate(self) -> None:
        """The order of a moment and its bound."""
        check_eps("HTINF", self.eps)
        if self.u is not None:
            check_number("HTINF", "u", self.u, above=0.0)

    def params(self) -> Params:
        """The paper's alpha and sigma."""
        assert self.eps is not None
        assert self.u is not None
        return tsallis_params(float(self.eps), float(self.u) ** (1.0 / (1.0 + self.eps)))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        assert self.eps is not None
        return new_state(arms, (1.0 + self.eps) / self.eps)

    def counters(self, state: State) -> dict[str, int]:
        """Rewards that were skipped."""
        return {"skipped": int(state.clock[SKIPPED])}

    @staticmethod
    def select(p: Params, s: State) -> int:
        """An arm drawn from the weights."""
        see(p, s)
        return drawn(s)

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """The probability of the choice."""
        see(p, s)
        return decide(s, arm)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """Add the loss, divided by the probability of the choice, unless it is too large."""
        s.clock[HEARD] += 1
        s.clock[FRESH] = 0
        if abs(reward) <= p.theta * rate(p, float(s.clock[MADE])) * root(p, mark):
            s.losses[arm] -= reward / mark
        else:
            s.clock[SKIPPED] += 1

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """The mean that the losses stand for (skipped rewards count as 0), and the probability of the next choice."""
        see(p, s)
        believe(s, arm, out)


def tsallis_params(eps: float, sigma: float) -> Params:
    """Parameters from eps and the paper's sigma."""
    return Params(1.0 + eps, max(sigma, LEAST_SIGMA), (1.0 + eps) / eps, threshold_factor(eps))


def root(p: Params, x: float) -> float:
    """x^(1/alpha)."""
    if p.alpha == 2.0:
        return math.sqrt(x)
    return x ** (1.0 / p.alpha)


def rate(p: Params, t: float) -> float:
    """1/eta at time t."""
    return p.sigma * root(p, t)


def see(p: Params, s: State) -> None:
    """The weights of the pull that is about to be made."""
    if s.clock[FRESH] == 0:
        look(solve, s, 1.0 / rate(p, s.clock[MADE] + 1.0), p.q)


def theta(alpha: float) -> float:
    """The factor of the skipping threshold, min(1 - 2^(-(alpha-1)/(2 alpha-1)), (2 - 2/alpha)^(1/(2-alpha))), for alpha in (1, 2].

    >>> theta(1.5), theta(2.0)
    (0.159103585, 0.206299474)
    """
    check_alpha("theta", alpha)
    return threshold_factor(alpha - 1.0)


def threshold_factor(eps: float) -> float:
    """theta(1 + eps), to the last digits however near eps is to 0 or 1."""
    first = -math.expm1(-LOG_2 * eps / (1.0 + 2.0 * eps))
    rest = 1.0 - eps
    if rest == 0.0:
        return min(first, math.exp(-0.5))
    # 2 - 2/alpha = 1 - rest/alpha: near 1 its logarithm is of the size of rest, and must keep its digits.
    log = math.log1p(-rest / (1.0 + eps)) if rest < 0.5 else math.log(2.0 * eps / (1.0 + eps))
    return min(first, math.exp(log / rest))
