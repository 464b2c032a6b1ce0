"""The p-robust mean of APE^2 and its successors, updated at a bounded cost per reward.

The mean of n rewards is c n^(1/p - 1) F(n), F(n) = sum_j psi(X_j / (c n^(1/p))), psi(x) = sign(x) log(1 + |x| + b |x|^p). For fixed
rewards F is a smooth function of log n. So F is summed directly up to 63 rewards. From then on each arm stores F at 12 Chebyshev
points of log n between m and 2m, and interpolates; at n = 2m new points are computed from the stored rewards. New rewards are added
to the points 16 at a time. Sums of logarithms are logarithms of products, stored as product - 1, so that tiny terms lose no digits.
The error is below 1e-12 of sum_j |psi_j| for all p in (1, 2], all n, and rewards that are 0 or have |X|/c >= 1e-150.

A policy's parameters have ``order`` (p), ``b`` and ``unit`` (c). Its state comes from `mean_state`. Rewards in another order give
the same mean up to rounding, not exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies._parts.blocks import two_sum
from robandit.policies._parts.parameters import check_known
from robandit.policies._parts.records import state_of
from robandit.policies._parts.reward_store import START, USED, KeepsRewards, append, empty_store
from robandit.policies.index import no_pulls
from robandit.validation import within

# Columns of ``arms``: rewards, p-robust mean, n^(1/p - 1), and log m, the start of the arm's points. A policy may add columns.
COUNT, MEAN, SHRINK, SINCE = 0, 1, 2, 3
ARM_FLOATS = 4
# Rows of ``pool``: the reward in units of c, and b times its p-th power.
VALUE, POWER = 0, 1
# Columns of ``spans``: m (0: no points yet), and the number of rewards that the points hold.
FIRST, HELD = 0, 1
# Rows of ``points``: positions in [-1, 1], barycentric weights, and n^(-1/p) and 1/n at the points for m = 1.
WHERE, WEIGHT, SCALE, SHARE = 0, 1, 2, 3
# Rows of ``work``: products - 1 of positive and of negative rewards, and the scales and shares of the current arm.
UP, DOWN, SCALES, SHARES = 0, 1, 2, 3
POINTS = 12
DIRECT = 64  # fewer rewards are summed directly
BLOCK = 16  # rewards that wait to be added to the points
LONG_BLOCK = 64  # rewards in one product; this bounds the rounding error
FAR = 1e40  # for larger z, 1 + z == z
FULL = 1e150  # the logarithm of a larger product is taken before the next factor, which is below 1e82
LARGEST = 1e150  # the square of a larger value overflows; its argument exceeds FAR (n^(1/p) <= 2^53) and needs no power
WIDEST = 1e150  # bound on c, so that rewards can be divided by c
LOG_2 = math.log(2.0)


class PRobust(KeepsRewards):
    """Base class of the policies on the p-robust mean."""

    def validate(self) -> None:
        check_known(self)
        for name in ("c", "c_est"):
            if hasattr(self, name):
                value, owner = getattr(self, name), type(self).__name__
                within(value, name, 1.0 / WIDEST, WIDEST, open_low=True, open_high=True, owner=owner)


def order_and_constant(eps: float) -> tuple[float, float]:
    """Return p = 1 + eps, and the constant b of psi."""
    from robandit.estimators.p_robust import b_p  # here, because only playing needs it

    return 1.0 + eps, b_p(1.0 + eps)


def mean_state(arms: int, eps: Any, extra: int = 0, **more: Any) -> Any:
    """Return the state of a new run, with extra columns in ``arms``, and with the fields in ``more`` at its end."""
    angles = (2.0 * np.arange(POINTS) + 1.0) * np.pi / (2.0 * POINTS)
    points = np.empty((4, POINTS))
    points[WHERE] = np.cos(angles)
    points[WEIGHT] = np.sin(angles) * (-1.0) ** np.arange(POINTS)
    points[SHARE] = 2.0 ** (-0.5 * (1.0 + points[WHERE]))
    points[SCALE] = points[SHARE] ** (1.0 / (1.0 + eps))
    pool, slots = empty_store(arms, 2)
    return state_of(
        arms=np.zeros((arms, ARM_FLOATS + extra)),
        pulls=no_pulls(arms),
        fit=np.zeros((arms, 2, POINTS)),  # F and its rounding error at the points of each arm
        spans=np.zeros((arms, 2), dtype=np.int64),
        points=points,
        work=np.zeros((4, POINTS)),
        pool=pool,
        slots=slots,
        **more,
    )


def learn_mean(p: Any, s: Any, arm: int, reward: float) -> None:
    """Store a reward and update the arm's mean."""
    value = reward / p.unit
    size = abs(value)
    column = append(s.slots, arm)
    s.pool[VALUE, column] = value
    s.pool[POWER, column] = p.b * size**p.order if size <= LARGEST else 0.0
    n = s.slots[arm, USED]
    level = math.log(n)
    start = s.slots[arm, START]
    if (n >= DIRECT and n - s.spans[arm, HELD] >= BLOCK) or n == 2 * s.spans[arm, FIRST]:
        hold(p, s, arm)
    scale = math.exp(-level / p.order)
    total = summed(p.order, p.b, s.pool, start + s.spans[arm, HELD], start + n, scale, 1.0 / n)
    if n >= DIRECT:
        total += interpolated(s.points, s.fit[arm], 2.0 * (level - s.arms[arm, SINCE]) / LOG_2 - 1.0)
    shrink = 1.0 / (n * scale)
    s.arms[arm, COUNT] = n
    s.arms[arm, SHRINK] = shrink
    s.arms[arm, MEAN] = p.unit * (shrink * total)


