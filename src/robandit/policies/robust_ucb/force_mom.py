"""ForceMoM (Dewasurendra 2026): forced exploration on a schedule and a median of means, in O(1) amortised time per pull.

Whether a pull is forced depends only on t. Rewards of greedy pulls are not used, so the best arm is remembered until the next
forced pull, unless arms share the largest estimate; then the arm with the fewest pulls is chosen. The schedule is a power of t. It
is not computed before the time of the next forced pull, which is rounded down. So decisions agree exactly with the formula.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Bools, Floats, Ints
from robandit.policies._parts.blocks import KeepsSums, add_reward, block_median, empty_sums
from robandit.policies._parts.records import state_of
from robandit.policies._parts.reward_store import USED, stored_rewards
from robandit.policies.base import Policy
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import TAKEN, count_tried, expire_pull, first_untried, no_pulls, take_pull
from robandit.validation import within

# The kinds of pulls, as marks. Rewards of greedy pulls are not used. Those of kept pulls are used, but not counted by the schedule.
GREEDY, FORCED, KEPT = 0.0, 1.0, 2.0
# Numbers of an arm: the estimate, the distance within which to search the next one, and 1 if the estimate is out of date.
MEAN, REACH, OLD = 0, 1, 2

# The plan: forced pulls so far, forced pulls at the start, the time before which no pull is forced, the next arm to force and the
# best arm (-1: unknown). The forced pulls of each arm follow.
DONE, LEAST, WAIT, TURN, BEST, PLAN = 0, 1, 2, 3, 4, 5

NEVER = 2**62
LOG_NEVER = 42.0
EARLY = 1e-13  # far above the rounding of a power, and of its exponent


class ForceMoM(KeepsSums, Policy):
    """Explore on a fixed schedule, else play the arm with the largest median of means. It needs no knowledge or assumption.

    Other policies without prior knowledge have a guarantee only under a condition on the shape of the rewards (such as truncated
    non-positivity), or from some time on. ForceMoM has one for all rewards with a finite moment of an order above 1. So use it for
    right-skewed rewards, such as revenue, of unknown order and scale. But regret on every problem is at least that of the schedule,
    about ``K^(1-rho) T^rho`` forced pulls, where others reach log T. Scaling or shifting all rewards changes no decision.

    With K arms, round t pulls the next arm in turn if fewer than ``max(K m0, ceil(K^(1-rho) t^rho))`` pulls were forced so far,
    where ``m0 = ceil(16 log(2K + e))``. Otherwise it pulls the arm whose stored rewards (of forced pulls) have the largest median
    of means. The n rewards form q blocks of floor(n/q) consecutive rewards, where q is the largest odd number that exceeds neither
    n nor ``2 ceil(log(2K) + log log(e^e + n)) + 1``. A lost forced pull is repeated. Another arm's pull in a forced round is not
    counted.

    Parameters
    ----------
    rho
        Exponent of the schedule, between 0 and 1. A larger rho explores more, which is better in the worst case and worse on an
        easy problem. 2/3 is the largest rho for which both bounds below are jointly optimal, up to slow factors, for every order.

    Guarantee
    ---------
    With ``g = eps/(1+eps)``, worst-case regret is at most a constant times ``u^(1/(1+eps)) (K log(eK) + K^(1-rho) T^rho + K^(rho g)
    T^(1 - rho g) (1 + log(2K) + log log(e^e + T))^g)``, for every eps in (0, 1] and u at once. On every fixed problem, regret is
    in the limit at most ``(T/K)^rho`` times the sum of the gaps. Requires no prior knowledge and no assumption. Anytime and
    deterministic. The source is a preprint of July 2026 that is not peer reviewed. The rule is that of its text.

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
    respects_allowed = True
    use_when = "right tails are heavy and you need a guarantee"
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
        source="the paper",
        notes=(
            "ForceMoM: a preprint of July 2026, not peer reviewed. No policy that is adaptive without an assumption can match the "
            "bounds of the non-adaptive setting; for rho <= 2/3 no other such policy can have both exponents lower.",
        ),
    )

    def validate(self) -> None:
        within(self.rho, "rho", 0.0, 1.0, open_low=True, open_high=True, owner="ForceMoM")

    def init(self, arms: int, horizon: int | None) -> Any:
        plan = np.zeros(PLAN + arms, dtype=np.int64)
        plan[LEAST] = least_forced(arms)
        plan[TURN] = plan[BEST] = -1
        forced = None
        if horizon is not None:
            forced = min(horizon, max(int(plan[LEAST]), math.ceil(schedule(self.rho, arms, horizon))))
        scratch = np.zeros(2 * (block_count(arms, NEVER) + 1))
        pool, slots = empty_sums(arms, forced)
        numbers, pulls = np.zeros((arms, 3)), no_pulls(arms)
        return state_of(arms=numbers, plan=plan, pulls=pulls, scratch=scratch, pool=pool, slots=slots)

    def forget_choice(self, state: Any) -> None:
        state.plan[TURN] = state.plan[BEST] = -1

    def extended(self, state: Any) -> Any:
        """Return the state with one more arm. The schedule and the blocks depend on the number of arms."""
        longer = super().extended(state)
        arms = len(state.allowed)
        longer.plan[LEAST + 1 :] = [0, -1, -1, *state.plan[PLAN:], 0]
        longer.plan[LEAST] = least_forced(arms + 1)
        longer.arms[:arms, OLD] = longer.slots[:arms, USED] > 0
        return longer

    @staticmethod
    def select(p: Any, s: Any) -> int:
        if forced_now(p, s):
            return turn(s)
        if s.plan[BEST] >= 0:
            return s.plan[BEST]
        arm = first_untried(stored_rewards, s, 1.0)
        return arm if arm >= 0 else best(s)

    @staticmethod
    def take(p: Any, s: Any, arm: int) -> float:
        mark = GREEDY
        if forced_now(p, s):
            mark = KEPT
            if arm == turn(s):
                mark = FORCED
                s.plan[DONE] += 1
                s.plan[PLAN + arm] += 1
                s.plan[TURN] = -1
        elif s.slots[arm, USED] == 0:
            mark = KEPT
        take_pull(p, s, arm)
        return mark

    @staticmethod
    def expire(p: Any, s: Any, arm: int, mark: float) -> None:
        """Subtract a lost pull from the counts that decide ties. If it was forced, force another pull."""
        expire_pull(p, s, arm, mark)
        if mark == FORCED:
            s.plan[DONE] -= 1
            s.plan[PLAN + arm] -= 1
            s.plan[TURN] = -1
            s.plan[WAIT] = 0

    @staticmethod
    def update(p: Any, s: Any, arm: int, reward: float, mark: float) -> None:
        if mark != GREEDY:
            if add_reward(s.pool, s.slots, arm, reward) == 1:
                count_tried(s)
            s.arms[arm, OLD] = 1.0  # the estimate is updated when it is needed
            s.plan[BEST] = -1

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        out[0] = math.nan
        out[1] = s.slots[arm, USED]
        if s.slots[arm, USED] > 0:
            refresh(s, arm)
            out[0] = s.arms[arm, MEAN]


