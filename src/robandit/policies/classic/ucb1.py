"""UCB1 (Auer, Cesa-Bianchi, Fischer 2002)."""

from __future__ import annotations

import math
from typing import Any

from robandit.policies.assumptions import BOUNDED
from robandit.policies.facts import Facts
from robandit.policies.index import SLACK, IndexPolicy
from robandit.validation import positive

SUM, COUNT = 0, 1  # columns of ``arms``


class UCB1(IndexPolicy):
    """UCB policy on the sample mean, the classical policy for rewards in an interval of known length.

    Use it when rewards are bounded (clicks, capped scores). Otherwise it has no guarantee, and some runs never find the best arm.

    Parameters
    ----------
    scale
        Length of the interval that contains the rewards; 1 for rewards in [0, 1].

    Guarantee
    ---------
    Regret at most the sum over arms of ``8 scale^2 log(T) / gap`` plus a constant, if all rewards lie in an interval of length
    ``scale``. Requires the interval's length. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.UCB1(), problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.1 * 300)  # uniform play: 300
    True

    References
    ----------
    P. Auer, N. Cesa-Bianchi, P. Fischer. Finite-time analysis of the multiarmed bandit problem. Machine Learning 47, 2002.
    """

    scale: float = 1.0

    row_length = 2
    use_when = "rewards are bounded, such as clicks, and you know the range"
    about = Facts(
        knows=("scale",),
        assumption=BOUNDED,
        bound="Theorem 1 of Auer et al.",
        instance="sum scale^2 / gap log T",
        worst="scale sqrt(K T log T)",
        notes=("Scale 1 by default; if rewards are unbounded, no scale is valid, and it serves as a control.",),
        citation="Auer, Cesa-Bianchi, Fischer 2002",
        source="a secondary source",
    )

    def validate(self) -> None:
        positive(self.scale, "scale", owner="UCB1")

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        s.arms[arm, SUM] += reward
        s.arms[arm, COUNT] += 1.0

    @staticmethod
    def rewards(s: Any, arm: int) -> float:
        return s.arms[arm, COUNT]

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, SUM] / s.arms[arm, COUNT]

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return mean + scale sqrt(2 log t / n), with level = log t."""
        n = s.arms[arm, COUNT]
        return s.arms[arm, SUM] / n + p.scale * math.sqrt(2.0 * level / n)

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the tangent, which is above the index because the index is concave in the level."""
        n = s.arms[arm, COUNT]
        width = p.scale * math.sqrt(2.0 * level / n)
        value = s.arms[arm, SUM] / n + width
        if level <= 0.0:
            return value, 0.0, 0.0
        return value + SLACK * (abs(value - width) + width), 0.5 * width / level, math.inf
