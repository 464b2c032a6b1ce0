"""AdaKL-UCB, the default policy; :mod:`robandit.policies.adakl.clipped_index` has its index."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from robandit.kernel.lazy import best_arm, forget_lines, touched
from robandit.kernel.types import Floats
from robandit.policies._parts.waiting import lowered
from robandit.policies.adakl.centre import FIRST
from robandit.policies.adakl.clipped_index import (
    ABOVE,
    BIG,
    CENTRE,
    CHOSEN,
    CLIPPED,
    CUT,
    LEADER,
    LEARNED,
    PROFILE_NEXT,
    PULLS,
    TAIL_NEXT,
    TAKEN,
    THRESHOLD,
    UP,
    N,
    Params,
    State,
    collect,
    index,
    learn,
    level_of,
    most_rewarded,
    new_state,
    outlook,
    pulls_made,
    renew_profile,
    renew_tail,
)
from robandit.policies.adakl.clusters import total_of
from robandit.policies.adar.layout import FALLBACKS, LIVE_ROUNDS, UNLIMITED, Buffered
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts

# Chosen on other seeds than docs/results reports; docs/explanation/adakl.md has the alternatives.
THRESHOLD_C = 2.5
GUARD = 3.0 * THRESHOLD_C  # rewards per unit of L from which the clipped bound is used
LEAST_TAIL = 0.25
KNOWN = 0.3
FEW = 24.0
BORROW = 1.5
SEEN = 2.0
# Limit per row. Only adversarial data reach it: independent data need 16 c L for the threshold and about 80 L for l.
LIVE_VALUES = 16_384


class AdaKLUCB(Buffered, Policy):
    """UCB policy on a likelihood bound about each arm's median, which needs no prior knowledge and learns early.

    The policy to start with if you know nothing about the rewards: costs, latencies, losses, symmetric rewards, revenue. Either
    tail may be heavy. Differences from AdaR-UCB: (1) The index is a Kullback-Leibler bound, the largest mean that the rewards do
    not contradict, instead of an empirical Bernstein bound. (2) Rewards are measured from the arm's median, not from 0, so a
    constant added to all rewards changes nothing. (3) Rewards beyond the threshold are clipped at it, not trimmed. (4) Every
    reward serves both the threshold and the mean. (5) Arms are compared like for like: an arm with few rewards gets credit for the
    rare, huge rewards that it cannot have seen yet, if the leader has such rewards. (6) Pulls without a reward, because it is still
    to come or lost, count as pulls that said nothing. An arm that alone has a heavy right tail, and a low median, may be missed.

    Do not use it if you need a proved bound on the regret (`AdaKLProved`, `AdaRUCB`, `ForceMoM`), or if rewards lie in a known
    interval (`UCBV`, `IMED`). Rewards that are mostly 0 and rarely large, such as the orders of visitors of whom one in ten buys,
    are hard for every policy, this one included. `robandit.recommend` decides between policies.

    The rule, in round tau with K arms: the level is L = log(1 + (tau - 1)/K), and c = 2.5. Rewards are measured from the centre of
    their arm: the median of its first 1, 2, 4, ..., 128 rewards, which then stays fixed. The index is the smaller of two likelihood
    bounds, plus what the arm borrows. The first bound uses rewards clipped at the threshold, once over 3 c L of an arm's rewards
    differ from the centre. The second uses all rewards as they are, as if none could exceed the centre by over exp(L/(n - 1)) times
    the largest excess so far. The level of both bounds is at most L. It is lower if left tails are light, and for arms with many
    rewards. An arm with fewer rewards than the leader borrows 1.5 times what the leader's mean owes to rewards that the arm cannot
    have seen yet. An arm is forced with fewer than two rewards, or none above the centre while n is at most 4 times its level. With
    unrewarded pulls, m is n plus their number: the level is that of m rewards times n/m, and an arm with fewer than two rewards is
    forced only while m < max(2, 4 L), one with none above the centre while m is at most 4 times its level; then it waits.

    Guarantee
    ---------
    Nothing is proved. The evidence is measured (docs/results/heavy.md; docs/explanation/adakl.md has what was tried). Requires no
    prior knowledge. Anytime and deterministic.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)
    >>> result = rb.simulate([rb.AdaKLUCB(), rb.AdaRUCB()], problem, horizon=10_000, replications=20, seed=1)
    >>> [round(float(r)) for r in result.regret[:, :, -1].mean(axis=1)]
    [56, 4692]

    References
    ----------
    Ours. After G. Genalti, L. Marsigli, N. Gatti, A. M. Metelli. (epsilon, u)-adaptive regret minimization in heavy-tailed
    bandits. COLT 2024, PMLR 247. The likelihood bound: J. Honda, A. Takemura. Non-asymptotic analysis of a new bandit algorithm
    for semi-bounded rewards. JMLR 16, 2015.
    """

    use_when = "you know nothing about the rewards: start with this one"
    label = "AdaKL-UCB"
    counts_unrewarded = True
    former_parameters: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("schedule", "center", "pulls"),
        'it is gone since Robandit 0.3. AdaKLUCB() is what schedule="adaptive" was, and AdaKLProved() what schedule="proved" with '
        "center=None was; Robandit 0.2.0 plays the others",
    )
    later_fields: ClassVar[tuple[str, ...]] = ("far",)
    about = Facts(
        adaptive=Adaptive(True, True, True, True),
        citation="ours; after Genalti, Marsigli, Gatti, Metelli 2024",
        title="AdaKL-UCB",
    )

    def params(self) -> Params:
        """Return the constants of the rule."""
        return Params(c=THRESHOLD_C, guard=GUARD, least=LEAST_TAIL, known=KNOWN, few=FEW, borrow=BORROW, seen=SEEN)

    def init(self, arms: int, horizon: int | None) -> State:
        """Return a state with growing buffers. A live bandit limits their size, a run with a known horizon does not."""
        rounds = LIVE_ROUNDS if horizon is None else max(horizon + 1, 2)
        limit = LIVE_VALUES if horizon is None else UNLIMITED
        return new_state(arms, self.params(), math.log(rounds), limit)

    def forget_choice(self, state: Any) -> None:
        """Discard the leader of the arg-max; and all lines, because an arm borrows only from a leader that is allowed."""
        super().forget_choice(state)
        forget_lines(state.lines)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Return the arm with the largest index."""
        return best_arm(index, outlook, pulls_made, p, s, level_of(s))

    @staticmethod
    def waiting(p: Params, s: State, shifts: Floats) -> int:
        """Return the arm with the largest index minus its shift."""
        return lowered(index, pulls_made, p, s, level_of(s), shifts)

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """Count a pull whose reward is still to come."""
        s.counts[arm, PULLS] += 1
        s.clock[TAKEN] += 1
        return 1.0

    @staticmethod
    def expire(p: Params, s: Any, arm: int, mark: float) -> None:
        """Do nothing: the pull stays counted. By the rule of 0.2, remove it from the arm's pulls, which decide ties."""
        if s.unrewarded[s.counts.shape[0]] == 0:
            s.counts[arm, PULLS] -= 1

    @staticmethod
    def update(p: Params, s: Any, arm: int, reward: float) -> None:
        """Learn a reward, and renew g and the leader's profile when that is due."""
        if s.counts[arm, N] < FIRST:
            collect(s, arm, reward)
        else:
            learn(s, arm, reward)
        s.clock[LEARNED] += 1
        if s.clock[LEARNED] >= s.clock[TAIL_NEXT]:
            renew_tail(p, s)
        leader = s.clock[LEADER]
        if leader < 0 or not s.allowed[leader] or s.counts[arm, N] > s.counts[leader, N]:
            s.clock[LEADER] = most_rewarded(s, arm)
            renew_profile(p, s, s.clock[LEADER])
        elif arm == leader and s.counts[arm, N] >= s.clock[PROFILE_NEXT]:
            renew_profile(p, s, arm)
        touched(s.lines, s.lead, arm)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Fill in mean (clipped if the index uses it), index, threshold and share of rewards beyond it, for the next round."""
        fallbacks = s.clock[FALLBACKS]
        numbers = s.arms[arm]
        counts = s.counts[arm]
        out[0] = math.nan
        out[1] = index(p, s, arm, level_of(s))
        out[2] = math.nan
        out[3] = math.nan
        if out[1] < math.inf:
            first = 0
            total = s.near[arm, 0] * numbers[CUT] + total_of(s.far[arm])
            if numbers[THRESHOLD] < math.inf:
                out[2] = numbers[THRESHOLD]
                out[3] = counts[ABOVE] / counts[N]
                if numbers[CHOSEN] == CLIPPED:
                    first = counts[ABOVE]
                    total += (2.0 * counts[UP] - counts[ABOVE]) * numbers[THRESHOLD]
            for j in range(first, counts[BIG]):
                total += s.buffer[arm, j]
            out[0] = numbers[CENTRE] + total / counts[N]
        s.clock[FALLBACKS] = fallbacks  # only decisions are counted
