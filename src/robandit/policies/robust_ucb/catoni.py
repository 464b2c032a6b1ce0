"""Robust UCB with Catoni's estimator, in O(1) amortised time per pull, accurate to 1e-10 of the width.

The estimate of an arm with n rewards is the root theta of ``S = sum_j psi(alpha (X_j - theta)) = 0``. psi is odd, psi(z) = log q(z)
for z >= 0, and q(z) = 1 + z + z^2/2. With the share ``r = 4 log t / n``, alpha is ``sqrt(r (1 - r) / v)``.

**A table of sums.** For each arm, S is kept at 12 alphas times 5 thetas; each reward is added at these 60 nodes. Between them S is
interpolated by a polynomial. The table is rebuilt from the rewards when alpha or the root leaves it. Between two tables there are
at least 8 evaluations; those outside the table use Newton steps over all rewards, in O(n). So an arm whose root varies widely,
because v is far below the variance, costs at most about twice as much as without tables.

**Errors.** The alphas are Chebyshev points on an interval of half length 0.2 in log alpha, so that error is about 23.6^-12 = 3e-17.
The thetas are center + h (-1, -5/8, 0, 5/8, 1), with h a power of two. The fifth derivative of psi is at most 6 in size, so
interpolation is off by at most 0.0042 (alpha h)^5 per reward; at z = 0 the fourth derivative jumps by 6, which adds at most 0.0062
(alpha h)^4 for each reward between the outer nodes. h is so small that both stay below 1e-10 of the width times alpha times the
slope ``sum psi'``, even for twice the rewards; the table is dropped if more rewards arrive between the outer nodes than h allows.
|psi''| <= 0.301 psi' everywhere, so after a Newton step of size d (in units of 1/alpha) the error is at most 0.16 d^2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.estimators.formulas.catoni import (
    FACTORS,
    FAR,
    SQUARABLE,
    far_influence,
    newton_root,
    quadratic,
    quadratic_sums,
)
from robandit.kernel.generate import out_of_line
from robandit.kernel.lazy import lazy_state
from robandit.kernel.types import Floats
from robandit.policies._parts.records import params_of, state_of
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store, stored_rewards
from robandit.policies.index import SLACK, IndexHooks, log_time, no_pulls

# The table covers log(alpha sqrt(v)) from its value at the creation of the table minus BELOW to that value plus ABOVE.
BELOW, ABOVE = 0.34, 0.06
MARGIN = 0.02  # reserved at the upper end, for `outlook`
HALF = 0.5 * (BELOW + ABOVE)
ALPHAS = 12
ANGLES = (2.0 * np.arange(ALPHAS) + 1.0) * math.pi / (2 * ALPHAS)
NODES = np.cos(ANGLES)
RATIOS = np.exp(HALF * NODES)  # alphas in units of the middle one
WEIGHTS = np.sin(ANGLES) * (-1.0) ** np.arange(ALPHAS)  # weights of the barycentric formula
THETAS = 5
OFFSETS = np.array([-1.0, -0.625, 0.0, 0.625, 1.0])
INNER = 0.625
SMOOTH = 0.0042
KINK = 0.0062
TOLERANCE = 1e-10
LEAST = 64  # fewest rewards of an arm with a table
FLAT = 1e-6  # slope per reward below which no table is made, because v is wrong by ten orders of magnitude
PATIENCE = 8.0  # evaluations between two tables
DONE = 1e-8  # a Newton step, in units of 1/alpha, after which the error of the root is below rounding
ULP = 2.0**-52
LOOSE = 4.0 * TOLERANCE  # relative to the width; far above the error of an index

# Numbers of an arm: the last root and the sum of psi' at the root; for its table the center, h (0: no table), the middle of
# log(alpha sqrt(v)), alpha there, the rewards that h still allows between the outer nodes, and the evaluations since its creation.
ROOT, SLOPE, CENTER, REACH, MIDDLE, SCALE, NEAR, AGE = 0, 1, 2, 3, 4, 5, 6, 7


class Catoni(KeepsRewards, IndexHooks):
    """The hooks of `RobustUCB` for ``estimator="catoni"``."""

    @staticmethod
    def params(policy: Any) -> Any:
        return params_of(v=float(policy.v))

    @staticmethod
    def init(policy: Any, arms: int, horizon: int | None) -> Any:
        pool, slots = empty_store(arms, 1)
        lines, lead = lazy_state(arms)
        return state_of(
            pool=pool,
            slots=slots,
            pulls=no_pulls(arms),
            table=np.zeros((arms, THETAS, ALPHAS)),  # sums of psi
            arms=np.zeros((arms, 8)),
            work=np.zeros((2, ALPHAS)),  # products
            lines=lines,
            lead=lead,
        )

    rewards = staticmethod(stored_rewards)

    @staticmethod
    def first(p: Any) -> float:
        """Return 0, because the index is infinite for arms with too few rewards."""
        return 0.0

    @staticmethod
    def add(p: Any, s: Any, arm: int, reward: float) -> None:
        s.pool[0, append(s.slots, arm)] = reward
        own = s.arms[arm]
        if own[REACH] > 0.0:
            add_to_table(own, s.table[arm], reward)
        elif s.slots[arm, USED] == 1:
            own[ROOT] = reward  # the start of the first search

    @staticmethod
    def mean(p: Any, s: Any, arm: int) -> float:
        return s.arms[arm, ROOT]

    @staticmethod
    @out_of_line
    def index(p: Any, s: Any, arm: int, level: float) -> float:
        """Return Catoni's mean + sqrt(8 v log t / n), or infinity if n < 8 log t. Store the root and the slope."""
        start = s.slots[arm, START]
        n = s.slots[arm, USED]
        if forced(n, level):
            return math.inf
        own = s.arms[arm]
        share = 4.0 * level / n
        place = log_alpha(share)
        alpha = alpha_of(p, share)
        own[AGE] += 1.0
        u, slope = table_root(own, s.table[arm], place)
        if abs(u) <= 1.0:
            own[ROOT] = own[CENTER] + own[REACH] * u
            own[SLOPE] = slope / (own[REACH] * alpha)
        else:
            solve_anew(own, s.table[arm], s.work, s.pool[0, start : start + n], place, alpha)
        return own[ROOT] + width(p, share)

    @staticmethod
    @out_of_line
    def outlook(p: Any, s: Any, arm: int, level: float) -> tuple[float, float, float]:
        """Return a line that is above the index while log alpha grows by at most D.

        The second derivative of psi(z) in log z is at most 0.6. So after a growth of d <= D, S at the current root is at most ``d
        G`` with ``G = S(after D)/D + 0.3 n D`` (or 0). The slope ``sum psi'`` falls at most like exp(-d) in alpha and exp(-0.301 x)
        in theta, x in units of 1/alpha. So if ``D G`` is below a fifth of the slope, the root moves up by at most ``1.1 exp(D) d
        G`` over alpha times the slope. Log alpha and the width are concave in log t, so tangents stay above them.
        """
        start = s.slots[arm, START]
        n = s.slots[arm, USED]
        if forced(n, level):
            return math.inf, 0.0, math.inf
        own = s.arms[arm]
        share = 4.0 * level / n
        alpha = alpha_of(p, share)
        beyond = MARGIN * math.sqrt(share)
        if own[REACH] > 0.0:
            u = (own[ROOT] - own[CENTER]) / own[REACH]
            f = coefficients(s.table[arm], (log_alpha(share) + beyond - own[MIDDLE]) / HALF)
            after = f[0] + u * (f[1] + u * (f[2] + u * (f[3] + u * f[4])))
        else:
            after = quadratic_sums(s.pool[0, start : start + n], own[ROOT], alpha * math.exp(beyond), 2.0, 0.5)[0]
        growth = max(after / beyond + 0.3 * n * beyond, 0.0)
        if not beyond * growth < 0.2 * own[SLOPE]:
            return math.inf, 0.0, math.inf
        moves = 1.1 * math.exp(beyond) * growth / (alpha * own[SLOPE])
        until = 0.125 * n
        rise = (1.0 - 2.0 * share) / (2.0 * level * (1.0 - share))  # of log alpha, in the level
        if rise > 0.0:
            until = min(until, level + beyond / rise)
        reach = width(p, share)
        height = own[ROOT] + reach + (SLACK + LOOSE) * reach + SLACK * abs(own[ROOT])
        return height, 0.5 * reach / level + moves * max(rise, 0.0), until

    @staticmethod
    def estimate(p: Any, s: Any, arm: int, out: Floats) -> None:
        level = log_time(s)
        start = s.slots[arm, START]
        n = s.slots[arm, USED]
        out[0] = math.nan
        out[1] = math.inf
        if not forced(n, level):
            share = 4.0 * level / n
            u = table_root(s.arms[arm], s.table[arm], log_alpha(share))[0]
            if abs(u) <= 1.0:
                out[0] = s.arms[arm, CENTER] + s.arms[arm, REACH] * u
            else:
                out[0] = newton_root(
                    quadratic_sums, s.pool[0, start : start + n], alpha_of(p, share), 2.0, 0.5, s.arms[arm, ROOT], DONE
                )[0]
            out[1] = out[0] + width(p, share)


