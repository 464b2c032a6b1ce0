"""AdaKL-Proved, the variant of AdaKL-UCB with a regret theorem; :mod:`robandit.policies.adakl.trimmed_likelihood` has its index."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from robandit.kernel.lazy import best_arm, touched
from robandit.policies.adakl.trimmed_likelihood import (
    FACTOR,
    Params,
    State,
    describe,
    index,
    learn,
    level_of,
    new_state,
    outlook,
    pulls_issued,
)
from robandit.policies.adar.layout import CURRENT, IN_TOP, LIVE_ROUNDS, ROUNDS, UNLIMITED, TwoStreams, round_open
from robandit.policies.assumptions import NONPOSITIVE
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.validation import choice

LIVE_VALUES = 16_384  # limit per row, as in AdaKL-UCB


class AdaKLProved(TwoStreams, Policy):
    """UCB policy on a likelihood bound of trimmed rewards, with AdaR-UCB's assumption and rates and smaller constants.

    Half of the rewards (X) give the mean, the other half (X') the threshold, as in AdaR-UCB. The index is a Kullback-Leibler bound
    instead of an empirical Bernstein bound. Use it if you need a regret theorem and know nothing about the tails. Its proof costs
    exploration: `AdaKLUCB`, for which nothing is proved, had much less regret on every problem that we measured. Do not use it for
    right-skewed rewards such as revenue, where the assumption fails.

    Parameters
    ----------
    pulls
        ``"single"``: every pull is a separate decision. ``"double"``: a chosen arm is pulled twice, as in AdaR-UCB.

    Guarantee
    ---------
    Assume that the best arm satisfies truncated non-positivity, E[X 1{|X| > M}] <= 0 for all M >= 0 (so its mean is at most 0).
    Then for every eps in (0, 1] and u with E|X|^(1+eps) <= u, regret grows at most as ``sum_i (u / gap_i)^(1/eps) log T``, and at
    worst as ``(K log T)^(eps/(1+eps)) (u T)^(1/(1+eps))``, with either kind of pulls. Each index is a valid upper confidence bound
    with probability at least 1 - exp(-L), L = 3 log tau in round tau. The theorem is ours: docs/explanation/adakl-theorem.md has
    the proof, `robandit.theory.regret_bound` the constants. Requires no prior knowledge. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    >>> result = rb.simulate([rb.AdaKLProved(), rb.AdaRUCB()], problem, horizon=10_000, replications=5, seed=1)
    >>> [round(float(r)) for r in result.regret[:, :, -1].mean(axis=1)]
    [1706, 4693]

    References
    ----------
    Ours. After G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed
    bandits. COLT 2024, PMLR 247. The likelihood bound: J. Honda, A. Takemura. Non-asymptotic analysis of a new bandit algorithm
    for semi-bounded rewards. JMLR 16, 2015.
    """

    pulls: Literal["double", "single"] = "single"

    use_when = "you know nothing and need a proved bound with small constants"
    counts_unrewarded = False  # its index does not read `s.unrewarded`
    label = "AdaKL-Proved"
    later_fields: ClassVar[tuple[str, ...]] = ("far",)
    former_fields: ClassVar[tuple[str, ...]] = ("firsts",)
    about = Facts(
        assumption=NONPOSITIVE,
        bound="our theorem (docs/explanation/adakl-theorem.md)",
        instance="sum (u/gap)^(1/eps) log T",
        worst="K^(eps/(1+eps)) (u T)^(1/(1+eps)) (log T)^(eps/(1+eps))",
        matches=(True, True),
        adaptive=Adaptive(True, True, True, True),
        citation="ours; after Genalti, Marsigli, Gatti, Metelli 2024",
    )

    def validate(self) -> None:
        """Check the kind of pulls."""
        choice(self.pulls, "pulls", ("double", "single"), owner="AdaKLProved")

    def params(self) -> Params:
        """Return the parameter as a number."""
        return Params(double=int(self.pulls == "double"))

    def init(self, arms: int, horizon: int | None) -> State:
        """Return a state with growing buffers. A live bandit limits their size, a run with a known horizon does not."""
        rounds = LIVE_ROUNDS if horizon is None else max(horizon + 1, 2)
        limit = LIVE_VALUES if horizon is None else UNLIMITED
        return new_state(arms, FACTOR * math.log(rounds), limit)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Return the arm with the largest index. The second pull of a double round repeats the first one's arm."""
        if round_open(s):
            return s.clock[CURRENT]
        return best_arm(index, outlook, pulls_issued, p, s, level_of(s))

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        """Assign a pull to the stream with fewer pulls of the arm. With single pulls each pull is a round."""
        mark = float(TwoStreams.take(p, s, arm))
        if p.double == 0:
            s.clock[CURRENT] = -1
            if mark == IN_TOP:
                s.clock[ROUNDS] += 1
        return mark

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """Add the reward to its stream."""
        learn(s, arm, reward, mark)
        touched(s.lines, s.lead, arm)

    estimate = staticmethod(describe)
