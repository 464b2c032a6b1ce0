"""The index of KLinf-UCB: the largest mean that a sample, a moment bound and a budget of divergence allow.

Among all laws with E|X|^(1+eps) <= B and Kullback-Leibler divergence at most C from the sample, the largest mean is

    U = min over l > 0 and a >= h(l) of  a + l B - exp(-C + mean_j log(a - x_j + l |x_j|^(1+eps))).

``h(l)`` makes the argument of the logarithm non-negative on the whole line. Where it is zero, the optimal law may have an atom
outside the sample. With y = exp(theta) the position of that zero, ``l = y^-eps / (1+eps)`` and ``h = eps y / (1+eps)``. With ``a =
h + s``, s >= 0.

The problem is convex in (a, l). Newton's method in (theta, s) starts from the last solution, with second derivatives from one pass
over the sample. Where it does not converge (2 % of cold starts on heavy tails), nested searches find the s with derivative zero for
each theta, then theta. Every feasible (a, l) gives an upper bound, so the result is never too small.

Rewards are divided by B^(1/(1+eps)), so that B = 1 and -1 <= U <= 1. With rounding, the result is accurate to 1e-10 units, or 1e-16
/ C units if that is more, except for a C within a relative 1e-6 of the least budget that any law of the class needs. If no law of
the class is within the budget, because an outlier contradicts B, the index is +inf. Rewards beyond 1e75 units count as 1e75 units:
a law of the class explains such a reward only with N C > 170, and KLinf-UCB has less than 120 in any run of less than 2^53 pulls.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.kernel import compiled
from robandit.kernel.generate import out_of_line
from robandit.kernel.types import Floats
from robandit.validation import column, order, positive

# A row that holds a solution.
VALUE = 0  # the index in units; +inf if no law of the class is within the budget
TOP = 1  # a + l
GEOMETRIC = 2  # geometric mean of a - x_j + l p_j; at any other budget C the index is at most TOP - exp(-C) GEOMETRIC
THETA = 3  # log y
SLACK = 4  # s = a - h(l)
SOLUTION_LENGTH = 5

FARTHEST = 1e75  # units
LARGEST_L = 1e9  # beyond it, a + l loses too many digits to cancellation
LARGEST_THETA = 300.0
STEPS = 20  # the most steps of Newton's method; from the last solution it takes 2 to 5
SEARCH = 120  # steps of each nested search
CLOSE = 1e-11  # units
PRODUCT = 1e120  # factors are multiplied up to this size, to take fewer logarithms
FLOOR = 1e-100  # smallest factor


Sample = tuple[Floats, int, int, float, float]  # pool, first column, size, mean, moment


def klinf_index(x: ArrayLike, *, eps: float, u: float, budget: float) -> float:
    """Return the largest mean of a law with E|X|^(1+eps) <= u whose divergence KL(sample, law) is at most ``budget``.

    It is sup{m : KLinf(sample, m) <= budget}. With b = u^(1/(1+eps)) it is in [-b, b] and accurate to 1e-10 b. It is +inf if no law
    of the class is within the budget. KLinf-UCB uses it with budget = threshold / N.

    >>> round(klinf_index([-1.0, 0.0, 0.5, 2.0], eps=0.5, u=3.0, budget=0.1), 8)
    1.21817448
    """
    sample = column(x, "x", owner="klinf_index")
    eps = order(eps, owner="klinf_index")
    u = positive(u, "u", owner="klinf_index")
    budget = positive(budget, "budget", owner="klinf_index")
    unit = u ** (1.0 / (1.0 + eps))
    pool = np.empty((2, sample.size))
    with np.errstate(over="ignore"):
        pool[0] = np.clip(sample / unit, -FARTHEST, FARTHEST)
    pool[1] = np.abs(pool[0]) ** (1.0 + eps)
    solution = np.zeros((1, SOLUTION_LENGTH))
    _kernel()(pool, solution, eps, budget, float(pool[0].mean()), float(pool[1].mean()))
    return unit * float(solution[0, VALUE])


@cache
def _kernel() -> Any:
    args = (np.zeros((2, 1)), np.zeros((1, SOLUTION_LENGTH)), 1.0, 1.0, 0.0, 0.0)
    return compiled(one_index, label="the KLinf index", args=args)


def one_index(pool: Floats, solution: Floats, eps: float, budget: float, mean: float, moment: float) -> None:
    """Solve for one sample from a cold start."""
    start_at(solution[0], eps, budget, moment)
    solve(pool, 0, pool.shape[1], solution[0], eps, budget, mean, moment)


def start_at(solution: Floats, eps: float, budget: float, moment: float) -> None:
    """Set a first guess: an atom of mass ``budget`` as far out as the remaining moment allows."""
    solution[THETA] = math.log1p(max(1.0 - moment, 0.0) / budget) / (1.0 + eps)
    solution[SLACK] = 0.0


def solve(
    pool: Floats, start: int, n: int, solution: Floats, eps: float, budget: float, mean: float, moment: float
) -> None:
    """Put the solution for the sample in columns ``start`` to ``start + n`` into ``solution``, which holds the starting point.

    ``pool`` has rewards x and |x|^(1+eps) in units. Their means, ``mean`` and ``moment``, may be inexact, except that a moment of
    at most 1 means that the sample itself is in the class.
    """
    if moment > 1.0 and too_far(pool, start, n, budget):
        solution[VALUE] = math.inf
        return
    theta = solution[THETA]
    slack = solution[SLACK]
    solution[VALUE] = math.inf
    sample = (pool, start, n, mean, moment)
    if not newton(sample, solution, eps, budget, theta, slack):
        nested(sample, solution, eps, budget)
    solution[VALUE] = min(max(solution[VALUE], -1.0), 1.0)


@out_of_line
def too_far(pool: Floats, start: int, n: int, budget: float) -> bool:
    """Return whether all laws of the class exceed the budget. The least is max over 0 <= w <= 1 of mean log(1 + w (p_j - 1))."""
    low = 0.0
    high = 1.0
    w = 1.0 / (n + 1.0)
    for _ in range(SEARCH):
        logs = 0.0
        product = 1.0
        rise = 0.0
        bend = 0.0
        for j in range(start, start + n):
            gap = pool[1, j] - 1.0
            factor = max(1.0 + w * gap, FLOOR)
            product *= factor
            if product > PRODUCT or product < 1.0 / PRODUCT:
                logs += math.log(product)
                product = 1.0
            share = gap / factor
            rise += share
            bend += share * share
        value = (logs + math.log(product)) / n
        if value > budget:
            return True
        if rise > 0.0:
            low = w
            most = value + rise / n * (high - w)
        else:
            high = w
            most = value + rise / n * (low - w)
        if most <= budget or high - low <= 1e-15 * high:
            return False
        w += rise / bend
        if not low < w < high:
            w = 0.5 * (low + high)
    return False


@out_of_line
def moments(sample: Sample, a: float, lam: float, least: float) -> tuple[float, float, float, float, float, float]:
    """Return the means of log(r / (a + lam)), 1/r and p/r, and the (co)variances of the last two, for r_j = a - x_j + lam p_j."""
    pool, start, n, mean, moment = sample
    scale = 1.0 / (a + lam)
    about = 1.0 / max(a - mean + lam * moment, least)
    about_p = moment * about
    logs = 0.0
    product = 1.0
    d = 0.0
    e = 0.0
    dd = 0.0
    de = 0.0
    ee = 0.0
    for j in range(start, start + n):
        power = pool[1, j]
        r = max(a - pool[0, j] + lam * power, least)
        product *= r * scale
        if product > PRODUCT or product < 1.0 / PRODUCT:
            logs += math.log(product)
            product = 1.0
        inverse = 1.0 / r
        first = inverse - about
        second = power * inverse - about_p
        d += first
        e += second
        dd += first * first
        de += first * second
        ee += second * second
    d /= n
    e /= n
    return (logs + math.log(product)) / n, about + d, about_p + e, dd / n - d * d, de / n - d * e, ee / n - e * e


@out_of_line
def descent(
    sample: Sample, solution: Floats, eps: float, budget: float, theta: float, slack: float
) -> tuple[float, float, float, float, float, float]:
    """Return the objective and its derivatives by theta, s, theta twice, both, s twice. Keep the best point in ``solution``."""
    y = math.exp(theta)
    h = eps / (1.0 + eps) * y
    lam = math.exp(-eps * theta) / (1.0 + eps)
    # In exact arithmetic r >= s. Rounding is a few 1e-16 y, and a reward at y has weight at most y^-(1+eps).
    least = max(slack, 1e-17 * y, FLOOR)
    logs, i, q, ii, iq, qq = moments(sample, h + slack, lam, least)
    top = h + slack + lam
    g = top * math.exp(logs - budget)
    value = -top * math.expm1(logs - budget)  # top - g, without cancellation for a small budget
    if value < solution[VALUE]:
        solution[VALUE] = value
        solution[TOP] = top
        solution[GEOMETRIC] = top * math.exp(logs)
        solution[THETA] = theta
        solution[SLACK] = slack
    by_a = 1.0 - g * i
    by_l = 1.0 - g * q
    dl = -eps * lam  # the derivative of l by theta; the derivative of h is h
    by_theta = by_a * h + by_l * dl
    # The last term is >= 0 at the minimum, and 0 there if s > 0. Clipped at 0 elsewhere, it keeps the matrix from being indefinite.
    twice = g * (ii * h * h + 2.0 * iq * h * dl + qq * dl * dl) + max(by_a * h - eps * dl * by_l, 0.0)
    return value, by_theta, by_a, twice, g * (ii * h + iq * dl), g * ii


def left_to_gain(eps: float, top: float, slack: float, by_theta: float, by_s: float) -> float:
    """Return the most that the value can still decrease, if l and a are of the same order as at the minimum.

    By convexity it is at most |dF/dl| |l - l*| + dF/da (a - a*), the first with s fixed, where l dF/dl = by_theta / eps.
    """
    return abs(by_theta) / eps + (by_s * slack if by_s > 0.0 else -by_s * top)


def newton(sample: Sample, solution: Floats, eps: float, budget: float, theta: float, slack: float) -> bool:
    """Run Newton's method; return False if it does not converge. Each step solves the quadratic problem with s >= 0."""
    base = math.inf
    step = 0.0
    step_s = 0.0
    for _ in range(STEPS):
        value, by_theta, by_s, tt, ts, ss = descent(sample, solution, eps, budget, theta, slack)
        top = solution[TOP]
        if left_to_gain(eps, top, slack, by_theta, by_s) <= CLOSE + 1e-15 * top:
            return True
        if value > base + 1e-14 * top:  # overshot: retry with a quarter of the step
            theta -= 0.75 * step
            slack -= 0.75 * step_s
            step *= 0.25
            step_s *= 0.25
            continue
        base = value
        step_s = -slack
        det = tt * ss - ts * ts
        if det > 1e-14 * tt * ss:
            step_s = max((ts * by_theta - tt * by_s) / det, -slack)
        step = -(by_theta + ts * step_s) / tt
        if not (tt > 0.0 and abs(step) + step_s < math.inf):
            return False
        if abs(step) > 2.0:
            step_s *= 2.0 / abs(step)
            step = math.copysign(2.0, step)
        theta += step
        slack = max(slack + step_s, 0.0)
        if not (abs(theta) <= LARGEST_THETA and -eps * theta <= math.log(LARGEST_L)):
            return False
    return False


