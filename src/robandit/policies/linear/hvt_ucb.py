"""Hvt-UCB: one-pass Huber regression for heavy-tailed linear bandits (Wang, Zhang, Zhao, Zhou 2025)."""

from __future__ import annotations

import math
from typing import Any

from robandit.kernel.types import Floats
from robandit.policies.facts import Facts
from robandit.policies.linear.huber import Huber
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

ALPHA = 4.0
WIDTH_CONSTANT = 107.0


class HvtUCB(Huber):
    """Huber regression by one step of online mirror descent per reward; pulls the arm with the largest upper bound.

    Use it as the baseline with a bound for infinite variance. It must be told eps, nu, S and the horizon, and the widths of its
    theory are so large that it hardly learns within 5,000 rounds (docs/results/contexts.md).

    Parameters
    ----------
    d, shared
        As in `AdaClipTS`.
    eps
        The order: E|noise|^(1+eps) <= nu^(1+eps), in (0, 1].
    nu
        The bound on the noise.
    S
        A bound on the norm of an arm's coefficients.
    horizon
        The number of rounds T.
    delta
        The probability with which the bounds may fail.
    scale
        A factor of the width. 1 is the theory's.

    Guarantee
    ---------
    Regret of order ``d T^((1-eps)/(2(1+eps))) sqrt(sum nu^2)`` with probability 1 - delta, for one vector of coefficients. The
    rules of the update are the paper's; the constants 107 and tau0 are reconstructed, the norm of x is taken to be at most sqrt(d),
    and the projection is that on the Euclidean ball. Deterministic. O(d^2) per round. Every arm is pulled once first.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.linear(arms=3, columns=2, noise=-rb.laws.Pareto(tail=1.5) + 3.0)
    >>> policy = rb.HvtUCB(eps=0.45, nu=2.0, S=2.0, scale=0.001)
    >>> result = rb.simulate(policy, problem, horizon=1000, replications=10, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.7 * problem.uniform_regret(1000))
    True

    References
    ----------
    J. Wang, Y.-J. Zhang, P. Zhao, Z.-H. Zhou. Heavy-tailed linear bandits: Huber regression with one-pass update. ICML 2025.
    """

    use_when = "a bound must hold, and you know eps, nu, S"
    label = "Hvt-UCB"
    squeeze = ALPHA
    about = Facts(
        knows=("eps", "nu", "S", "horizon"),
        anytime=False,
        citation="Wang, Zhang, Zhao, Zhou 2025",
        source="reconstructed",
        notes=("Hvt-UCB and HEAVY-OFUL bound the regret of one vector of coefficients, not of one per arm.",),
    )

    def first_width(self, own: dict[str, float]) -> float:
        return WIDTH_CONSTANT * own["log"] * own["tau"]

    @staticmethod
    def fill(p: Any, s: Any, arm: int, x: Floats) -> None:
        m = model(p, arm)
        s.draws[arm, MEAN] = dot(s.theta[m], x)
        s.draws[arm, WIDTH] = beta(p, x.shape[0], s.arms[m, COUNT] + 1.0) * math.sqrt(uncertainty(s, m, x))

    @staticmethod
    def add(p: Any, s: Any, arm: int, x: Floats, reward: float) -> None:
        m = model(p, arm)
        theta = s.theta[m]
        t = s.arms[m, COUNT] + 1.0
        grown = t**p.power
        q = max(math.sqrt(uncertainty(s, m, x)), 1e-150)
        sigma = max(p.nu, p.least, math.sqrt(2.0 * beta(p, x.shape[0], t) / (p.tau * math.sqrt(ALPHA) * grown)) * q)
        w = q / sigma / math.sqrt(ALPHA)
        limit = p.tau * math.sqrt(1.0 + w * w) / w * grown
        error = reward - dot(theta, x)
        s.residual[0] = error
        gradient = min(max(error / sigma, -limit), limit) / sigma
        learn_x(p, s, arm, x, 1.0 / (ALPHA * sigma * sigma))
        times(s.P[m], x, s.work[1])
        for i in range(x.shape[0]):
            theta[i] += gradient * s.work[1, i]
        norm = math.sqrt(dot(theta, theta))
        if norm > p.S:
            for i in range(x.shape[0]):
                theta[i] *= p.S / norm
        count_reward(p, s, arm)


def beta(p: Any, d: int, t: float) -> float:
    """Return the factor of the width in round t of an arm."""
    return p.scale * (p.width * t**p.power + math.sqrt(d * (2.0 + 4.0 * p.S * p.S)))
