"""R-UCB-MoM (Ashutosh, Nair, Kagrecha, Jagannathan 2021), exact, in O(1) amortised time per pull.

The estimate is the median of ``q = ceil(32 log t)`` block means, computed only when q or the size of the blocks changes. While
there are at most 32 log t rewards, it is the median of all rewards, which are kept sorted. The arg-max is lazy
(:mod:`robandit.kernel.lazy`). With a fixed g the width ``W = f (32 log t / n)^g`` is linear in ``f (32 log t)^g``. With the
corollary's g, the derivative of log W by log t is at most ``R = 2 / log t + g / log t + |g'| max(0, log(n / (32 log t)))``, which
never rises. So if log t grows by h, the width is at most ``W exp(R h)``, which lies below its chord.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.blocks import KeepsSums, add_reward, block_median, empty_sums
from robandit.policies._parts.records import index_state
from robandit.policies.assumptions import Assumption
from robandit.policies.facts import Adaptive, Facts
from robandit.policies.index import SLACK, IndexPolicy, log_time, most_pulls, slightly_above
from robandit.policies.r_ucb.growth import FIRST, INPUTS, Growing, Growth, decay, growth

# Numbers of an arm: rewards; estimate; n^-g for a fixed g, else log n; the time (see `clock`) and the number of rewards at which
# the estimate may change; q (0: the median of all rewards); block size; and the distance within which to search the next estimate.
COUNT, MEAN, SHRINK, EVENT, NEXT, BLOCKS, SIZE, REACH = 0, 1, 2, 3, 4, 5, 6, 7
# Numbers of the run: the level, f (32 level)^g, g, and an earlier level with its (32 level)^g, from which nearby powers are
# computed if g is fixed.
AT, SCALE, POWER, BASE, BASE_SCALE = 0, 1, 2, 3, 4

PER_LEVEL = 32.0
SPAN = 0.1  # growth of the log of a width after which its line is renewed
STEEPER = math.expm1(SPAN) / SPAN  # slope of the chord of exp over that span
NEAR = 1.0 / 64.0


class RUCBMoM(Growing, KeepsSums, IndexPolicy):
    """UCB policy on a median of means, with a width that eventually suffices for any heavy-tailed law; needs no prior knowledge.

    For all eps and u, the width ``f(t) (32 log t / n)^g(t)`` is large enough from some time on. But regret grows faster than log T,
    and with the functions of the paper no run gets there: g must be below eps/(1+eps) <= 1/2, but with ``"corollary"`` g(1e5) =
    0.64. Use it as a baseline, or for rewards of scale about 1 (the width does not scale with the rewards).

    Parameters
    ----------
    f
        Slow-growing function: ``"log"``, ``"log_squared"``, ``"log_log"`` or ``"corollary"``
        (:mod:`robandit.policies.r_ucb.growth`).
    g
        ``"corollary"``, the paper's slow-decaying function; or a number in (0, 1). The default f = log t, g = 0.45 is ours.

    Guarantee
    ---------
    For T with ``g(T) < eps/(1+eps)`` and ``f(T) > (12 u)^(1/(1+eps))``, regret grows as ``sum_i gap_i (2 f(T) / gap_i)^(1/g(T))
    log T``. Requires no prior knowledge. Anytime and deterministic. With a fixed g there is no guarantee if ``eps <= g / (1 - g)``,
    by default 0.82.

    Examples
    --------
    >>> import robandit as rb
    >>> problem = rb.problems.negated_pareto(means=[-1.0, -20.0], tail=1.9)
    >>> result = rb.simulate(rb.RUCBMoM(), problem, horizon=4000, replications=5, seed=0)
    >>> bool(result.regret[0, :, -1].mean() < 0.2 * 38000)  # uniform play: 38000
    True

    References
    ----------
    K. Ashutosh, J. Nair, A. Kagrecha, K. Jagannathan. Bandit algorithms: letting go of logarithmic regret for statistical
    robustness. AISTATS 2021, PMLR 130.
    """

    f: Growth = "log"
    g: float | Literal["corollary"] = 0.45

    use_when = "you want a baseline that suits any tail in the long run"
    label = "R-UCB-MoM"
    about = Facts(
        assumption=Assumption("long horizon", "T such that g(T) < eps/(1+eps) and f(T) > (12 u)^(1/(1+eps))"),
        bound="Ashutosh et al., median of means",
        instance="sum gap (2 f(T)/gap)^(1/g(T)) log T",
        matches=(False, None),
        adaptive=Adaptive(True, True, True, True),
        citation="Ashutosh, Nair, Kagrecha, Jagannathan 2021",
        source="the paper",
        row=12,
        notes=(
            INPUTS,
            "The default here is a fixed g = 0.45, which is not slow-decaying: the bound then holds only for eps > 0.82. "
            "g='corollary' is the paper's kind.",
        ),
    )

    @property
    def facts(self) -> Facts:
        facts = super().facts
        return dataclasses.replace(facts, notes=(INPUTS,)) if isinstance(self.g, str) else facts

    def init(self, arms: int, horizon: int | None) -> Any:
        most = math.ceil(PER_LEVEL * math.log(most_pulls(horizon) + 2.0)) + 1
        now = np.zeros(5)
        now[AT] = now[BASE] = -1.0
        pool, slots = empty_sums(arms, horizon)
        return index_state(
            arms,
            arms=np.zeros((arms, 8)),
            now=now,
            ordered=np.zeros((arms, most)),  # the first rewards in ascending order
            scratch=np.zeros(2 * most),
            pool=pool,
            slots=slots,
        )

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        n = add_reward(s.pool, s.slots, arm, reward)
        if n <= s.ordered.shape[1]:
            insert(s.ordered[arm], n - 1, reward)
        s.arms[arm, COUNT] = n
        if p.g == 0.0:
            s.arms[arm, SHRINK] = math.log(s.arms[arm, COUNT])
        elif n > 64 and n % 64 != 0:
            s.arms[arm, SHRINK] *= power_near_one(-1.0 / s.arms[arm, COUNT], p.g)
        else:
            s.arms[arm, SHRINK] = s.arms[arm, COUNT] ** -p.g

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, MEAN]

    @staticmethod
    def level(p: Any, s: Any) -> float:
        """Compute the numbers that all arms share, and return the time as in `clock`."""
        prepare(p.f, p.g, s.now, log_time(s))
        return clock(p, s)

    @staticmethod
    def index(p: Any, s: Any, arm: int, time: float) -> float:
        """Return median + f (32 log t / n)^g at the prepared level. ``time`` is the result of `clock`."""
        numbers = s.arms[arm]
        if numbers[COUNT] >= numbers[NEXT] or time >= numbers[EVENT]:
            refresh(p, s, arm)
        return numbers[MEAN] + width(p, s, arm)

    @staticmethod
    def outlook(p: Any, s: Any, arm: int, time: float) -> tuple[float, float, float]:
        """Return a line above the index until the estimate changes or, unless g is fixed, the width has grown by a tenth."""
        numbers = s.arms[arm]
        wide = width(p, s, arm)
        height = slightly_above(numbers[MEAN], wide)
        if p.g > 0.0:
            return height, numbers[SHRINK], numbers[EVENT]
        rate = largest_rate(s.now[POWER], numbers[SHRINK], time)
        return height, STEEPER * rate * wide, min(numbers[EVENT], time + SPAN / rate)


@out_of_line
def prepare(f: int, g: float, now: Floats, level: float) -> None:
    """Compute the numbers that the widths of all arms share."""
    if now[AT] != level:
        now[AT] = level
        now[POWER] = decay(g, level)
        step = level / now[BASE] - 1.0
        if g == 0.0 or not 0.0 <= step <= NEAR:
            now[BASE] = level
            now[BASE_SCALE] = (PER_LEVEL * level) ** now[POWER]
            step = 0.0
        now[SCALE] = growth(f, level) * now[BASE_SCALE] * power_near_one(step, g)


def power_near_one(x: float, power: float) -> float:
    """Return (1 + x)^power for power in (0, 1) and |x| <= 1/64, up to a few roundings, by a series, in a third of the time."""
    tail = 1.0
    for k in range(6, 0, -1):
        tail = 1.0 + (power - k) / (k + 1.0) * x * tail
    return 1.0 + power * x * tail


def clock(p: Any, s: Any) -> float:
    """Return the level of the lazy arg-max: f (32 log t)^g if g is fixed, else log t."""
    return s.now[SCALE] if p.g > 0.0 else s.now[AT]


@out_of_line
def largest_rate(power: float, log_n: float, level: float) -> float:
    """Return an upper bound on the derivative of the log of a width from this level on, for the corollary's g."""
    # That of f is at most 2 / log t for every f, with equality for log_squared.
    late = max(level, math.e)
    falls = 0.5 / (late * math.log(late) ** 1.5)
    return 2.0 / max(level, FIRST) + power / level + falls * max(0.0, log_n - math.log(PER_LEVEL * level))


