"""KL-UCB for Bernoulli rewards (Garivier, Cappe 2011), with the exact index and a lazy arg-max."""

from __future__ import annotations

import math
from typing import Any, Self

from robandit.policies._parts.binary_kl import largest_probability
from robandit.policies._parts.records import params_of
from robandit.policies.facts import Facts
from robandit.policies.index import IndexPolicy
from robandit.policies.sampling.imed import check_ends, with_ends

COUNT, SHARES = 0, 1  # columns of ``arms``: rewards, and the sum of their shares of the interval
SLACK = 1e-12  # far above the rounding of a bound


class KLUCB(IndexPolicy):
    """Index policy whose index is the largest mean of a coin that an arm's rewards do not exclude.

    The baseline for successes and failures, where it is asymptotically optimal. It also works for other rewards in a known
    interval, as if they were coins. A reward outside counts as the end of the interval.

    Parameters
    ----------
    lower, upper
        The ends of an interval that contains all rewards: 0 and 1 for coins, -1 and 0 for failures that are costs, which is how
        ``objective="within:..."`` is learned.

    Guarantee
    ---------
    None for this version, the paper's choice in practice (c = 0): the index is the largest m with ``n KL(mean, m) <= log t``. With
    ``log t + 3 log log t``, regret grows as the sum over arms of ``gap / KL log T``, where KL is the divergence of the arm's coin
    from the best one. Requires the interval. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.KLUCB(lower=0.0, upper=1.0), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.05 * 300)  # uniform play: 300
    True

    References
    ----------
    A. Garivier, O. Cappe. The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT 2011, PMLR 19.
    """

    lower: float | None = None
    upper: float | None = None

    label = "KL-UCB"
    row_length = 2
    use_when = "rewards are successes and failures"
    about = Facts(
        knows=("lower", "upper"),
        citation="Garivier, Cappe 2011",
        source="a secondary source",
        notes=("The paper's theorem is for log t + 3 log log t; here the level is log t, its choice in practice.",),
    )

    def validate(self) -> None:
        check_ends(self)

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        if None in (self.lower, self.upper) and hasattr(problem, "reward_laws"):
            told: Self = with_ends(self, problem)
            return told
        return super().informed_by(problem, eps=eps)

    def params(self) -> Any:
        lower = float(self.lower or 0.0)
        return params_of(lower=lower, length=1.0 if self.upper is None else float(self.upper) - lower)

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        s.arms[arm, COUNT] += 1.0
        s.arms[arm, SHARES] += min(max((reward - p.lower) / p.length, 0.0), 1.0)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return p.lower + p.length * (s.arms[arm, SHARES] / s.arms[arm, COUNT])

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        n = s.arms[arm, COUNT]
        return p.lower + p.length * largest_probability(s.arms[arm, SHARES] / n, n, level)

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the tangent in log t, which is above the index because the index is concave in it."""
        n = s.arms[arm, COUNT]
        share = s.arms[arm, SHARES] / n
        bound = largest_probability(share, n, level)
        if bound <= share or bound >= 1.0:
            return p.lower + p.length * (bound + SLACK), 0.0, level if bound < 1.0 else math.inf
        slope = bound * (1.0 - bound) / (n * (bound - share))
        return p.lower + p.length * (bound + SLACK), p.length * slope * (1.0 + 1e-6), math.inf
