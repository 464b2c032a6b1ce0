"""Thompson sampling for normal rewards with unknown means and variances (Honda, Takemura 2014)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from robandit.kernel.types import Floats
from robandit.policies._parts.counting import Counting
from robandit.policies._parts.records import params_of, state_of
from robandit.policies.assumptions import NORMAL
from robandit.policies.base import Policy
from robandit.policies.classic.moments_policy import COUNT, MOMENTS, SHIFT, SUM, add_reward, mean_of, variance_of
from robandit.policies.facts import Facts
from robandit.policies.index import IndexHooks, count_tried, first_untried, no_pulls, select_by_score
from robandit.policies.sampling.largest_draw import chance_of_largest
from robandit.policies.sampling.student import student_draw
from robandit.validation import within

LARGEST_VARIANCE = 1e300  # replaces one that overflows, so that draws stay finite
LARGEST_ALPHA = 1000.0


class GaussianTS(Counting, Policy):
    """Thompson sampling: draws a mean from the posterior of a normal model for every arm, and pulls the arm with the largest draw.

    Use it when rewards are close to normal, or as the usual Bayesian baseline. Scaling or shifting all rewards changes no decision.
    Do not use it for heavy tails: one huge loss of the best arm lowers its posterior mean for long.

    Parameters
    ----------
    alpha
        The prior is proportional to (sigma^2)^(-1-alpha). The default -1/2 is uniform in (mean, sigma). 0 is the reference prior
        and 1/2 is Jeffreys' prior; for both, expected regret grows as a power of T.

    Guarantee
    ---------
    With alpha < 0, if all arms are normal, regret grows as the sum over arms of ``2 gap / log(1 + gap^2/variance) log T``, which no
    policy beats (Theorem 1 of the paper); with alpha >= 0 this fails (Theorem 2). Requires no prior knowledge. Anytime and
    randomised. Every arm is pulled max(2, 3 - floor(2 alpha)) times first, 4 times by default. The posterior was derived again; the
    start rule and the numbers of the theorems are reconstructed, and were not checked against the paper's text.

    Propensities are computed by integration, with errors below 1e-7. Memory is constant per arm.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.Problem([rb.laws.Gaussian(mean=0.0, sd=1.0), rb.laws.Gaussian(mean=1.0, sd=1.0)])
    >>> result = rb.simulate(rb.GaussianTS(), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.1 * 500)  # uniform play: 500
    True

    References
    ----------
    J. Honda, A. Takemura. Optimality of Thompson sampling for Gaussian bandits depends on priors. AISTATS 2014, PMLR 33.
    """

    alpha: float = -0.5

    use_when = "rewards are close to normal, and choices may be random"
    label = "Gaussian TS"
    columns = ("mean", "scale")
    about = Facts(
        random=True,
        assumption=NORMAL,
        bound="Theorem 1 of Honda and Takemura, 2014",
        instance="sum gap / log(1 + gap^2/variance) log T",
        citation="Honda, Takemura 2014",
        source="reconstructed",
        title="Gaussian Thompson sampling",
    )

    @property
    def facts(self) -> Facts:
        facts = super().facts
        return facts if self.alpha < 0.0 else dataclasses.replace(facts, bound="", instance="")

    def validate(self) -> None:
        within(self.alpha, "alpha", -LARGEST_ALPHA, LARGEST_ALPHA, owner="GaussianTS")

    def params(self) -> Any:
        """Return alpha, and the number of first rewards. It leaves at least 2 degrees of freedom."""
        return params_of(alpha=float(self.alpha), first=float(max(2, 3 - math.floor(2.0 * self.alpha))))

    def init(self, arms: int, horizon: int | None) -> Any:
        return state_of(arms=np.zeros((arms, MOMENTS)), pulls=no_pulls(arms), rng=np.zeros(4, dtype=np.uint64))

    @staticmethod
    def select(p: Any, s: Any) -> int:
        forced = first_untried(IndexHooks.rewards, s, p.first)
        return forced if forced >= 0 else select_by_score(draw, IndexHooks.rewards, p, s)

    @staticmethod
    def chance(p: Any, s: Any, arm: int) -> float:
        forced = first_untried(IndexHooks.rewards, s, p.first)
        if forced >= 0 or not s.allowed[arm]:
            return 1.0 if forced == arm else 0.0
        return chance_of_largest(centre, scale, freedom, p, s, arm)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        add_reward(s.arms[arm], reward)
        if s.arms[arm, COUNT] == p.first:
            count_tried(s)

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = mean_of(s.arms[arm]) if s.arms[arm, COUNT] > 0.0 else math.nan
        out[1] = scale(p, s, arm) if s.arms[arm, COUNT] >= p.first else math.inf


def draw(p: Any, s: Any, arm: int) -> float:
    """Draw a mean from the arm's posterior."""
    return centre(s, arm) + math.sqrt(spread_of(s, arm)) * student_draw(freedom(p, s, arm), s.rng)


def centre(s: Any, arm: int) -> float:
    """Return the sample mean, measured from the first reward of arm 0, so that a common shift of all rewards costs no digits."""
    return (s.arms[arm, SHIFT] - s.arms[0, SHIFT]) + s.arms[arm, SUM] / s.arms[arm, COUNT]


def spread_of(s: Any, arm: int) -> float:
    """Return the sample variance S/n; it is finite."""
    return min(variance_of(s.arms[arm]), LARGEST_VARIANCE)


def freedom(p: Any, s: Any, arm: int) -> float:
    """Return nu = n + 2 alpha - 1, the posterior's degrees of freedom."""
    return s.arms[arm, COUNT] + 2.0 * p.alpha - 1.0


def scale(p: Any, s: Any, arm: int) -> float:
    """Return sqrt(S / (n nu)): the posterior of the mean is the sample mean plus this times Student's t."""
    return math.sqrt(spread_of(s, arm) / freedom(p, s, arm))
