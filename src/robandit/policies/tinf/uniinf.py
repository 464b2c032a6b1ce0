"""uniINF (Chen, Huang, Dai, Huang 2025)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.types import Floats, Ints, UInts
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.base import Policy, check_horizon
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.tinf.ftrl import FRESH, HEARD, SKIPPED, believe, decide, drawn, look, new_state, solve_barrier

__all__ = ["UniINF"]

FIRST_SCALE = 4.0
Q = 1.0  # weights are (1 + m + L / S)^-1

# Fields of ``scale``:
NOW = 0  # S: the inverse of the learning rate; it only grows

# Columns of ``last``: an arm's last decision.
CHANCE = 0  # the probability of the arm
REST = 1  # and of all others


class Params(NamedTuple):
    """log T."""

    log_horizon: float


class State(NamedTuple):
    """What follow the regularised leader keeps, the scale of the barrier, and each arm's last decision."""

    losses: Floats
    weights: Floats
    root: Floats
    clock: Ints
    rng: UInts
    scale: Floats
    last: Floats


class UniINF(Policy):
    """Follow the regularised leader with a log-barrier and skipping: both worlds, told nothing but the horizon.

    Every arm has a probability, which falls with its estimated cumulative loss. A loss is divided by the probability of its
    choice and added to the estimate, unless its absolute value exceeds a threshold; it then only raises, clipped, the scale
    S, by which losses are divided. The threshold, S over four times the probability of the other arms, has no upper limit for an
    arm that is nearly sure. Use it when nothing is known of the moments but the number of pulls, and choices may be random (their
    probabilities are reported, for off-policy evaluation); not when large rewards are mostly gains (revenue), where its
    guarantee fails. S starts at 4 and cannot fall: rewards that are far smaller than 1 are learned from slowly.

    Parameters
    ----------
    horizon
        Number of pulls. None: not told yet; `simulate` fills it in.

    Guarantee
    ---------
    If the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (for losses: truncated non-negativity;
    so its mean is at most 0), then for every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret is at worst
    ``K^(eps/(1+eps)) (u T)^(1/(1+eps))`` up to logarithms, against adversaries too, and at most
    ``K (u/gap)^(1/eps) log T`` up to another logarithm, with the smallest gap, on random rewards with a unique best arm. Must
    know: the horizon. Not anytime, random.

    The algorithm and its guarantee stand here from memory, every constant re-derived from its own analysis, and were not checked
    against the paper's text (confidence 0.88).

    Notes
    -----
    The paper is about losses; here the loss is minus the reward. With late rewards, S is that of the time when a reward arrives,
    with the probability of the reward's own decision.

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

    weighted = True
    label = "uniINF"
    columns = ("mean", "probability")
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
        title="uniINF",
        notes=(
            "From memory, with constants re-derived; not checked against the paper's text. One log T of each bound stands for "
            "a logarithm of T, K and u. The instance-dependent bound assumes that the best arm is unique.",
        ),
    )

    def validate(self) -> None:
        """A number of pulls."""
        check_horizon("UniINF", self.horizon)

    def params(self) -> Params:
        """log T; for one pull, after which nothing is chosen, that of two."""
        assert self.horizon is not None
        return Params(math.log(max(self.horizon, 2)))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        return State(*new_state(arms, Q), np.array([FIRST_SCALE]), np.zeros((arms, 2)))

    def counters(self, state: State) -> dict[str, int]:
        """Rewards that were skipped."""
        return {"skipped": int(state.clock[SKIPPED])}

    @staticmethod
    def select(p: Params, s: State) -> int:
        """An arm drawn from the weights."""
        see(s)
        return drawn(s)

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """The probability of the choice; that of the other arms is kept beside it."""
        see(s)
        s.last[arm, CHANCE] = s.weights[arm]
        s.last[arm, REST] = others(s.weights, arm)
        return decide(s, arm)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """Add the loss, divided by the probability of the choice, unless it is too large; the clipped loss raises the scale."""
        s.clock[HEARD] += 1
        s.clock[FRESH] = 0
        rest = 1.0 - mark
        if mark == s.last[arm, CHANCE]:
            rest = s.last[arm, REST]
        scale = s.scale[NOW]
        share = rest * abs(reward) / scale  # at most 1/4 if the loss is learned, and after clipping
        if share < 0.25:
            s.losses[arm] -= reward / mark
        else:
            s.clock[SKIPPED] += 1
            share = 0.25
        s.scale[NOW] = scale * math.sqrt(1.0 + share * share / (s.losses.shape[0] * p.log_horizon))

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """The mean that the losses stand for (skipped rewards count as 0), and the probability of the next choice."""
        see(s)
        believe(s, arm, out)


def see(s: State) -> None:
    """The weights of the losses and the scale."""
    if s.clock[FRESH] == 0:
        look(solve_barrier, s, 1.0 / s.scale[NOW], Q)


def others(weights: Floats, arm: int) -> float:
    """1 - weights[arm]; where that would cancel, the sum of the others."""
    if weights[arm] <= 0.5:
        return 1.0 - weights[arm]
    total = 0.0
    for other in range(weights.shape[0]):
        if other != arm:
            total += weights[other]
    return total
