"""Probing: a policy that now and then pulls an idle arm."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from robandit.policies.base import Policy
from robandit.policies.default import DEFAULT
from robandit.policies.drift.wrapping import Following
from robandit.policies.facts import Facts

CITATION = "ours; after Cao, Wen, Kveton, Xie 2019 and Besson, Kaufmann, Maillard, Seznec 2022"


class Probing(Following, Policy):
    """Another policy with probes: an arm that was idle for too long is pulled, and pulled on while it does better than before.

    Use it if a bad arm may become good. Probes are cheap: their number grows like the square root of time, and later by one per
    mille and arm. They do not help if the best arm becomes bad: see `Restarting`.

    An arm is probed when it was idle for min(sqrt(K max(t, 100)) / rate, 1000 K) pulls at time t. When its reward arrives, the arm
    is probed again as long as the CUSUM of its normal scores z, max(0, S + z - 1/2), exceeds 1/2. The scores come from the ranks of
    its rewards (:mod:`robandit.drift.detector`), so heavy tails do no harm.

    Parameters
    ----------
    of
        The policy that makes all other choices. Policies that weight rewards by the probability of their choice are rejected.
    rate
        The rate of probes, in [0, 1]; 0 for none.

    Guarantee
    ---------
    None. The bounds of the other policy do not cover probes, and nothing is proved for changing laws.

    Examples
    --------
    >>> import robandit as rb
    >>> base = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    >>> problem = rb.problems.changing("rise", base, at=10_000)
    >>> result = rb.simulate([rb.Probing(rb.UCB1()), rb.UCB1()], problem, horizon=20_000, replications=10, seed=1)
    >>> [round(float(r)) for r in result.regret[:, :, -1].mean(axis=1)]
    [2962, 6633]

    References
    ----------
    Ours. Forced exploration at a rate of about sqrt(K log T / T): Y. Cao, Z. Wen, B. Kveton, Y. Xie. Nearly optimal adaptive
    procedure with change detection for piecewise-stationary bandit. AISTATS 2019; L. Besson, E. Kaufmann, O.-A. Maillard, J.
    Seznec. Efficient change-point detection for tackling piecewise-stationary bandits. JMLR 23, 2022. Bursts are new.
    """

    of: Any = dataclasses.field(default=DEFAULT, kw_only=False)
    rate: float = 0.1

    suffix: ClassVar[str] = "with probes"
    use_when = "a bad arm may become good: any policy, with probes"
    about = Facts(
        citation=CITATION,
        notes=("Probes and restarts are added to any policy without weights; no bound is proved for them.",),
    )
