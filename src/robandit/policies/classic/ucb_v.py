"""UCB-V (Audibert, Munos, Szepesvari 2009)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, Self

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import touched
from robandit.policies._parts.records import index_state, params_of
from robandit.policies.assumptions import BOUNDED, NOTHING
from robandit.policies.classic.moments_policy import COUNT, MOMENTS, MomentsPolicy, add_reward, mean_of, variance_of
from robandit.policies.facts import Facts
from robandit.policies.index import SLACK
from robandit.validation import positive, within

LOW, HIGH = 0, 1  # in ``seen``: the smallest and the largest reward of all arms


class UCBV(MomentsPolicy):
    """UCB policy on the sample mean and sample variance. It explores less than UCB1 where rewards vary little.

    Use it when rewards are bounded and most arms vary less than the bound allows. The default uses the range of the rewards so far,
    as a NEGATIVE CONTROL: it shows the loss of an algorithm for bounded rewards on heavy tails.

    Parameters
    ----------
    range
        Length of an interval that contains all rewards, or ``"observed"``: largest minus smallest reward of all arms so far,
        without guarantee. `informed_by` replaces ``"observed"`` by the true range if all arms are bounded.
    zeta
        Factor of the exploration E = zeta log t. The analysis needs zeta > 1.
    c
        Factor of the range in ``mean + sqrt(2 V E/n) + 3 c range E/n``.

    Guarantee
    ---------
    Regret grows as the sum over arms of ``(variance/gap + range) log T``, if all rewards lie in an interval of length
    ``range``. No bound with ``range="observed"``. Requires the range. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> policy = rb.UCBV().informed_by(problem)
    >>> policy.range
    1.0
    >>> result = rb.simulate(policy, problem, horizon=1000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 300)  # uniform play: 300
    True

    References
    ----------
    J.-Y. Audibert, R. Munos, C. Szepesvari. Exploration-exploitation tradeoff using variance estimates in multi-armed bandits.
    Theoretical Computer Science 410, 2009.
    """

    range: float | Literal["observed"] = "observed"
    zeta: float = 1.2
    c: float = 1.0

    use_when = "rewards are bounded and most arms vary little"
    label = "UCB-V"
    about = Facts(
        knows=("range",),
        assumption=BOUNDED,
        bound="Audibert et al., 2009",
        instance="sum (variance/gap + range) log T",
        citation="Audibert, Munos, Szepesvari 2009",
        source="a secondary source",
    )

    @property
    def facts(self) -> Facts:
        facts = super().facts
        if self.range != "observed" and self.zeta > 1.0:
            return facts
        unproved = dataclasses.replace(facts, bound="", instance="")
        if self.range != "observed":
            return unproved
        note = (
            "A negative control: the range is that of the rewards so far, and nothing is proved. With the true range, "
            "which must be known: sum (variance/gap + range) log T."
        )
        title = "UCB-V, observed range"
        return dataclasses.replace(unproved, knows=(), assumption=NOTHING, title=title, notes=(note,))

    @property
    def name(self) -> str:
        """The name, which marks an observed range because that is not the algorithm of the paper."""
        return super().name.replace("UCB-V", "UCB-V, observed range", 1) if self.range == "observed" else super().name

    def validate(self) -> None:
        if self.range != "observed":
            positive(self.range, "range", owner="UCBV", hint="or pass 'observed'")
        positive(self.zeta, "zeta", owner="UCBV")
        within(self.c, "c", 0.0, math.inf, owner="UCBV")

    def informed_by(self, problem: Any, *, eps: float | None = None) -> Self:
        informed = super().informed_by(problem, eps=eps)
        if informed.range != "observed":
            return informed
        ends = [end for law in problem.laws for end in law.support]
        length = float(max(ends) - min(ends))
        return dataclasses.replace(informed, range=length) if 0.0 < length < math.inf else informed

    def params(self) -> Any:
        length = 0.0 if isinstance(self.range, str) else float(self.range)
        return params_of(range=length, zeta=float(self.zeta), reach=3.0 * float(self.c) * float(self.zeta))

    def init(self, arms: int, horizon: int | None) -> Any:
        return index_state(arms, arms=np.zeros((arms, MOMENTS)), seen=np.array([math.inf, -math.inf]))

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        add_reward(s.arms[arm], reward)
        if reward < s.seen[LOW] or reward > s.seen[HIGH]:
            widen(p, s, reward)

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        spread, reach = widths(p, s, arm, level)
        return mean_of(s.arms[arm]) + spread + reach

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return the tangent. The index is concave in the level, so it stays below the tangent until the range grows."""
        spread, reach = widths(p, s, arm, level)
        mean = mean_of(s.arms[arm])
        value = mean + spread + reach
        if level <= 0.0:
            return value, 0.0, 0.0
        slack = SLACK * (abs(mean) + spread + reach)
        return value + slack, (0.5 * spread + reach) / level, math.inf


@out_of_line
def widen(p: Any, s: Any, reward: float) -> None:
    """Extend the observed range. If the policy uses it, every arm's index rises, so all lines are discarded."""
    s.seen[LOW] = min(s.seen[LOW], reward)
    s.seen[HIGH] = max(s.seen[HIGH], reward)
    if p.range == 0.0:
        for arm in range(s.arms.shape[0]):
            touched(s.lines, s.lead, arm)


def widths(p: Any, s: Any, arm: int, level: float) -> tuple[float, float]:
    """Return sqrt(2 V E/n) and 3 c range E/n, with level = log t."""
    n = s.arms[arm, COUNT]
    length = p.range if p.range > 0.0 else s.seen[HIGH] - s.seen[LOW]
    return math.sqrt(2.0 * variance_of(s.arms[arm]) * p.zeta * level / n), p.reach * length * level / n