def forced(n: int, level: float) -> bool:
    """Return whether an arm has too few rewards for an estimate, so that it must be pulled."""
    return n == 0 or n < 8.0 * level


def log_alpha(share: float) -> float:
    """Return log(alpha sqrt(v)) for the share 4 log t / n, which is at most 1/2."""
    return 0.5 * math.log(share * (1.0 - share))


def alpha_of(p: Any, share: float) -> float:
    """Return Catoni's alpha."""
    return math.sqrt(share * (1.0 - share)) / math.sqrt(p.v)


def width(p: Any, share: float) -> float:
    """Return sqrt(8 v log t / n)."""
    return math.sqrt(2.0 * p.v * share)


def table_root(own: Floats, table: Floats, place: float) -> tuple[float, float]:
    """Return (root - center) / reach, which is invalid if NaN or outside [-1, 1], and minus the slope of S there."""
    u = math.nan
    slope = 0.0
    if own[REACH] > 0.0 and abs(place - own[MIDDLE] + 0.5 * MARGIN) <= HALF - 0.5 * MARGIN:
        f = coefficients(table, (place - own[MIDDLE]) / HALF)
        slope = -f[1]
        if abs(f[0]) <= 2.0 * slope and slope > 0.0:
            u = f[0] / slope
            for _ in range(3):  # the sum is almost straight in this range
                slope = -(f[1] + u * (2.0 * f[2] + u * (3.0 * f[3] + u * (4.0 * f[4]))))
                if slope <= 0.0:
                    return math.nan, slope
                u += (f[0] + u * (f[1] + u * (f[2] + u * (f[3] + u * f[4])))) / slope
    return u, slope


