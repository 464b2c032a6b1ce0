"""MR-APE (Lee, Lim 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from robandit.kernel.random import uniform
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.p_robust.mr_ucb import bonus, minimax_params
from robandit.policies.p_robust.perturbed import Perturbed
from robandit.policies.p_robust.running_mean import ARM_FLOATS, COUNT, MEAN, learn_mean, mean_state

REACH = ARM_FLOATS  # the largest perturbation of the arm


class MRAPE(Perturbed, Policy):
    """A policy on the p-robust mean plus a uniform random share of a bonus that falls to 0 after T/K pulls of an arm.

    This is MR-UCB with a random bonus, drawn for each arm and round. Use it like `MRUCB`, if decisions may be random.

    Parameters
    ----------
    eps
        Moments of order 1 + eps are finite, 0 < eps <= 1. Any smaller order is also valid.
    horizon
        Number of pulls T; `simulate` fills it in.
    c
        Scale of the estimate and of the perturbation, in the units of the rewards.

    Guarantee
    ---------
    It pulls the arm with the largest mean + 2 c G log(max(T/(K n), 1)) / n^(eps/(1+eps)), with n rewards, K arms and G uniform
    on (0, 1]. Worst-case regret of order K^(eps/(1+eps)) (u T)^(1/(1+eps)) e^u. Requires eps. Needs the horizon T in advance.
    Randomised. The rule is that of the authors' code, not checked against the journal's text. The factor 2 is our
    reading of their parameters. Their variant with G = 0 or 1 is not included.

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

    use_when = "you know eps and the horizon, and choices may be random"
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
        source="the authors' code",
        row=7,
        notes=("MR-APE: rule and constants are those of the authors' code, not checked against the text.",),
    )

    def params(self) -> Any:
        return minimax_params(self, self.c, 2.0 * self.c)

    def init(self, arms: int, horizon: int | None) -> Any:
        return mean_state(arms, self.eps, 1, rng=np.zeros(4, dtype=np.uint64))

    def extended(self, state: Any) -> Any:
        """Return the state with one more arm, and reaches for the new number of arms."""
        longer = super().extended(state)
        for arm in range(len(state.allowed)):
            if longer.arms[arm, COUNT] > 0.0:
                longer.arms[arm, REACH] = bonus(self.params(), longer, arm)
        return longer

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        learn_mean(p, s, arm, reward)
        s.arms[arm, REACH] = bonus(p, s, arm)

    @staticmethod
    def reach(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, REACH]

    @staticmethod
    def score(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN] + s.arms[arm, REACH] * uniform(s.rng)

    @staticmethod
    def exceeded(p: Any, s: Any, chance: float) -> float:
        return 1.0 - chance

    @staticmethod
    def above(p: Any, s: Any, share: float) -> float:
        return min(max(1.0 - share, 0.0), 1.0)

    @staticmethod
    def edges(p: Any, s: Any) -> tuple[float, float]:
        return 0.0, 1.0
