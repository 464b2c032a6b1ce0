"""LB-SDA (Baudry, Russac, Cappe 2021), with its limited memory and its sliding window, in O(1) time per duel.

The sum of an arm's last n rewards is a difference of two stored sums (:mod:`robandit.policies._parts.blocks`). With a limited
memory or a window, each reward is also stored itself. When an arm's room is full and half of its rewards are no longer used, the
others move to the front and are summed again from zero. So memory is bounded, and digits that were lost to an old outlier return.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.blocks import HIGH, LOW, KeepsSums, add_reward, empty_sums, two_sum
from robandit.policies._parts.records import params_of, state_of
from robandit.policies._parts.reward_store import FULL, ROOM, START, USED
from robandit.policies.assumptions import ONE_FAMILY
from robandit.policies.base import Policy
from robandit.policies.facts import Facts
from robandit.policies.index import count_tried, no_pulls
from robandit.policies.sampling.rounds import (
    DRAWN,
    LEADER,
    PROPOSED,
    ROUND,
    SINCE,
    WINS,
    WON,
    Rounds,
    excess,
    excess_of_mean,
    no_rounds,
    select_in_round,
    settle,
)
from robandit.validation import choice, integer, invalid

ALL, LIMITED, WINDOW = 0, 1, 2  # which rewards are used
TOTAL, LIVE = 0, 1  # rows of ``counts``: rewards of an arm, and those in use
REWARD = 2  # column of the pool, after HIGH and LOW, unless all rewards are used
LEAST_MEMORY = 10.0  # rewards per arm, as in the authors' code
LARGEST_WINDOW = 10_000_000
SEEN = 0  # in ``recent``: the rewards so far; their arms follow


class LBSDA(Rounds, KeepsSums, Policy):
    """Compare each arm with as many of the leader's last rewards. It needs no parameters, and nothing is random.

    The leader is the arm with the most rewards. Each other arm with fewer, say n, challenges it: it is pulled if its mean is at
    least the mean of the leader's LAST n rewards, or if n is at most ``sqrt(log r)`` in round r. If no challenger is pulled, the
    leader is. Scaling or shifting all rewards changes no decision. Use it for light tails of unknown scale, and as a baseline
    without tuning. Do not use it for heavy tails: one outlier among the leader's last rewards decides many duels. With a window it
    follows laws that change.

    Several arms may be pulled in one round, in the order of the arms. Among arms with equally many rewards, the one with the larger
    mean leads, then the leader before. A late reward counts when it arrives. Memory grows with the number of rewards in use.

    Parameters
    ----------
    memory
        ``"all"``: store all rewards. ``"limited"`` (LB-SDA-LM): store the last ``max(10, (log r)^2)`` rewards of each arm, rounded
        up, and compare their means. Who leads, and who is forced, still depends on all rewards.
    window
        The number of last rewards, of all arms together, that are used (SW-LB-SDA); None for no window. With C changes: ``sqrt(T
        log T / C)``.

    Guarantee
    ---------
    Regret is asymptotically ``sum gap/KL log T``, the best possible, if the rewards of all arms belong to the same one-parameter
    exponential family (Bernoulli, Poisson, Gaussian with a known variance). The same holds with a limited memory. With a window
    tuned to a known number C of changes, regret is at most ``sqrt(C T log T)`` up to a constant, for such families. Nothing is
    proved for heavy tails. Requires no prior knowledge, but C for the window. Anytime and deterministic.

    The duels, the limited memory and the rules for the window are those of the authors' public code (github.com/YRussac/LB-SDA).
    Of the paper only the abstract was available. It confirms optimality, also with a limited memory, and the known number of
    changes; the tuning of the window and its rate are reconstructed. The code forces arms with fewer than ``(log r)^(1/3)``
    rewards, or ``(log window)^(1/3)``, and names the square root as the other option, which is used here with "at most".

    The rules for a window, where all counts are of rewards in the window: Every arm with at most ``sqrt(log window)`` rewards is
    pulled, whether or not it has fewer than the leader. An arm with more rewards than the leader duels with all of the leader's.
    The leader changes only to an arm of the last round that has at least its share ``min(r, window)/K``, unless the leader has less
    than half of that. And an arm with at most ``(log window)^2`` rewards is pulled if neither it nor the leader was pulled for
    ``(K-1) (log window)^2`` rounds under the same leader. The authors break further ties at random; here the lowest arm wins.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.gaussian(means=[0.0, 1.0], sd=1.0)
    >>> result = rb.simulate(rb.LBSDA(), problem, horizon=2000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.02 * 1000)  # uniform play: 1000
    True

    References
    ----------
    D. Baudry, Y. Russac, O. Cappe. On limited-memory subsampling strategies for bandits. ICML 2021, PMLR 139.
    """

    memory: Literal["all", "limited"] = "all"
    window: int | None = None

    use_when = "tails are light and their scale is unknown"
    label = "LB-SDA"
    about = Facts(
        assumption=ONE_FAMILY,
        bound="that of Baudry, Russac and Cappe",
        instance="sum gap/KLinf(arm, best mean) log T",
        citation="Baudry, Russac, Cappe 2021",
        source="the authors' code",
        notes=("KLinf is over the exponential family of the arms. The bound does not cover heavy tails.",),
    )

    @property
    def facts(self) -> Facts:
        facts = super().facts
        if self.window is None:
            return facts
        return dataclasses.replace(facts, instance="", notes=(), title="LB-SDA, sliding window")

    def validate(self) -> None:
        choice(self.memory, "memory", ("all", "limited"), owner="LBSDA")
        if self.window is not None:
            integer(self.window, "window", 2, LARGEST_WINDOW, owner="LBSDA")
            if self.memory != "all":
                rule, hint = "'all' if there is a window", "a window limits it already"
                raise invalid("memory", self.memory, rule, owner="LBSDA", hint=hint)

    def params(self) -> Any:
        if self.window is None:
            return params_of(mode=LIMITED if self.memory == "limited" else ALL, window=0, forced=0.0, rare=0.0)
        level = math.log(self.window)  # up to ``forced`` rewards an arm is forced, up to ``rare`` it needs diversity
        return params_of(mode=WINDOW, window=self.window, forced=math.sqrt(level), rare=level * level)

    def init(self, arms: int, horizon: int | None) -> Any:
        bounded = self.window is not None or self.memory == "limited"
        pool, slots = empty_sums(arms, None, 3) if bounded else empty_sums(arms, horizon)
        length = 0 if self.window is None else self.window
        clock, duels = no_rounds(arms)
        return state_of(
            pool=pool,
            slots=slots,
            pulls=no_pulls(arms),
            counts=np.zeros((2, arms), dtype=np.int64),
            totals=np.zeros((arms, 2)),  # sums of all rewards, with a limited memory
            recent=np.zeros(1 + (length if horizon is None else min(length, horizon)), dtype=np.int64),
            clock=clock,
            duels=duels,
        )

    def grow(self, state: Any) -> Any:  # type: ignore[override]
        if self.params().mode != ALL:
            drop_unused(state)
        return super().grow(state)

    @staticmethod
    def select(p: Any, s: Any) -> int:
        return select_in_round(propose, p, s)

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float) -> None:
        add_reward(s.pool, s.slots, arm, reward)
        s.counts[TOTAL, arm] += 1
        s.clock[PROPOSED] = 0
        if s.counts[TOTAL, arm] == 1:
            count_tried(s)
        if p.mode == ALL:
            s.counts[LIVE, arm] += 1
        else:
            s.pool[s.slots[arm, START] + s.slots[arm, USED] - 1, REWARD] = reward
            forget_old(p, s, arm, reward)

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        n = s.counts[LIVE, arm]
        out[0] = math.nan
        out[1] = n
        if n > 0:
            high, low = last_sum(s, arm, n)
            out[0] = (high + low) / n


def last_sum(s: Any, arm: int, n: int) -> tuple[float, float]:
    """Return the sum of the arm's last n rewards as a pair of numbers."""
    if n == 0:
        return 0.0, 0.0
    last = s.slots[arm, START] + s.slots[arm, USED] - 1
    if n == s.slots[arm, USED]:
        return s.pool[last, HIGH], s.pool[last, LOW]
    total, lost = two_sum(s.pool[last, HIGH], -s.pool[last - n, HIGH])
    return total, lost + (s.pool[last, LOW] - s.pool[last - n, LOW])


