"""uniINF (Chen, Huang, Dai, Huang 2025)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.types import Floats
from robandit.policies._parts.records import params_of
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.tinf.ftrl import SKIPPED, Leader, hear, make_decision, new_state, set_weights, solve_barrier

FIRST_SCALE = 4.0
Q = 1.0  # weights are (1 + m + L / S)^-1

NOW = 0  # the field of ``scale``: S, the inverse of the learning rate, which never falls
CHANCE, REST = 0, 1  # columns of ``last``: the probabilities of the arm and of all others at its last decision


def others(weights: Floats, arm: int) -> float:
    """Return 1 - weights[arm]. Sum the other weights where the difference would cancel digits."""
    if weights[arm] <= 0.5:
        return 1.0 - weights[arm]
    total = 0.0
    for other in range(weights.shape[0]):
        if other != arm:
            total += weights[other]
    return total


class UniINF(Leader, Policy):
    """Follow the regularised leader with a log-barrier, skipping rewards that are too large; it needs to know only the horizon.

    As in `HTINF`, an arm's probability falls with its estimated cumulative loss, and losses beyond a threshold are skipped: S over
    four times the probability of the other arms. Losses are divided by the scale S, and each loss, clipped at the threshold, raises
    S. Use it when you know the number of pulls and nothing about the moments, and choices may be random (their probabilities are
    reported, for off-policy evaluation). Do not use it when large rewards are mostly gains, such as revenue: the guarantee does not
    hold there. S starts at 4 and never falls, so rewards much smaller than 1 are learned slowly. A late reward uses the current S.

    Parameters
    ----------
    horizon
        Number of pulls. None: not known yet; `simulate` fills it in.

    Guarantee
    ---------
    If the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (for losses: truncated non-negativity;
    so its mean is at most 0), then for every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret is at worst
    ``K^(eps/(1+eps)) (u T)^(1/(1+eps))`` up to logarithms, also against adversaries, and at most
    ``K (u/gap)^(1/eps) log T`` up to another logarithm, with the smallest gap, on random rewards with a unique best arm. Needs the
    horizon in advance. Randomised. Algorithm and guarantee are reconstructed, with constants derived again; they were not checked
    against the paper's text.

    Examples
    --------
    >>> import robandit as rb
    >>> bandit = rb.Bandit(["a", "b", "c"], rb.UniINF(horizon=1000), seed=0)
    >>> bandit.update(bandit.select(), -0.5)
    >>> [round(row["probability"], 6) for row in bandit.estimates()]
    [0.346622, 0.346622, 0.306756]

    References
    ----------
    Y. Chen, J. Huang, Y. Dai, L. Huang. uniINF: Best-of-both-worlds algorithm for parameter-free heavy-tailed MABs. ICLR 2025.
    """

    horizon: int | None = None

    use_when = "you know only the horizon, and choices may be random"
    label = "uniINF"
    about = Facts(
        knows=("horizon",),
        anytime=False,
        random=True,
        assumption=NONPOSITIVE,
        bound="uniINF of Chen et al.",
        instance="K (u/min gap)^(1/eps) (log T)^2",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) log T",
        matches=(False, True),
        adaptive=Adaptive(True, True, True, True),
        citation="Chen, Huang, Dai, Huang 2025",
        source="reconstructed",
        notes=(
            "One log T of each bound stands for a logarithm of T, K and u. The instance-dependent bound assumes that the best "
            "arm is unique.",
        ),
    )

    def params(self: Any) -> Any:
        """Return log T, with T = 2 for a horizon of one pull, so that log T > 0."""
        return params_of(log_horizon=math.log(max(self.horizon, 2)))

    def init(self, arms: int, horizon: int | None) -> Any:
        return new_state(arms, Q, scale=np.array([FIRST_SCALE]), last=np.zeros((arms, 2)))

    @staticmethod
    def refresh(p: Any, s: Any) -> None:
        set_weights(solve_barrier, s, 1.0 / s.scale[NOW], Q)

    @staticmethod
    def decide(p: Any, s: Any, arm: int) -> float:
        s.last[arm, CHANCE] = s.weights[arm]
        s.last[arm, REST] = others(s.weights, arm)
        return make_decision(p, s, arm)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
        """Add the loss, divided by the probability of the choice, unless it is too large; raise the scale by the clipped loss."""
        hear(s)
        rest = 1.0 - mark
        if mark == s.last[arm, CHANCE]:
            rest = s.last[arm, REST]
        scale = s.scale[NOW]
        share = rest * abs(reward) / scale  # below 1/4 if the loss is learned; clipped to 1/4 if not
        if share < 0.25:
            s.losses[arm] -= reward / mark
        else:
            s.clock[SKIPPED] += 1
            share = 0.25
        s.scale[NOW] = scale * math.sqrt(1.0 + share * share / (s.losses.shape[0] * p.log_horizon))