def coefficients(table: Floats, x: float) -> tuple[float, float, float, float, float]:
    """Return the coefficients of S in powers of (theta - center) / reach, at the alpha with position x relative to `NODES`."""
    total = a = b = c = d = e = 0.0
    for k in range(ALPHAS):
        gap = x - NODES[k]
        if gap == 0.0:
            gap = 1e-30  # outweighs all other nodes
        w = WEIGHTS[k] / gap
        total += w
        a += w * table[0, k]
        b += w * table[1, k]
        c += w * table[2, k]
        d += w * table[3, k]
        e += w * table[4, k]
    outer_even = 0.5 * (e + a) - c
    outer_odd = 0.5 * (e - a)
    inner_even = (0.5 * (d + b) - c) / (INNER * INNER)
    inner_odd = 0.5 * (d - b) / INNER
    fourth = (outer_even - inner_even) / (1.0 - INNER * INNER)
    third = (outer_odd - inner_odd) / (1.0 - INNER * INNER)
    return c / total, (outer_odd - third) / total, (outer_even - fourth) / total, third / total, fourth / total


@out_of_line
def add_to_table(own: Floats, table: Floats, reward: float) -> None:
    """Add a reward at all nodes."""
    for i in range(THETAS):
        d = reward - (own[CENTER] + own[REACH] * OFFSETS[i])
        size = abs(d) * own[SCALE]
        if size < SQUARABLE:
            side = math.copysign(1.0, d)
            for k in range(ALPHAS):
                z = size * RATIOS[k]
                table[i, k] += side * math.log(quadratic(z))
        else:
            for k in range(ALPHAS):
                table[i, k] += far_influence(d, own[SCALE] * RATIOS[k])
    if abs(reward - own[CENTER]) <= own[REACH]:
        own[NEAR] -= 1.0
        if own[NEAR] < 0.0:
            own[REACH] = 0.0