@out_of_line
def forget_old(p: Any, s: Any, arm: int, reward: float) -> None:
    """Count the rewards in use after a new one of this arm. If half of its full room is not used, free it."""
    if p.mode == WINDOW:
        cell = 1 + s.recent[SEEN] % p.window
        if s.recent[SEEN] >= p.window:
            s.counts[LIVE, s.recent[cell]] -= 1
        s.recent[cell] = arm
        s.recent[SEEN] += 1
        s.counts[LIVE, arm] += 1
    else:
        total, lost = two_sum(s.totals[arm, HIGH], reward)
        s.totals[arm, HIGH] = total
        s.totals[arm, LOW] += lost
        level = math.log(float(max(1, s.clock[ROUND])))
        if s.counts[LIVE, arm] < max(LEAST_MEMORY, level * level):
            s.counts[LIVE, arm] += 1
    live, used, start = s.counts[LIVE, arm], s.slots[arm, USED], s.slots[arm, START]
    if used == s.slots[arm, ROOM] and 2 * live <= used:
        s.slots[arm, USED] = 0
        for row in range(start + used - live, start + used):
            kept = s.pool[row, REWARD]
            add_reward(s.pool, s.slots, arm, kept)
            s.pool[start + s.slots[arm, USED] - 1, REWARD] = kept
        s.slots[s.slots.shape[0] - 1, FULL] = 0