# These functions are out of line and take only the arrays that they need: inlined, they would double the time to compile.


@out_of_line
def summed(order: float, b: float, pool: Floats, start: int, stop: int, scale: float, share: float) -> float:
    """Return the sum of psi over columns of the pool, with scale = n^(-1/p) and share = 1/n."""
    total = up = down = 0.0
    for j in range(start, stop):
        value = pool[VALUE, j]
        z = abs(value) * scale
        if z > FAR:
            total += math.copysign(far(order, b, z), value)
            continue
        z += pool[POWER, j] * share
        if value > 0.0:
            up = (up + z) + up * z
            if up > FULL:
                total += math.log1p(up)
                up = 0.0
        else:
            down = (down + z) + down * z
            if down > FULL:
                total -= math.log1p(down)
                down = 0.0
    if up > 0.0:
        total += math.log1p(up)
    if down > 0.0:
        total -= math.log1p(down)
    return total


@out_of_line
def far(order: float, b: float, z: float) -> float:
    """Return log(1 + z + b z^p) for z so large that 1 + z == z and z^p might overflow. For p near 1, z counts too."""
    return math.log(z) + math.log1p(b * z ** (order - 1.0))


@out_of_line
def interpolated(points: Floats, fit: Floats, x: float) -> float:
    """Interpolate F of the rewards in an arm's points at x in [-1, 1], by the barycentric formula."""
    above = below = 0.0
    for k in range(points.shape[1]):
        gap = x - points[WHERE, k]
        if gap == 0.0:
            return fit[0, k] + fit[1, k]
        part = points[WEIGHT, k] / gap
        above += part * (fit[0, k] + fit[1, k])
        below += part
    return above / below


@out_of_line
def hold(p: Any, s: Any, arm: int) -> None:
    """Add all waiting rewards to an arm's points. Start new points if there are none yet, or if the old ones end at n."""
    n = s.slots[arm, USED]
    if n == DIRECT or n == 2 * s.spans[arm, FIRST]:
        s.spans[arm, FIRST] = n
        s.spans[arm, HELD] = 0
        s.arms[arm, SINCE] = math.log(n)
        for k in range(s.points.shape[1]):
            s.fit[arm, 0, k] = s.fit[arm, 1, k] = 0.0
    base = math.exp(-s.arms[arm, SINCE] / p.order)
    for k in range(s.points.shape[1]):
        s.work[SCALES, k] = base * s.points[SCALE, k]
        s.work[SHARES, k] = s.points[SHARE, k] / s.spans[arm, FIRST]
    start = s.slots[arm, START]
    multiply(p.order, p.b, s.pool, start + s.spans[arm, HELD], start + n, s.work, s.fit[arm])
    s.spans[arm, HELD] = n


@out_of_line
def multiply(order: float, b: float, pool: Floats, start: int, stop: int, work: Floats, fit: Floats) -> None:
    """Add columns of the pool to an arm's points, whose scales and shares are in ``work``."""
    count = fit.shape[1]
    for j in range(start, stop):
        value = pool[VALUE, j]
        size = abs(value)
        if size * work[SCALES, 0] > FAR:  # the first point has the smallest scale, the last the largest
            for k in range(count):
                add(fit, k, math.copysign(far(order, b, size * work[SCALES, k]), value))
        else:
            side = UP if value > 0.0 else DOWN
            power = pool[POWER, j]
            for k in range(count):
                z = size * work[SCALES, k] + power * work[SHARES, k]
                work[side, k] = (work[side, k] + z) + work[side, k] * z
            if work[side, count - 1] > FULL:
                add_logarithms(work, fit)
        if (j - start) % LONG_BLOCK == LONG_BLOCK - 1:
            add_logarithms(work, fit)
    add_logarithms(work, fit)


@out_of_line
def add_logarithms(work: Floats, fit: Floats) -> None:
    """Add the logarithms of both products to F at all points, and reset the products."""
    for k in range(fit.shape[1]):
        if work[UP, k] > 0.0:
            add(fit, k, math.log1p(work[UP, k]))
            work[UP, k] = 0.0
        if work[DOWN, k] > 0.0:
            add(fit, k, -math.log1p(work[DOWN, k]))
            work[DOWN, k] = 0.0


@out_of_line
def add(fit: Floats, k: int, value: float) -> None:
    """Add a value to F at a point, and its rounding error to ``fit[1]``."""
    total, lost = two_sum(fit[0, k], value)
    fit[0, k] = total
    fit[1, k] += lost