@out_of_line
def insert(ordered: Floats, count: int, reward: float) -> None:
    """Insert a reward into ``count`` others in ascending order."""
    place = count
    while place > 0 and ordered[place - 1] > reward:
        ordered[place] = ordered[place - 1]
        place -= 1
    ordered[place] = reward


@out_of_line
def refresh(p: Any, s: Any, arm: int) -> None:
    """Update the estimate, and compute when it next changes."""
    own = s.arms[arm]
    n = int(own[COUNT])
    blocks_now = PER_LEVEL * s.now[AT]
    if n <= blocks_now:
        own[MEAN] = 0.5 * s.ordered[arm, (n - 1) // 2] + 0.5 * s.ordered[arm, n // 2]
        own[BLOCKS] = 0.0
        own[EVENT] = math.inf
        own[NEXT] = n + 1
        return
    blocks = math.ceil(blocks_now)
    size = n // blocks
    if blocks != own[BLOCKS] or size != own[SIZE]:
        own[MEAN], own[REACH] = block_median(s.pool, s.slots, arm, blocks, size, s.scratch, own[MEAN], own[REACH])
        own[BLOCKS] = blocks
        own[SIZE] = size
    event = (1.0 - SLACK) * blocks / PER_LEVEL  # also valid if n = q, where the median of all rewards is next
    own[EVENT] = growth(p.f, event) * (PER_LEVEL * event) ** p.g if p.g > 0.0 else event
    own[NEXT] = (size + 1) * blocks


def width(p: Any, s: Any, arm: int) -> float:
    """Return f (32 log t / n)^g at the prepared level."""
    if p.g > 0.0:
        return s.now[SCALE] * s.arms[arm, SHRINK]
    return s.now[SCALE] * math.exp(-s.now[POWER] * s.arms[arm, SHRINK])