def drop_unused(state: Any) -> None:
    """Remove rewards that are no longer used where they are at least half, except the one before, whose sum is needed."""
    for arm, live in enumerate(state.counts[LIVE].tolist()):
        start, used = state.slots[arm, START], state.slots[arm, USED]
        if 2 * (live + 1) <= used:
            state.pool[start : start + live + 1] = state.pool[start + used - live - 1 : start + used].copy()
            state.slots[arm, USED] = live + 1


@out_of_line
def propose(p: Any, s: Any) -> None:
    """Find the leader and the challengers that win, among the allowed arms."""
    arms = s.allowed.shape[0]
    if p.mode == WINDOW:
        propose_in_window(p, s)
        return
    leader = -1
    for arm in range(arms):
        s.duels[WINS, arm] = 0
        if s.allowed[arm] and (leader < 0 or leads(p, s, TOTAL, arm, leader)):
            leader = arm
    most = s.counts[TOTAL, leader]
    forced = math.sqrt(math.log(s.clock[ROUND] + 1.0))
    winners = 0
    for arm in range(arms):
        n = s.counts[TOTAL, arm]
        if s.allowed[arm] and n < most and (n <= forced or wins(s, arm, leader)):
            s.duels[WINS, arm] = 1
            winners += 1
    settle(s, leader, winners)


def leads(p: Any, s: Any, row: int, arm: int, other: int) -> bool:
    """Return whether the arm leads before the other, which is a lower one: by rewards, then by their sum, then if it led before."""
    n, m = s.counts[row, arm], s.counts[row, other]
    if n != m:
        return n > m
    if p.mode == LIMITED:
        above = excess(s.totals[arm, HIGH], s.totals[arm, LOW], s.totals[other, HIGH], s.totals[other, LOW])
    else:
        high, low = last_sum(s, arm, n)
        other_high, other_low = last_sum(s, other, n)
        above = excess(high, low, other_high, other_low)
    return above > 0.0 or (above == 0.0 and s.clock[LEADER] == arm)


def wins(s: Any, arm: int, leader: int) -> bool:
    """Return whether the arm's mean is at least that of as many of the leader's last rewards (all, if the leader has fewer)."""
    n, m = s.counts[LIVE, arm], s.counts[LIVE, leader]
    high, low = last_sum(s, arm, n)
    if n <= m:
        leader_high, leader_low = last_sum(s, leader, n)
        return excess(high, low, leader_high, leader_low) >= 0.0
    leader_high, leader_low = last_sum(s, leader, m)
    return excess_of_mean(high, low, n, leader_high, leader_low, m) >= 0.0


@out_of_line
def propose_in_window(p: Any, s: Any) -> None:
    """Find the leader and the arms to pull by the rules of the sliding window."""
    arms = s.allowed.shape[0]
    n, duels, clock = s.counts[LIVE], s.duels, s.clock
    r = clock[ROUND] + 1
    count = 0
    for arm in range(arms):
        duels[WINS, arm] = 0
        count += 1 if s.allowed[arm] else 0
    share = min(r, p.window) / count
    before = clock[LEADER]
    free = before < 0 or not s.allowed[before] or n[before] < 0.5 * share
    leader = -1
    for arm in range(arms):
        eligible = free or arm == before or (duels[WON, arm] == 1 and n[arm] >= share)
        if s.allowed[arm] and eligible and (leader < 0 or leads(p, s, LIVE, arm, leader)):
            leader = arm
    since = r if leader != before else clock[SINCE]
    rounds = int((count - 1) * p.rare)
    stuck = r - since >= rounds and r - duels[DRAWN, leader] >= rounds
    winners = 0
    for arm in range(arms):
        if not s.allowed[arm]:
            continue
        won = n[arm] <= p.forced
        if arm != leader:
            won = won or wins(s, arm, leader)
            won = won or (stuck and r - duels[DRAWN, arm] >= rounds and n[arm] <= p.rare)
        if won:
            duels[WINS, arm] = 1
            winners += 1
    settle(s, leader, winners)
