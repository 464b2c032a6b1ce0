"""Epsilon-greedy play on ridge regression."""

from __future__ import annotations

from functools import partial
from typing import Any

from robandit.kernel.random import uniform
from robandit.kernel.types import Floats
from robandit.policies.classic.uniform import allowed_arms, any_arm
from robandit.policies.facts import Facts
from robandit.policies.linear.model import (
    MEAN,
    WIDTH,
    Linear,
    dot,
    fill_draws,
    largest,
    model,
    ridge_step,
    upper,
)
from robandit.validation import within


def explore_or_select(fill: Any, p: Any, s: Any, x: Floats) -> int:
    """Return any arm with probability epsilon, else the arm with the largest estimate at x; untried arms come first."""
    forced = fill_draws(fill, p, s, x)
    if forced >= 0:
        return forced
    return any_arm(s.allowed, s.rng) if uniform(s.rng) <= p.epsilon else largest(upper, s)


def explored_or_selected(fill: Any, p: Any, s: Any, arm: int, x: Floats) -> float:
    """Return the probability with which `explore_or_select` returns the arm."""
    forced = fill_draws(fill, p, s, x)
    if forced >= 0 or not s.allowed[arm]:
        return 1.0 if forced == arm else 0.0
    return p.epsilon / allowed_arms(s.allowed) + (1.0 - p.epsilon if largest(upper, s) == arm else 0.0)


def estimated(p: Any, s: Any, arm: int, x: Floats) -> None:
    """Fill in the estimate at x."""
    s.draws[arm, MEAN] = dot(s.theta[model(p, arm)], x)
    s.draws[arm, WIDTH] = 0.0


class LinEpsilonGreedy(Linear):
    """Ridge regression for each arm; pulls the arm with the largest estimate at x, and sometimes a random arm.

    Use it as a simple baseline whose propensities are easy to explain. Its regret is linear, because exploration never stops.

    Parameters
    ----------
    d, shared
        As in `AdaClipTS`.
    epsilon
        The probability of pulling a uniformly random arm, from 0 to 1.

    Guarantee
    ---------
    No sublinear bound. Requires no prior knowledge. Anytime and randomised. Every arm is pulled once first.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.linear(arms=3, columns=2, noise=rb.laws.Gaussian(mean=0.0, sd=1.0))
    >>> result = rb.simulate(rb.LinEpsilonGreedy(), problem, horizon=1000, replications=10, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.3 * problem.uniform_regret(1000))
    True

    References
    ----------
    R. S. Sutton, A. G. Barto. Reinforcement learning: an introduction. MIT Press, 1998.
    """

    epsilon: float = 0.05

    use_when = "you want the simplest contextual baseline"
    label = "epsilon-greedy ridge"
    about = Facts(random=True, citation="Sutton, Barto 1998", source="a secondary source")

    def validate(self) -> None:
        super().validate()
        within(self.epsilon, "epsilon", 0.0, 1.0, owner="LinEpsilonGreedy")

    add = staticmethod(ridge_step)
    fill = staticmethod(estimated)
    select = staticmethod(partial(explore_or_select, estimated))
    chance = staticmethod(partial(explored_or_selected, estimated))