@out_of_line
def solve_anew(own: Floats, table: Floats, work: Floats, x: Floats, place: float, alpha: float) -> None:
    """Compute the root from all rewards, and make a table around it if that saves time."""
    own[ROOT], own[SLOPE] = newton_root(quadratic_sums, x, alpha, 2.0, 0.5, own[ROOT], DONE)
    own[REACH] = 0.0
    if own[AGE] >= PATIENCE and x.shape[0] >= LEAST and own[SLOPE] >= FLAT * x.shape[0]:
        own[AGE] = 0.0
        own[CENTER] = own[ROOT]
        own[MIDDLE] = place + ABOVE - HALF
        own[SCALE] = alpha * math.exp(ABOVE - HALF)
        set_reach(own, x, place)
        fill(own, table, work, x)


@out_of_line
def set_reach(own: Floats, x: Floats, place: float) -> None:
    """Set the distance of the outer nodes from the center so that the accuracy holds for twice the rewards."""
    n = x.shape[0]
    # The allowed error of the sum per reward, where width * alpha >= sqrt(2) exp(2 place).
    allowed = TOLERANCE * math.sqrt(2.0) * math.exp(2.0 * place) * own[SLOPE] / (2.0 * n)
    top = own[SCALE] * math.exp(HALF)
    reach = min((0.5 * allowed / SMOOTH) ** 0.2, 0.125) / top
    reach = math.ldexp(0.5, math.frexp(reach)[1])
    near = 0.0
    count = 1
    while count > near and reach > 0.0:
        count = 0
        for j in range(n):
            if abs(x[j] - own[CENTER]) <= reach:
                count += 1
        square = (top * reach) * (top * reach)  # not ** 4, which Python computes by pow and compiled code by products
        near = 0.5 * n * allowed / (KINK * (square * square))
        if count > near:
            reach *= 0.5
    while 0.0 < reach < 16.0 * ULP * abs(own[CENTER]):
        reach *= 2.0
    own[REACH] = reach
    own[NEAR] = near - count


@out_of_line
def fill(own: Floats, table: Floats, work: Floats, x: Floats) -> None:
    """Fill the table from all rewards, by logarithms of products."""
    n = x.shape[0]
    for i in range(THETAS):
        theta = own[CENTER] + own[REACH] * OFFSETS[i]
        for k in range(ALPHAS):
            table[i, k] = 0.0
        for first in range(0, n, FACTORS):
            for k in range(ALPHAS):
                work[0, k] = work[1, k] = 1.0
            for j in range(first, min(first + FACTORS, n)):
                d = x[j] - theta
                size = abs(d) * own[SCALE]
                if size < FAR:
                    side = 1 if d < 0.0 else 0
                    for k in range(ALPHAS):
                        z = size * RATIOS[k]
                        work[side, k] *= quadratic(z)
                else:
                    for k in range(ALPHAS):
                        table[i, k] += far_influence(d, own[SCALE] * RATIOS[k])
            for k in range(ALPHAS):
                table[i, k] += math.log(work[0, k] / work[1, k])
