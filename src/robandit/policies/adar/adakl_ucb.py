"""AdaKL-UCB: AdaR-UCB's optimism with a likelihood bound, about each arm's own median.

:mod:`robandit.policies.adar.likelihood_index` has its index, :mod:`robandit.policies.adar.likelihood_state` its state.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from robandit.errors import InvalidInput
from robandit.estimators.formulas.threshold import C
from robandit.kernel.lazy import best_arm, touched
from robandit.kernel.types import Floats
from robandit.policies.adar.centre import FIRST
from robandit.policies.adar.layout import CURRENT, IN_TOP, LIVE_ROUNDS, ROUNDS, UNLIMITED, TwoStreams
from robandit.policies.adar.likelihood_index import describe, index, level_of, outlook, pulls_issued
from robandit.policies.adar.likelihood_state import N_TOP, Params, State, collect, learn, new_state
from robandit.policies.assumptions import CENTRED, NONPOSITIVE
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.validation import choice

__all__ = ["AdaKLUCB"]

PRACTICAL_C = 2.5
PRACTICAL_GUARD = 3.0 * PRACTICAL_C  # rewards per level from which the trimmed bound is used
LIVE_VALUES = (
    16_384  # per row; reached by adversarial data: independent ones need 16 c L for the threshold, about 80 L for l
)


class AdaKLUCB(TwoStreams, Policy):
    """Optimism on a likelihood bound about each arm's median: you need to know nothing, and it learns at once.

    The policy to start with when rewards have heavy left tails (costs, latencies, losses) or symmetric ones. It is AdaR-UCB
    with three changes. (1) The index is the largest mean that the trimmed rewards do not contradict, in the sense of
    Kullback-Leibler, instead of an empirical Bernstein bound. (2) Rewards are trimmed towards the arm's median, not towards 0,
    so a constant added to all rewards changes nothing. (3) The schedule. Not for right-skewed rewards such as revenue, where
    the assumption fails: see `ForceMoM` and `robandit.diagnostics.recommend`.

    Parameters
    ----------
    center
        ``"median"``: trim towards the median of an arm's first rewards (1, 2, 4, ..., 128 of them, then it stays). None:
        towards 0, as AdaR-UCB does; only with the proved schedule.
    schedule
        ``"practical"``: every reward serves both for the threshold and for the mean; L = log(1 + (tau - 1)/K) in round tau; c =
        2.5. The index is the smaller of two bounds: the likelihood bound of the trimmed rewards, once an arm has over 3 c L
        rewards other than the centre; and that of the untrimmed rewards, as if none could lie further above the centre than
        exp(L/(n - 1)) times the farthest seen. Exploration is forced only for arms with fewer than two rewards, and for arms
        without a reward above the centre, while n <= 4 L.

        ``"proved"``: L = 3 log tau, to which the bound adds log(e (n + 2)); c = (1 + sqrt 2)^2; half of the rewards are for the
        centre and the threshold and half for the mean; an arm is explored while the former are at most 3 c L (c L without a
        centre), not counting those equal to the centre.
    pulls
        ``"single"``: every pull is a decision. ``"double"``: a chosen arm is pulled twice, as in AdaR-UCB.

    Guarantee
    ---------
    No regret theorem, for either schedule. Proved, for ``schedule="proved"`` and given the centre: each index is a valid upper
    confidence bound with probability at least 1 - exp(-L) under truncated non-positivity about the centre, E[(X - m) 1{|X - m|
    > M}] <= 0 for all M >= 0. That holds for laws that are left-skewed by more than the error of the centre, such as costs with
    a heavy tail. For a symmetric or nearly symmetric law it holds about the true median. The estimated median is below it half
    of the time, and with few rewards that costs validity: certainly just above c L rewards, hardly above 3 c L
    (tests/policies/adar/test_adakl_ucb.py measures it at 4 c L). Hence 3 c L. Nothing is proved for ``schedule="practical"``, whose
    figures are in docs/explanation/adakl.md. Must know: nothing. Anytime, not random.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    >>> result = rb.simulate([rb.AdaKLUCB(), rb.AdaRUCB()], problem, horizon=10_000, replications=20, seed=1)
    >>> [round(float(r)) for r in result.regret[:, :, -1].mean(axis=1)]
    [59, 4692]

    References
    ----------
    Ours. After G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed
    bandits. COLT 2024, PMLR 247. The likelihood bound: J. Honda, A. Takemura. Non-asymptotic analysis of a new bandit algorithm
    for semi-bounded rewards. JMLR 16, 2015 (from memory).
    """

    center: Literal["median"] | None = "median"
    schedule: Literal["proved", "practical"] = "practical"
    pulls: Literal["double", "single"] = "single"

    label = "AdaKL-UCB"
    about = Facts(
        assumption=CENTRED,
        adaptive=Adaptive(True, True, True, True),
        citation="ours; after Genalti, Marsigli, Gatti, Metelli 2024",
        title="AdaKL-UCB",
        notes=(
            "With schedule='proved' each index is a valid upper confidence bound with probability at least 1 - exp(-L), given the "
            "centre and under the assumption about it; a regret theorem is not proved. Nothing is proved for "
            "schedule='practical', the default.",
        ),
    )

    def validate(self) -> None:
        """Check that the options are known and fit together."""
        choice(self.center, "center", ("median", None), owner="AdaKLUCB")
        choice(self.schedule, "schedule", ("proved", "practical"), owner="AdaKLUCB")
        choice(self.pulls, "pulls", ("double", "single"), owner="AdaKLUCB")
        if self.center is None and self.schedule == "practical":
            raise InvalidInput(
                "AdaKLUCB: center = None needs schedule='proved': the practical schedule measures rewards from their median",
                parameter="center",
                rule="'median' with schedule='practical'",
            )

    @property
    def facts(self) -> Facts:
        """What is known about the algorithm; without a centre the assumption is the plain one."""
        return self.about if self.center == "median" else dataclasses.replace(self.about, assumption=NONPOSITIVE)

    def params(self) -> Params:
        """Return the parameters as numbers."""
        practical = self.schedule == "practical"
        return Params(
            c=PRACTICAL_C if practical else C,
            guard=PRACTICAL_GUARD if practical else 3.0 * C if self.center == "median" else C,
            factor=1.0 if practical else 3.0,
            practical=int(practical),
            centred=int(self.center == "median"),
            double=int(self.pulls == "double"),
        )

    def init(self, arms: int, horizon: int | None) -> State:
        """Return a state with buffers that grow: without limit for a known horizon, up to a limit in a live bandit."""
        p = self.params()
        rounds = LIVE_ROUNDS if horizon is None else max(horizon + 1, 2)
        return new_state(arms, p.c, p.factor * math.log(rounds), LIVE_VALUES if horizon is None else UNLIMITED)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Return the arm with the largest index; after the first pull of a double round, the same arm again."""
        if s.clock[CURRENT] >= 0:
            return s.clock[CURRENT]
        return best_arm(index, outlook, pulls_issued, p, s, s.lines, s.lead, level_of(p, s))

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        """Make a pull for the stream that has fewer of the arm's pulls. Only double pulls end a round later than they begin."""
        mark = float(TwoStreams.take(p, s, arm))
        if p.double == 0:
            s.clock[CURRENT] = -1
            if mark == IN_TOP:
                s.clock[ROUNDS] += 1
        return mark

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """Add the reward to its stream, or to both in the practical schedule."""
        if p.centred != 0 and s.counts[arm, N_TOP] < FIRST:
            collect(p, s, arm, reward, mark)
        else:
            learn(p, s, arm, reward, mark)
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Fill in trimmed mean (plain, if nothing is trimmed), index, threshold and share of X above it."""
        describe(p, s, arm, out)
