"""MR-UCB (Lee, Lim 2022)."""

from __future__ import annotations

import math
from typing import Any

from robandit.kernel.lazy import lazy_state
from robandit.policies._parts.records import params_of
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import FLAT, IndexPolicy
from robandit.policies.p_robust.running_mean import (
    ARM_FLOATS,
    COUNT,
    MEAN,
    SHRINK,
    PRobust,
    learn_mean,
    mean_state,
    order_and_constant,
)

INDEX = ARM_FLOATS


def minimax_params(policy: Any, unit: float, c: float) -> Any:
    """Return the order and its constant, the scales of the estimate and of the bonus, and the horizon."""
    order, b = order_and_constant(policy.eps)
    return params_of(order=order, b=b, unit=float(unit), c=float(c), horizon=float(policy.horizon))


def bonus(p: Any, s: Any, arm: int) -> float:
    """Return c log(max(T/(K n), 1)) / n^(eps/(1+eps)), which is 0 once the arm has T/K rewards."""
    return p.c * math.log(max(p.horizon / (s.arms.shape[0] * s.arms[arm, COUNT]), 1.0)) * s.arms[arm, SHRINK]


class MRUCB(PRobust, IndexPolicy):
    """UCB policy on the p-robust mean, with a bonus that falls to 0 after T/K pulls of an arm.

    Use it when you know the horizon and an order of finite moments, but not their size. The scales replace a bound on the moments
    and must fit the rewards. The estimate shrinks towards 0: centre rewards with a large mean.

    Parameters
    ----------
    eps
        Moments of order 1 + eps are finite, 0 < eps <= 1. Any smaller order is also valid.
    horizon
        Number of pulls T; `simulate` fills it in.
    c
        Scale of the bonus, in the units of the rewards. The authors search a grid for it.
    c_est
        Scale of the estimate, in the units of the rewards.

    Guarantee
    ---------
    The index is mean + c log(max(T/(K n), 1)) / n^(eps/(1+eps)) with n rewards and K arms. Worst-case regret of order
    K^(eps/(1+eps)) (u T)^(1/(1+eps)) e^u, as for MR-APE. Requires eps. Needs the horizon T in advance. Deterministic. The rule and
    the default c_est = 0.1 are those of the authors' code. They and the rate were not checked against the text.

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

    use_when = "you know eps and the horizon, but not u"
    label = "MR-UCB"
    about = Facts(
        knows=("eps", "horizon"),
        anytime=False,
        bound="regret bound of Lee, Lim for MR-UCB",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) e^u",
        matches=(None, False),
        adaptive=Adaptive(False, False, True, True),
        citation="Lee, Lim 2022",
        source="the authors' code",
        notes=(
            "MR-UCB: rule and constants are those of the authors' code, and the rate is assumed to be MR-APE's; neither was "
            "checked against the text.",
        ),
    )

    def params(self) -> Any:
        return minimax_params(self, self.c_est, self.c)

    def init(self, arms: int, horizon: int | None) -> Any:
        lines, lead = lazy_state(arms)
        return mean_state(arms, self.eps, 1, lines=lines, lead=lead)

    def extended(self, state: Any) -> Any:
        """Return the state with one more arm, and indices for the new number of arms."""
        longer = super().extended(state)
        for arm in range(len(state.allowed)):
            if longer.arms[arm, COUNT] > 0.0:
                longer.arms[arm, INDEX] = longer.arms[arm, MEAN] + bonus(self.params(), longer, arm)
        return longer

    outlook = FLAT

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        learn_mean(p, s, arm, reward)
        s.arms[arm, INDEX] = s.arms[arm, MEAN] + bonus(p, s, arm)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    def level(p: Any, s: Any) -> float:
        return 0.0

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        return s.arms[arm, INDEX]