def least_forced(arms: int) -> int:
    """Return the number of forced pulls at the start."""
    return arms * math.ceil(16.0 * math.log(2.0 * arms + math.e))


def schedule(rho: float, arms: int, t: float) -> float:
    """Return the number of forced pulls due at time t, without the minimum at the start."""
    return float(arms) ** (1.0 - rho) * float(t) ** rho


def forced_now(p: Any, s: Any) -> bool:
    """Return whether the next pull is forced."""
    arms = s.arms.shape[0]
    t = s.pulls[arms + TAKEN] + 1
    return t >= s.plan[WAIT] and due(p.rho, s.plan, arms, t)


@out_of_line
def due(rho: float, plan: Ints, arms: int, t: int) -> bool:
    """Return whether a forced pull is due at time t. If not, store a time before which no forced pull is due."""
    done = plan[DONE]
    if done < plan[LEAST] or done < schedule(rho, arms, t):
        return True
    # The log of the time when the schedule passes ``done``. If rho is nearly 0, it has no digits, and WAIT stays at 1.
    level = math.log(done / float(arms) ** (1.0 - rho)) / rho
    plan[WAIT] = NEVER
    if level < LOG_NEVER:
        plan[WAIT] = int(math.exp(level) * max(0.0, 1.0 - EARLY - EARLY / rho)) + 1
    return False


def turn(s: Any) -> int:
    """Return the next arm in turn: the allowed arm with the fewest forced pulls, and the first of these in a tie."""
    if s.plan[TURN] < 0:
        find_turn(s.plan, s.allowed)
    return s.plan[TURN]


@out_of_line
def find_turn(plan: Ints, allowed: Bools) -> None:
    """Find the next arm in turn among all allowed arms, so that lost pulls are repeated."""
    chosen = -1
    for arm in range(allowed.shape[0]):
        if allowed[arm] and (chosen < 0 or plan[PLAN + arm] < plan[PLAN + chosen]):
            chosen = arm
    plan[TURN] = chosen


def block_count(arms: int, n: float) -> int:
    """Return the number of blocks for n rewards, an odd number."""
    most = 2 * math.ceil(math.log(2.0 * arms) + math.log(math.log(math.exp(math.e) + n))) + 1
    if n >= most:
        return most
    return int(n) - 1 + int(n) % 2


@out_of_line
def refresh(s: Any, arm: int) -> None:
    """Update the arm's estimate."""
    own = s.arms[arm]
    if own[OLD] != 0.0:
        own[OLD] = 0.0
        n = s.slots[arm, USED]
        q = block_count(s.arms.shape[0], n)
        own[MEAN], own[REACH] = block_median(s.pool, s.slots, arm, q, n // q, s.scratch, own[MEAN], own[REACH])


@out_of_line
def best(s: Any) -> int:
    """Return the allowed arm with the largest estimate, and remember it if no other one has the same estimate."""
    chosen = -1
    tied = False
    for arm in range(s.arms.shape[0]):
        if not s.allowed[arm]:
            continue
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
