"""R-UCB-TEA (Ashutosh, Nair, Kagrecha, Jagannathan 2021), exact, in O(log) amortised time per pull.

f grows, so a reward that is in the running sum stays in it. Rewards beyond f(t) wait in a heap until f reaches them. Rewards beyond
f at the last possible pull (without a horizon: pull 2^53) are not stored. The lazy arg-max needs a line above ``16 f(t) log(t) /
n``, which is convex in log t and stays below a chord. Comparisons omit the term ``1 / log f(t)``, which is the same for all arms.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm
from robandit.kernel.types import Floats
from robandit.policies._parts.heap import pop_smallest, push, smallest
from robandit.policies._parts.records import index_state
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, empty_store
from robandit.policies.assumptions import Assumption
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import (
    SLACK,
    IndexPolicy,
    first_forced,
    log_time,
    most_pulls,
    pulls_made,
    unanswered,
)
from robandit.policies.r_ucb.growth import INPUTS, LOG, LOG_LOG, LOG_SQUARED, Growing, Growth, growth

COUNT, KEPT, SUM = 0, 1, 2  # numbers of an arm: its rewards, and the number and sum of its rewards up to f
NOW, LAST = 0, 1  # numbers of the run: f at the latest decision, and at the last possible pull


def select_passing(index: Any, outlook: Any, level: Any, rewards: Any, first: Any, p: Any, s: Any) -> int:
    """Set f to its value at the next pull and choose an arm. While f is at most 1, this is the arm with the fewest pulls."""
    now = level(p, s)
    s.reach[NOW] = growth(p.f, now)
    arm = first_forced(rewards, s, first(p))
    if arm >= 0:
        return arm
    if s.reach[NOW] <= 1.0:
        arm = unanswered(rewards, s, math.inf)
        if arm >= 0:
            return arm
    return best_arm(index, outlook, pulls_made, p, s, now)


class RUCBTEA(Growing, KeepsRewards, IndexPolicy):
    """UCB policy on a truncated mean, whose threshold grows slowly with time; it needs no prior knowledge of the tails.

    Its bound begins at a large T that depends on eps and u; with heavy tails and at usual horizons it is close to uniform play. Use
    it as the baseline for policies that are consistent without prior knowledge. While f(t) is below an arm's typical rewards, their
    mean counts as 0.

    Parameters
    ----------
    f
        The truncation level: ``"log_squared"`` (the paper's experiment), ``"log"``, ``"log_log"`` or ``"corollary"`` (see
        :mod:`robandit.policies.r_ucb.growth`). While f <= 1 (``"corollary"``, up to t = 928) arms are pulled in turn.

    Guarantee
    ---------
    For T with 3 u log f(T) < 2 f(T)^eps, and gaps above 2 / log f(T), regret is at most of the order of the sum over arms of ``f(T)
    / (1 - 2/(gap log f(T))) log T``. Requires no prior knowledge. Anytime and deterministic. The rule was checked against the
    paper.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.RUCBTEA(f="log"), problem, horizon=20_000, replications=5, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.5 * 6000)  # uniform play: 6000
    True

    References
    ----------
    K. Ashutosh, J. Nair, A. Kagrecha, K. Jagannathan. Bandit algorithms: letting go of logarithmic regret for statistical
    robustness. AISTATS 2021, PMLR 130.
    """

    f: Growth = "log_squared"

    use_when = "you want a baseline that adapts in the long run"
    label = "R-UCB-TEA"
    columns = ("mean", "index", "threshold", "share_trimmed")
    about = Facts(
        assumption=Assumption("long horizon", "T such that 3 u log f(T) < 2 f(T)^eps"),
        bound="Ashutosh et al., 2021, for gaps above 2 / log f(T)",
        instance="sum f(T) / (1 - 2/(gap log f(T))) log T",
        matches=(False, None),
        adaptive=Adaptive(True, True, True, True),
        citation="Ashutosh, Nair, Kagrecha, Jagannathan 2021",
        source="the paper",
        row=11,
        notes=(INPUTS,),
    )

    def init(self, arms: int, horizon: int | None) -> Any:
        reach = np.array([0.0, growth(self.params().f, math.log(most_pulls(horizon) + 1.0))])
        pool, slots = empty_store(arms, 1)
        return index_state(arms, arms=np.zeros((arms, 3)), reach=reach, pool=pool, slots=slots)

    select = staticmethod(partial(select_passing))

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        row = s.arms[arm]
        row[COUNT] += 1.0
        size = abs(reward)
        if size <= s.reach[NOW]:
            row[SUM] += reward
            row[KEPT] += 1.0
        elif size <= s.reach[LAST]:
            push(s.pool, s.slots, arm, reward)

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, SUM] / s.arms[arm, COUNT]

    @staticmethod
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return mean + 16 f log(t) / n, the index without the term that all arms share, with level = log t and f from `select`."""
        row = s.arms[arm]
        reach = s.reach[NOW]
        if smallest(s.pool, s.slots, arm) <= reach:
            take_back(s, arm, reach)
        return (row[SUM] + 16.0 * reach * level) / row[COUNT]

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return a chord, above the index by less than the effect of one reward. It ends before a waiting reward is added."""
        row = s.arms[arm]
        n = row[COUNT]
        now = 16.0 * s.reach[NOW] * level
        until = level * (1.0 + min(0.25, 0.5 / math.sqrt(n)))
        later = 16.0 * growth(p.f, until) * until
        slope = (later - now) / (n * (until - level))
        slack = SLACK * (abs(row[SUM]) + later) / n
        event = passing(p.f, smallest(s.pool, s.slots, arm)) * (1.0 - SLACK)
        return (row[SUM] + now) / n + slack, slope, min(until, event)

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        """Fill in the truncated mean, the index, f(t) and the share of rewards beyond f(t), without changing the state."""
        row = s.arms[arm]
        level = log_time(s)
        reach = growth(p.f, level)
        out[0] = out[3] = math.nan
        out[1] = math.inf
        out[2] = reach
        if row[COUNT] > 0.0:
            total = row[SUM]
            kept = row[KEPT]
            for j in range(s.slots[arm, USED]):
                value = s.pool[0, s.slots[arm, START] + j]
                if abs(value) <= reach:
                    total += value
                    kept += 1.0
            out[0] = total / row[COUNT]
            out[3] = 1.0 - kept / row[COUNT]
            if reach > 1.0:
                out[1] = out[0] + 1.0 / math.log(reach) + 16.0 * reach * level / row[COUNT]


@out_of_line
def take_back(s: Any, arm: int, reach: float) -> None:
    """Add the waiting rewards that f has reached."""
    row = s.arms[arm]
    while s.slots[arm, USED] > 0 and smallest(s.pool, s.slots, arm) <= reach:
        row[SUM] += pop_smallest(s.pool, s.slots, arm)
        row[KEPT] += 1.0


def passing(kind: int, size: float) -> float:
    """Return the level at which f reaches a given size, which must be above its first value."""
    if size == math.inf or kind == LOG:
        return size
    if kind == LOG_SQUARED:
        return math.sqrt(size)
    if kind == LOG_LOG:
        return math.exp(size)
    root = 2.0 * math.log(2.0 * size)
    return math.exp(root * root)
