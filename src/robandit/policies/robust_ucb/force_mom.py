"""ForceMoM (Dewasurendra 2026): forced exploration on a schedule, and a median of means; in O(1) amortised time per pull.

A pull is forced or greedy by a schedule of t alone. Greedy pulls teach nothing, so the best arm changes only after a forced one,
and is remembered until then; only where two arms share the largest estimate are all looked at again, since a tie goes to the
fewest pulls. Block means come from sums that lose no digits (:mod:`robandit.policies._parts.blocks`), for the
arms with a new reward only.

The schedule is a power of t. From the forced pulls so far follows a time before which none is due, and until then the power is not
looked at. That time is taken a little early, by more than rounding can be wrong: decisions are those of the formula.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats, Ints
from robandit.policies._parts.blocks import add_reward, block_median, empty_sums, enlarged_sums
from robandit.policies._parts.reward_store import USED, store_full
from robandit.policies.base import Policy, check_number
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TAKEN, TRIED, no_pulls, take_pull, untried

__all__ = ["ForceMoM"]

# What became of a pull, as its mark says.
GREEDY = 0.0  # its reward is not looked at
FORCED = 1.0
KEPT = 2.0  # its reward is stored, but nobody forced it: the schedule does not count it

# Numbers of an arm.
MEAN = 0
REACH = 1  # how far from MEAN to look for the next
OLD = 2  # whether there are rewards that MEAN does not know

# The plan.
DONE = 0  # forced pulls so far
LEAST = 1  # those at the start
WAIT = 2  # the time before which none is due
TURN = 3  # whose turn it is, -1: to be found
BEST = 4  # the best arm, -1: to be found
PLAN = 5  # after these: the forced pulls of each arm

FOR_EVER = 2**62
LOG_FOR_EVER = 42.0
EARLY = 1e-13  # far above the rounding of a power, and of its exponent


class Params(NamedTuple):
    """``rho`` as a number."""

    rho: float


class State(NamedTuple):
    """See the names above; pulls made; sums of the stored rewards."""

    arms: Floats  # (arms, 3)
    plan: Ints
    pulls: Ints
    scratch: Floats
    pool: Floats
    slots: Ints


class ForceMoM(Policy):
    """Explore on a fixed schedule, else play the arm with the largest median of means: nothing is known, nothing is assumed.

    The other policies that must be told nothing have a guarantee only under a condition on the shape of the rewards (as truncated
    non-positivity), or only from some time on. This one has it for all rewards with some finite moment of order above 1. So it is
    the one for right-skewed rewards, such as revenue, whose order and scale are unknown. The price: regret on every problem is at
    least that of the schedule, about ``K^(1-rho) T^rho`` pulls of any arm, where others reach log T; and by design it never uses
    the rewards of greedy pulls, which are nearly all. Decisions do not depend on the unit of the rewards, nor on a constant added.

    With K arms, round t is for the next arm in turn if fewer than ``max(K m0, ceil(K^(1-rho) t^rho))`` pulls were forced so far,
    where ``m0 = ceil(16 log(2K + e))``; else for the arm whose stored rewards, those of forced pulls, have the largest median of
    means. Of n rewards it makes q blocks of floor(n/q) in a row; q is the largest odd number that exceeds neither n nor
    ``2 ceil(log(2K) + log log(e^e + n)) + 1``.

    Whether a pull is forced is decided when it is made: its reward is stored even if it comes late. A lost one is made up for. In a
    forced round the reward of an arm that you choose yourself is stored too, but not counted as a turn. While an arm has no stored
    reward, no greedy pull is chosen.

    Parameters
    ----------
    rho
        Exponent of the schedule, between 0 and 1. A larger one explores more: better in the worst case, worse on an easy problem.
        2/3 is the largest for which both bounds below are, up to slow factors, the best that can be had together for every
        order at once.

    Guarantee
    ---------
    With ``g = eps/(1+eps)``, worst-case regret is at most a constant times ``u^(1/(1+eps)) (K log(eK) + K^(1-rho) T^rho + K^(rho g)
    T^(1 - rho g) (1 + log(2K) + log log(e^e + T))^g)``, for every eps in (0, 1] and u at once. On every fixed problem, regret is
    in the limit at most ``(T/K)^rho`` times the sum of the gaps. Must know: nothing. Assumes: nothing. Anytime, not random. The
    source is a preprint of July 2026 that is not peer reviewed; the rule is that of its text.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.pareto(means=[2.0, 3.0], tail=1.5)  # right-skewed: revenue
    >>> result = rb.simulate(rb.ForceMoM(), problem, horizon=20_000, replications=20, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 10_000)  # uniform play: 10,000
    True

    References
    ----------
    P. Dewasurendra. A sharp adaptation frontier for heavy-tailed bandits with unknown moments. Preprint, July 2026.
    """

    rho: float = 2.0 / 3.0

    columns = ("mean", "stored")
    about = Facts(
        bound="Dewasurendra's two theorems (preprint)",
        instance="sum gap (T/K)^rho",
        worst=(
            "u^(1/(1+eps)) (K log K + K^(1-rho) T^rho + K^(rho eps/(1+eps)) T^(1 - rho eps/(1+eps)) "
            "(log K + log log T)^(eps/(1+eps)))"
        ),
        matches=(False, False),
        adaptive=Adaptive(True, True, True, True),
        citation="Dewasurendra 2026",
        title="ForceMoM",
        notes=(
            "ForceMoM: a preprint of July 2026, not peer reviewed. Nothing that is adaptive without an assumption can match the "
            "bounds of the non-adaptive setting; for rho <= 2/3 no other policy of that kind can have both exponents lower.",
        ),
    )

    def validate(self) -> None:
        """An exponent between 0 and 1."""
        check_number("ForceMoM", "rho", self.rho, above=0.0, below=1.0)

    def params(self) -> Params:
        """The exponent."""
        return Params(float(self.rho))

    def init(self, arms: int, horizon: int | None) -> State:
        """Nothing is known."""
        plan = np.zeros(PLAN + arms, dtype=np.int64)
        plan[LEAST] = arms * math.ceil(16.0 * math.log(2.0 * arms + math.e))
        plan[TURN] = plan[BEST] = -1
        forced = None
        if horizon is not None:
            forced = min(horizon, max(int(plan[LEAST]), math.ceil(schedule(self.rho, arms, horizon))))
        scratch = np.zeros(2 * (block_count(arms, FOR_EVER) + 1))
        return State(np.zeros((arms, 3)), plan, no_pulls(arms), scratch, *empty_sums(arms, forced))

    def grow(self, state: State) -> State:
        """More room for sums."""
        pool, slots = enlarged_sums(state.pool, state.slots)
        return state._replace(pool=pool, slots=slots)

    full = staticmethod(store_full)

    @staticmethod
    def select(p: Params, s: State) -> int:
        """The arm whose turn it is, or the best one."""
        arms = s.arms.shape[0]
        if forced_now(p, s):
            return turn(s.plan)
        if s.pulls[arms + TRIED] < arms:
            return untried(rewards, s, 1.0)
        if s.plan[BEST] < 0:
            return best(s)
        return s.plan[BEST]

    @staticmethod
    def take(p: Params, s: State, arm: int) -> float:
        """Count the pull and say what it is for."""
        mark = GREEDY
        if forced_now(p, s):
            mark = KEPT
            if arm == turn(s.plan):
                mark = FORCED
                s.plan[DONE] += 1
                s.plan[PLAN + arm] += 1
                s.plan[TURN] = -1
        elif s.slots[arm, USED] == 0:
            mark = KEPT
        take_pull(p, s, arm)
        return mark

    @staticmethod
    def expire(p: Params, s: State, arm: int, mark: float) -> None:
        """A lost pull is not held against its arm in a tie; if it was forced, another will be."""
        s.pulls[arm] -= 1
        if mark == FORCED:
            s.plan[DONE] -= 1
            s.plan[PLAN + arm] -= 1
            s.plan[TURN] = -1
            s.plan[WAIT] = 0

    @staticmethod
    def update(p: Params, s: State, arm: int, reward: float, mark: float) -> None:
        """Store the reward, unless its pull was greedy."""
        if mark != GREEDY:
            learn(s, arm, reward)

    @staticmethod
    def estimate(p: Params, s: State, arm: int, out: Floats) -> None:
        """Median of means, and the number of rewards in it."""
        out[0] = math.nan
        out[1] = s.slots[arm, USED]
        if s.slots[arm, USED] > 0:
            refresh(s, arm)
            out[0] = s.arms[arm, MEAN]


def rewards(s: State, arm: int) -> float:
    """Stored rewards of an arm."""
    return s.slots[arm, USED]


def schedule(rho: float, arms: int, t: float) -> float:
    """Forced pulls that are due at time t, besides the first."""
    return float(arms) ** (1.0 - rho) * float(t) ** rho


def forced_now(p: Params, s: State) -> bool:
    """Whether the pull that is about to be made is a forced one."""
    arms = s.arms.shape[0]
    t = s.pulls[arms + TAKEN] + 1
    return t >= s.plan[WAIT] and due(p.rho, s.plan, arms, t)


@out_of_line
def due(rho: float, plan: Ints, arms: int, t: int) -> bool:
    """The schedule at time t; if nothing is due, note until when nothing will be."""
    done = plan[DONE]
    if done < plan[LEAST] or done < schedule(rho, arms, t):
        return True
    # The schedule passes ``done`` at this time. An exponent that is nearly 0 leaves no digits: then it is looked at every time.
    level = math.log(done / float(arms) ** (1.0 - rho)) / rho
    plan[WAIT] = FOR_EVER
    if level < LOG_FOR_EVER:
        plan[WAIT] = int(math.exp(level) * max(0.0, 1.0 - EARLY - EARLY / rho)) + 1
    return False


def turn(plan: Ints) -> int:
    """The arm that is next in turn: the fewest forced pulls, then the lowest."""
    if plan[TURN] < 0:
        find_turn(plan)
    return plan[TURN]


@out_of_line
def find_turn(plan: Ints) -> None:
    """Look at all arms: no lost pull is forgotten."""
    chosen = PLAN
    for k in range(PLAN + 1, plan.shape[0]):
        if plan[k] < plan[chosen]:
            chosen = k
    plan[TURN] = chosen - PLAN


@out_of_line
def learn(s: State, arm: int, reward: float) -> None:
    """Store a reward; the estimate can wait until it is asked for."""
    if add_reward(s.pool, s.slots, arm, reward) == 1:
        s.pulls[s.arms.shape[0] + TRIED] += 1
    s.arms[arm, OLD] = 1.0
    s.plan[BEST] = -1


def block_count(arms: int, n: float) -> int:
    """The number of blocks for n rewards: odd."""
    most = 2 * math.ceil(math.log(2.0 * arms) + math.log(math.log(math.exp(math.e) + n))) + 1
    if n >= most:
        return most
    return int(n) - 1 + int(n) % 2


@out_of_line
def refresh(s: State, arm: int) -> None:
    """Bring the arm's estimate up to date."""
    if s.arms[arm, OLD] != 0.0:
        s.arms[arm, OLD] = 0.0
        n = s.slots[arm, USED]
        q = block_count(s.arms.shape[0], n)
        mean, reach = block_median(s.pool, s.slots, arm, q, n // q, s.scratch, s.arms[arm, MEAN], s.arms[arm, REACH])
        s.arms[arm, MEAN] = mean
        s.arms[arm, REACH] = reach


@out_of_line
def best(s: State) -> int:
    """The arm with the largest estimate; it is remembered if it is alone with it."""
    chosen = -1
    tied = False
    for arm in range(s.arms.shape[0]):
        refresh(s, arm)
        if chosen < 0 or s.arms[arm, MEAN] > s.arms[chosen, MEAN]:
            chosen = arm
            tied = False
        elif s.arms[arm, MEAN] == s.arms[chosen, MEAN]:
            tied = True
            if s.pulls[arm] < s.pulls[chosen]:
                chosen = arm
    if not tied:
        s.plan[BEST] = chosen
    return chosen
