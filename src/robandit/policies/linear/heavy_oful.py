"""HEAVY-OFUL: adaptive Huber regression over all rewards (Huang, Zhong, Wang, Yang 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.records import state_of
from robandit.policies.facts import Facts
from robandit.policies.linear.huber import Huber
from robandit.policies.linear.hvt_ucb import HvtUCB
from robandit.policies.linear.model import (
    COUNT,
    MEAN,
    WIDTH,
    count_reward,
    dot,
    learn_x,
    model,
    times,
    uncertainty,
)

PASSES = 6  # of a refit
REFIT = 1.05  # an arm is fitted anew when its rewards have grown by this factor
ALWAYS = 20.0  # rewards until which it is fitted anew every time
WIDTH_CONSTANT, SHARE_CONSTANT = 24.0, 23.0
FITTED = 1  # column of ``arms``: the rewards of the last fit
Y, SIGMA, LIMIT = 0, 1, 2  # columns of ``kept``, before x


class HeavyOFUL(Huber):
    """Huber regression with a threshold for each reward, fitted to all of them; pulls the arm with the largest upper bound.

    Use it as the baseline with a bound for infinite variance and small constants in practice, if a small ``scale`` is chosen: the
    widths of its theory are so large that it hardly learns within 5,000 rounds. It must be told eps, nu, S and the horizon.

    Parameters
    ----------
    d, shared, eps, nu, S, horizon, delta, scale
        As in `HvtUCB`.

    Guarantee
    ---------
    Regret of order ``d T^((1-eps)/(2(1+eps))) sqrt(sum nu^2) + d T^((1-eps)/(2(1+eps)))`` with probability 1 - delta, for one
    vector of coefficients. The rule and its constants (24, 23) are reconstructed, and the norm of x is taken to be at
    most sqrt(d). An arm is fitted anew when its rewards have grown by 5 %. Deterministic. Keeps all rewards: memory grows up to
    the horizon.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.linear(arms=3, columns=2, noise=-rb.laws.Pareto(tail=1.5) + 3.0)
    >>> policy = rb.HeavyOFUL(eps=0.45, nu=2.0, S=2.0, scale=0.01)
    >>> result = rb.simulate(policy, problem, horizon=1000, replications=10, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.7 * problem.uniform_regret(1000))
    True

    References
    ----------
    J. Huang, H. Zhong, L. Wang, L. F. Yang. Tackling heavy-tailed rewards in reinforcement learning with function approximation:
    minimax optimal and instance-dependent regret bounds. NeurIPS 2023.
    """

    use_when = "you know eps, nu and S, and memory may grow"
    label = "HEAVY-OFUL"
    about = Facts(
        knows=("eps", "nu", "S", "horizon"),
        anytime=False,
        citation="Huang, Zhong, Wang, Yang 2023",
        source="reconstructed",
        notes=HvtUCB.about.notes,
    )
    grows: ClassVar[Mapping[str, int] | None] = {"kept": 1}

    def first_width(self, own: dict[str, float]) -> float:
        eps, rounds = self.eps or 1.0, float(self.horizon or 1)
        logs = math.log(3.0 * rounds) ** own["power"] * own["log"] ** (eps / (1.0 + eps))
        return WIDTH_CONSTANT * math.sqrt(2.0 * own["kappa"]) * logs

    def init(self, arms: int, horizon: int | None) -> Any:
        models = 1 if self.shared else arms
        return state_of(**super().init(arms, horizon)._asdict(), kept=np.zeros((models, 32, 3 + self.d)))

    @staticmethod
    def full(p: Any, s: Any) -> bool:
        most = 0.0
        for m in range(s.kept.shape[0]):
            most = max(most, s.arms[m, COUNT])
        return most >= s.kept.shape[1]

    def grow(self, state: Any) -> Any:
        return state._replace(kept=np.concatenate([state.kept, np.zeros_like(state.kept)], axis=1))

    @staticmethod
    def fill(p: Any, s: Any, arm: int, x: Floats) -> None:
        m = model(p, arm)
        bound = 3.0 * math.sqrt(float(x.shape[0])) * p.S + p.width * (s.arms[m, COUNT] + 1.0) ** p.power
        s.draws[arm, MEAN] = dot(s.theta[m], x)
        s.draws[arm, WIDTH] = p.scale * bound * math.sqrt(uncertainty(s, m, x))

    @staticmethod
    def add(p: Any, s: Any, arm: int, x: Floats, reward: float) -> None:
        m = model(p, arm)
        n = int(s.arms[m, COUNT])
        q = max(math.sqrt(uncertainty(s, m, x)), 1e-150)
        # The share of the theory would forbid what a tuned width is for.
        sigma = max(p.nu, p.least, q * math.sqrt(SHARE_CONSTANT * p.log) if p.scale == 1.0 else q)
        w = q / sigma
        row = s.kept[m, n]
        row[Y], row[SIGMA] = reward, sigma
        row[LIMIT] = p.tau * math.sqrt(1.0 + w * w) / w * (n + 1.0) ** p.power
        for i in range(x.shape[0]):
            row[3 + i] = x[i]
        s.residual[0] = reward - dot(s.theta[m], x)
        learn_x(p, s, arm, x, 1.0 / (sigma * sigma))
        count_reward(p, s, arm)
        if s.arms[m, COUNT] >= REFIT * s.arms[m, FITTED] or s.arms[m, COUNT] < ALWAYS:
            refit(s, m)


@out_of_line
def refit(s: Any, m: int) -> None:
    """Fit the coefficients to all rewards of a model."""
    n = s.arms[m, COUNT]
    s.arms[m, FITTED] = n
    theta, right = s.theta[m], s.work[1]
    for _ in range(PASSES):
        for i in range(theta.shape[0]):
            right[i] = 0.0
        for k in range(int(n)):
            row = s.kept[m, k]
            fitted = dot(row[3:], theta)
            z = (row[Y] - fitted) / row[SIGMA]
            y = min(max(z, -row[LIMIT]), row[LIMIT]) * row[SIGMA] + fitted
            for i in range(theta.shape[0]):
                right[i] += y * row[3 + i] / (row[SIGMA] * row[SIGMA])
        times(s.P[m], right, theta)
