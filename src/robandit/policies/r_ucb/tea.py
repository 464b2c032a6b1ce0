"""R-UCB-TEA (Ashutosh, Nair, Kagrecha, Jagannathan 2021), exact, in O(log) amortised time per pull.

f grows, so a reward that was counted once is counted for ever, in a running sum. Rewards beyond f(t) wait in a heap and come
back when f passes them; those beyond f at the last pull that can be made never do, and are not stored (without a horizon: f at
2^53 pulls). The next return is known in advance, so between returns and rewards the index moves with time alone, and
the lazy arg-max needs a line above ``16 f(t) log(t) / n``: it is convex in log t, so a chord will do. The term
``1 / log f(t)`` is the same for all arms and left out of comparisons.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import best_arm, lazy_state, touched
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.heap import pop_smallest, push, smallest
from robandit.policies._parts.reward_store import START, USED, empty_store, enlarged, store_full
from robandit.policies.assumptions import Assumption
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TRIED, expire_pull, log_time, no_pulls, pulls_made, take_pull, untried
from robandit.policies.r_ucb.growth import INPUTS, LOG, LOG_LOG, LOG_SQUARED, Growth, check_growth, growth, growth_kind

__all__ = ["RUCBTEA"]

PULLS_FOR_EVER = 2**53  # a live bandit that decides every microsecond passes this in 285 years

# Numbers of an arm.
COUNT = 0  # rewards
KEPT = 1  # of those, counted in SUM
SUM = 2
# Numbers of the run.
NOW = 0  # f at the last decision, or the one that is being made
LAST = 1  # f at the last pull that can be made

SLACK = 1e-12  # far above the rounding of an index


class Params(NamedTuple):
    """Which f, as a number."""

    kind: int


class State(NamedTuple):
    """See the names above; the heap of rewards beyond f; pulls made; and the lazy arg-max."""

    arms: Floats  # (arms, 3)
    reach: Floats  # NOW, LAST
    pool: Floats
    slots: Ints
    pulls: Ints
    lines: Floats
    lead: Ints


class RUCBTEA(Policy):
    """Optimism on a mean that leaves out rewards beyond a slowly growing function of time: nothing about the tails must be known.

    Adaptive in the long run only: its bound begins at a T that depends on eps and u and is large. With heavy tails and at
    usual horizons it is close to uniform play. Use it as the reference for "consistent without knowing anything". While
    f(t) is below an arm's typical rewards their mean counts as 0, which makes an arm of large losses look good.

    Parameters
    ----------
    f
        The truncation level by time: ``"log_squared"`` (the paper's experiment), ``"log"``, ``"log_log"`` or ``"corollary"``, see
        :mod:`robandit.policies.r_ucb.growth`. The paper calls its choice arbitrary and finds less regret with slower ones.
        While f <= 1         (``"corollary"``, up to t = 928) the index is infinite, so arms are pulled in turn.

    Guarantee
    ---------
    For T with 3 u log f(T) < 2 f(T)^eps, and gaps above 2 / log f(T): regret at most of the order of the sum over arms of
    ``f(T) / (1 - 2/(gap log f(T))) log T``. Must know: nothing. Anytime, not random. The rule is checked against the paper; that
    ``"log_squared"`` is the right default has confidence 0.6.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.bernoulli(means=[0.2, 0.8])
    >>> result = rb.simulate(rb.RUCBTEA(f="log"), problem, horizon=20_000, replications=5, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.5 * 6000)  # uniform play: 6000
    True

    References
    ----------
    K. Ashutosh, J. Nair, A. Kagrecha, K. Jagannathan. Bandit algorithms: letting go of logarithmic regret for
    statistical robustness. AISTATS 2021, PMLR 130.
    """

    f: Growth = "log_squared"

    label = "R-UCB-TEA"
    columns = ("mean", "index", "threshold", "share_trimmed")
    about = Facts(
        assumption=Assumption("long horizon", "T such that 3 u log f(T) < 2 f(T)^eps"),
        bound="Ashutosh et al., 2021, for gaps above 2 / log f(T)",
        instance="sum f(T) / (1 - 2/(gap log f(T))) log T",
        matches=(False, None),
        adaptive=Adaptive(True, True, True, True),
        citation="Ashutosh, Nair, Kagrecha, Jagannathan 2021",
        row=11,
        title="R-UCB-TEA",
        notes=(INPUTS,),
    )

    def validate(self) -> None:
        """A known word."""
        check_growth("RUCBTEA", self.f)

    def params(self) -> Params:
        """The word becomes a number."""
        return Params(growth_kind(self.f))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known but how large f can become."""
        last = growth(growth_kind(self.f), math.log((PULLS_FOR_EVER if horizon is None else horizon) + 1.0))
        return State(
            np.zeros((arms, 3)), np.array([0.0, last]), *empty_store(arms, 1), no_pulls(arms), *lazy_state(arms)
        )

    def grow(self, state: State) -> State:
        """More room for rewards that wait."""
        pool, slots = enlarged(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    take = staticmethod(take_pull)
    expire = staticmethod(expire_pull)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """Every arm once, then the largest index; t counts the pull that is about to be made."""
        arms = s.arms.shape[0]
        level = log_time(s)
        s.reach[NOW] = growth(p.kind, level)
        if s.pulls[arms + TRIED] < arms or s.reach[NOW] <= 1.0:
            return untried(rewards, s, 1.0 if s.pulls[arms + TRIED] < arms else math.inf)
        return best_arm(index, outlook, pulls_made, p, s, s.lines, s.lead, level)

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float) -> None:
        """Add the reward to the arm's sum, set it aside, or forget all but that it came."""
        row = s.arms[arm]
        row[COUNT] += 1.0
        size = abs(reward)
        if size <= s.reach[NOW]:
            row[SUM] += reward
            row[KEPT] += 1.0
        elif size <= s.reach[LAST]:
            push(s.pool, s.slots, arm, reward)
        if row[COUNT] == 1.0:
            s.pulls[s.arms.shape[0] + TRIED] += 1
        touched(s.lines, s.lead, arm)

    full = staticmethod(store_full)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Truncated mean, index, f(t) and the share of rewards beyond it. Nothing is moved, so asking changes nothing."""
        row = s.arms[arm]
        level = log_time(s)
        reach = growth(p.kind, level)
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


def rewards(s: State, arm: int) -> float:
    """Rewards of an arm."""
    return s.arms[arm, COUNT]


def index(p: Params, s: State, arm: int, level: float) -> float:
    """Mean + 16 f log(t) / n, with level = log t: the index without the term that all arms share. `select` sets f."""
    row = s.arms[arm]
    reach = s.reach[NOW]
    if smallest(s.pool, s.slots, arm) <= reach:
        take_back(s, arm, reach)
    return (row[SUM] + 16.0 * reach * level) / row[COUNT]


@out_of_line
def take_back(s: State, arm: int, reach: float) -> None:
    """Count the rewards that f has passed."""
    row = s.arms[arm]
    while smallest(s.pool, s.slots, arm) <= reach:
        row[SUM] += pop_smallest(s.pool, s.slots, arm)
        row[KEPT] += 1.0


def outlook(p: Params, s: State, arm: int, level: float) -> tuple[float, float, float]:
    """A chord of the width, off by less than what one more reward would change; at most to the next return."""
    row = s.arms[arm]
    n = row[COUNT]
    here = 16.0 * s.reach[NOW] * level
    until = level * (1.0 + min(0.25, 0.5 / math.sqrt(n)))
    there = 16.0 * growth(p.kind, until) * until
    slope = (there - here) / (n * (until - level))
    slack = SLACK * (abs(row[SUM]) + there) / n
    event = passing(p.kind, smallest(s.pool, s.slots, arm)) * (1.0 - SLACK)
    return (row[SUM] + here) / n + slack, slope, min(until, event)


def passing(kind: int, size: float) -> float:
    """The level at which f reaches a size that is above its first value."""
    if size == math.inf or kind == LOG:
        return size
    if kind == LOG_SQUARED:
        return math.sqrt(size)
    if kind == LOG_LOG:
        return math.exp(size)
    return math.exp((2.0 * math.log(2.0 * size)) ** 2)