@out_of_line
def best_slack(
    sample: Sample, solution: Floats, eps: float, budget: float, theta: float, guess: float
) -> tuple[float, float, float]:
    """Return the best s for one theta, and the first two derivatives by theta there."""
    _, by_theta, by_s, tt, ts, ss = descent(sample, solution, eps, budget, theta, 0.0)
    if by_s >= 0.0:
        return 0.0, by_theta, tt
    low = 0.0
    high = math.inf
    s = guess if guess > 0.0 else math.exp(theta)
    for _ in range(SEARCH):
        _, by_theta, by_s, tt, ts, ss = descent(sample, solution, eps, budget, theta, s)
        if by_s > 0.0:
            high = s
        else:
            low = s
        if abs(by_s) <= 1e-13 or (high < math.inf and high - low <= 1e-15 * high):
            break
        new = s - by_s / ss
        if not low < new < high:
            new = 4.0 * s if high == math.inf else 0.5 * (low + high)
        s = new
    return s, by_theta - by_s * ts / ss, tt - ts * ts / ss


@out_of_line
def nested(sample: Sample, solution: Floats, eps: float, budget: float) -> None:
    """Search for theta between a point where the derivative is negative and one where it is positive."""
    bottom = max(-math.log(LARGEST_L) / eps, -LARGEST_THETA / eps)
    low = -math.inf
    high = math.inf
    theta = 0.0
    slack = 0.0
    stride = 1.0
    for _ in range(SEARCH):
        slack, slope, bend = best_slack(sample, solution, eps, budget, theta, slack)
        if slope > 0.0:
            high = theta
        else:
            low = theta
        if high - low <= 1e-14 * max(1.0, abs(theta)):
            return
        new = theta - slope / bend
        if low == -math.inf or high == math.inf:
            new = theta - stride if slope > 0.0 else theta + stride
            stride *= 2.0
            if new < bottom or new > LARGEST_THETA:
                if theta in (bottom, LARGEST_THETA):
                    return
                new = bottom if new < bottom else LARGEST_THETA
        elif left_to_gain(eps, solution[TOP], slack, slope, 0.0) <= CLOSE + 1e-15 * solution[TOP]:
            return
        elif not low < new < high:
            new = 0.5 * (low + high)
        theta = new
