"""Ridge regression with clipped residuals, the estimator of AdaClip.

The residuals of an arm are clipped at +-M, where M solves sum min(r^2 / M^2, 1) = a, with a = 5 log(1 + n): fewer than a of them
are clipped, as in AdaR-UCB (algorithms.md 1.4). So only the samples with the largest residuals must be kept: a buffer of `ROOM`.
The others, the body, are in the sums V, b and the squares of rewards. The threshold depends on theta, and theta on the threshold:
both are computed in turn, at most `PASSES` times.

Slopes need strong clipping, the level of an arm less: users pay means. So the mean of an arm is corrected by what a weaker
threshold M2 >= M, with a = log(1 + n), adds to the mean of its residuals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.policies.linear.model import (
    COUNT,
    FREEDOM,
    MEAN,
    WIDTH,
    add_outer,
    count_reward,
    dot,
    learn_x,
    model,
    quad,
    times,
    uncertainty,
)

# Columns of ``arms`` after COUNT. Thresholds are infinite if nothing is clipped.
SHIFT, SQUARES, USED, THRESHOLD, VARIANCE, WEAK, ADDED, WEAK_VARIANCE = 1, 2, 3, 4, 5, 6, 7, 8
COLUMNS = 9

SLOPE_CLIPS, LEVEL_CLIPS = 5.0, 1.0  # a = these times log(1 + n)
GUARD = 1.5  # n / a below which nothing is clipped
ROOM = 48
PASSES = 4
STILL = 1e-4  # theta has converged if its largest change squared, times n, is below this share of the variance
INTERCEPT = 1e-3  # lambda of the intercept; the others are 1
FEW = 8.0  # rewards until which widths are not reduced
LENT = 4.0  # degrees of freedom that the pool of all arms lends each arm


def buffers(models: int, d: int) -> dict[str, Floats]:
    """Return the fields of the state in addition to those of every linear policy."""
    return {
        "V": np.zeros((models, d * (d + 1) // 2)),
        "xs": np.zeros((models, ROOM, d)),
        "ys": np.zeros((models, ROOM)),
        "residuals": np.zeros((models, ROOM)),
        "pool": np.zeros(2),
    }


def learn_clipped(p: Any, s: Any, arm: int, x: Floats, reward: float) -> None:
    """Learn a reward at x."""
    m = model(p, arm)
    row = s.arms[m]
    if row[COUNT] == 0.0:
        row[SHIFT] = reward
        row[THRESHOLD] = row[WEAK] = math.inf
    y = reward - row[SHIFT]
    error = y - dot(s.theta[m], x)
    s.residual[0] = error - row[ADDED]
    learn_x(p, s, arm, x, 1.0)
    count_reward(p, s, arm)
    keep(s, m, x, y, error)
    fit(s, m)
    weigh(s, m)
    lend(s)


@out_of_line
def keep(s: Any, m: int, x: Floats, y: float, residual: float) -> None:
    """Put a sample into the buffer. If it is full, the sample with the smallest residual goes to the body for good."""
    row = s.arms[m]
    xs, ys, residuals = s.xs[m], s.ys[m], s.residuals[m]
    used = int(row[USED])
    place = used
    if used < ROOM:
        row[USED] += 1.0
    else:
        place = -1
        size = abs(residual)
        for j in range(ROOM):
            if abs(residuals[j]) < size:
                size = abs(residuals[j])
                place = j
        out_x = x if place < 0 else xs[place]
        out_y = y if place < 0 else ys[place]
        add_outer(s.V[m], out_x, 1.0)
        for i in range(x.shape[0]):
            s.b[m, i] += out_y * out_x[i]
        row[SQUARES] += out_y * out_y
    if place >= 0:
        for i in range(x.shape[0]):
            xs[place, i] = x[i]
        ys[place] = y
        residuals[place] = residual


@out_of_line
def fit(s: Any, m: int) -> None:
    """Compute theta, the threshold, and the residuals of the buffer."""
    row = s.arms[m]
    theta, right, new = s.theta[m], s.work[0], s.work[1]
    xs, ys, residuals = s.xs[m], s.ys[m], s.residuals[m]
    n = row[COUNT]
    a = SLOPE_CLIPS * math.log(1.0 + n)
    for turn in range(PASSES):
        limit = threshold(body_squares(s, m), residuals, int(row[USED]), a) if n > GUARD * a else math.inf
        for i in range(theta.shape[0]):
            right[i] = s.b[m, i]
        clipped = 0
        for j in range(int(row[USED])):
            r = residuals[j]
            y = ys[j]
            if abs(r) > limit:
                clipped += 1
                y += math.copysign(limit, r) - r
            for i in range(theta.shape[0]):
                right[i] += y * xs[j, i]
        times(s.P[m], right, new)
        moved = 0.0
        for i in range(theta.shape[0]):
            moved = max(moved, abs(new[i] - theta[i]))
            theta[i] = new[i]
        row[THRESHOLD] = limit
        compute_residuals(s, m)
        if (clipped == 0 and turn > 0) or moved * moved * n < STILL * max(row[VARIANCE], 1e-300):
            break


def compute_residuals(s: Any, m: int) -> None:
    """Compute the residuals of the samples in the buffer."""
    theta = s.theta[m]
    for j in range(int(s.arms[m, USED])):
        s.residuals[m, j] = s.ys[m, j] - dot(s.xs[m, j], theta)


def body_squares(s: Any, m: int) -> float:
    """Return the sum of the squared residuals of the body."""
    theta = s.theta[m]
    value = s.arms[m, SQUARES] - 2.0 * dot(theta, s.b[m]) + quad(s.V[m], theta, s.work[2])
    return max(value, 0.0)


@out_of_line
def threshold(squares: float, residuals: Floats, used: int, a: float) -> float:
    """Return M with squares / M^2 + sum min(r^2 / M^2, 1) = a, or the smallest residual of the buffer if M is below it.

    It is infinite if all residuals are 0. Each step solves the equation with the residuals clipped that the last step found. Its
    root is never below M, so the steps end at M, after few of them.
    """
    total = squares
    least = math.inf
    for j in range(used):
        size = abs(residuals[j])
        total += size * size
        least = min(least, size)
    if not total > 0.0:
        return math.inf
    clipped = 0
    while True:
        square = total / (a - clipped)
        total = squares
        beyond = 0
        for j in range(used):
            r2 = residuals[j] * residuals[j]
            if r2 > square:
                beyond += 1
            else:
                total += r2
        if beyond == clipped:
            break
        clipped = beyond
        if clipped >= a:  # only by rounding, since residuals beyond M are fewer than a
            return math.sqrt(square)
    return max(math.sqrt(square), least) if clipped == used else math.sqrt(square)


@out_of_line
def weigh(s: Any, m: int) -> None:
    """Compute the variance, the weaker threshold, its correction of the mean, and its variance. All residuals are current."""
    row = s.arms[m]
    n = row[COUNT]
    theta, residuals, used = s.theta[m], s.residuals[m], int(row[USED])
    limit = row[THRESHOLD]
    body = body_squares(s, m)
    weak = math.inf
    if n > GUARD * SLOPE_CLIPS * math.log(1.0 + n):
        weak = max(threshold(body, residuals, used, LEVEL_CLIPS * math.log(1.0 + n)), limit)
    squares = body
    weak_squares = body
    added = 0.0
    for j in range(used):
        size = abs(residuals[j])
        strong, mild = min(size, limit), min(size, weak)
        squares += strong * strong
        weak_squares += mild * mild
        added += math.copysign(mild - strong, residuals[j])
    for i in range(theta.shape[0]):
        squares += (INTERCEPT if i == 0 else 1.0) * theta[i] * theta[i]
    row[WEAK] = weak
    row[ADDED] = added / n
    row[VARIANCE] = squares / max(n - 1.0, 1.0)
    row[WEAK_VARIANCE] = max(weak_squares - added * (added / n), 0.0) / max(n - 1.0, 1.0)


def lend(s: Any) -> None:
    """Compute the pool: the variances of all arms, weighted by their degrees of freedom."""
    strong = weak = weight = 0.0
    for m in range(s.arms.shape[0]):
        w = s.arms[m, COUNT] - 1.0
        if w > 0.0:
            strong += w * s.arms[m, VARIANCE]
            weak += w * s.arms[m, WEAK_VARIANCE]
            weight += w
    if weight > 0.0:
        s.pool[0] = strong / weight
        s.pool[1] = weak / weight


def spread(p: Any, s: Any, arm: int, x: Floats) -> None:
    """Fill in the mean of an arm at x, and the width and the degrees of freedom of its law."""
    m = model(p, arm)
    row = s.arms[m]
    n = row[COUNT]
    f = n - 1.0 + LENT
    slopes = ((n - 1.0) * row[VARIANCE] + LENT * s.pool[0]) / f
    level = ((n - 1.0) * row[WEAK_VARIANCE] + LENT * s.pool[1]) / f
    q = uncertainty(s, m, x)
    own = min(q, 1.0 / n)
    few = min(1.0, FEW / n)
    square = (p.slopes + (1.0 - p.slopes) * few) * slopes * (q - own) + (p.level + (1.0 - p.level) * few) * level * own
    s.draws[arm, MEAN] = row[SHIFT] + row[ADDED] + dot(s.theta[m], x)
    s.draws[arm, WIDTH] = math.sqrt(square)
    s.draws[arm, FREEDOM] = f
