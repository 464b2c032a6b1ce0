"""Catoni's mean with the moment chosen by Lepskii's method."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.estimators.estimate import Estimate, interval, log_over, moment_order, rows
from robandit.estimators.formulas.catoni import influence_constant
from robandit.estimators.infinite_variance import tuning
from robandit.estimators.roots import row_roots
from robandit.hints import guided
from robandit.kernel.types import Floats
from robandit.validation import probability, within

MOST = 10_000  # moments in the grid; each one requires the solution of an equation


@guided
def lepskii_catoni(
    x: ArrayLike, *, eps: float, delta: float = 0.05, range_factor: float = 100.0, ratio: float = 2.0, axis: int = -1
) -> Estimate:
    """`infinite_variance_catoni` for an unknown moment: uses the smallest moment of a grid that agrees with all larger ones.

    Use its value if you know the order of the moment but not its size. Its bounds are valid under the assumption below but wide,
    because they must allow for the largest moment in the range. Reduce ``range_factor`` if you can. The estimate's ``threshold``
    is the chosen scale v^(1/(1+eps)).

    Parameters
    ----------
    eps
        The moment of order 1 + eps is finite, 0 < eps <= 1.
    range_factor
        The factor A by which v^(1/(1+eps)) may differ from its estimate, up or down.
    ratio
        Ratio of neighbouring grid points, > 1.

    Guarantee
    ---------
    Let s = (mean |x|^(1+eps))^(1/(1+eps)), r = v^(1/(1+eps)) with v = E|x - mean|^(1+eps), and w(L) the width of
    `infinite_variance_catoni` at v = 1 with L = log(2 (1 + log A^2 / log ratio) / delta). If s/A <= r <= A s, the published bound
    is |value - mean| <= 3 ratio r w(L) with probability at least 1 - delta. We could not reproduce the proof for the printed
    rule. As r is unknown, the returned bounds use only known numbers of the proof: |value - mean| <= (2 chosen + ratio A s) w(L).
    Requires eps. The method is not fully adaptive: it assumes that s is within a factor A of r, a strong assumption for eps near
    0. (The grid starts at s/A, so it depends on the sample; the published proof counts its points as if it did not.)

    Examples
    --------
    >>> import numpy as np
    >>> from robandit.estimators import lepskii_catoni
    >>> x = np.random.default_rng(0).pareto(1.8, 10_000)  # mean 1.25
    >>> round(lepskii_catoni(x, eps=0.5, delta=0.05).value, 5)
    1.18082

    References
    ----------
    S. Bhatt, G. Fang, P. Li, G. Samorodnitsky. Nearly optimal Catoni's M-estimator for infinite variance. ICML 2022, PMLR 162.
    """
    eps, delta = moment_order(eps), probability(delta, "delta")
    range_factor = within(range_factor, "range_factor", 1.0, math.inf, open_low=True)
    ratio = within(ratio, "ratio", 1.0, math.inf, open_low=True)
    matrix, shape = rows(x, axis)
    count, n = matrix.shape
    order = 1.0 + eps
    factor = influence_constant(order)
    points = 1.0 + 2.0 * math.log(range_factor) / math.log(ratio)
    if points > MOST:
        raise InvalidInput(
            f"ratio = {ratio!r} and range_factor = {range_factor!r} give a grid of {points:.3g} moments, and {MOST} are allowed: "
            f"pass a ratio of at least {1.0 + math.expm1(2.0 * math.log(range_factor) / (MOST - 1.0)) * 1.0001:.10g}"
        )
    tuned = tuning(n, log_over(2.0 * points, delta), eps)
    scales = _scales(matrix, order)
    # The grid extends to ratio * A * s, so that no moment in the range exceeds its last point. 1e-9 allows for a rounded logarithm.
    grid = _grid(scales, range_factor, ratio, math.floor(points + 1e-9) + 1)
    roots = np.empty_like(grid)
    start = None
    for j in reversed(range(len(grid))):
        roots[j] = start = row_roots(matrix, tuned.alpha / grid[j], order=order, factor=factor, starts=start)
    with np.errstate(over="ignore"):  # a width that overflows is infinite
        chosen = _smallest_that_agrees(roots, grid, tuned.width)
        every = np.arange(count)
        value, scale = roots[chosen, every], grid[chosen, every]
        width = (2.0 * scale + ratio * range_factor * scales) * tuned.width
    assumed = (
        f"the moment of order {order:g} is within a factor {range_factor:g} of its estimate, as scales (Bhatt et al.)"
    )
    return interval(value, width, shape, delta=delta, assumed=assumed, n=n, threshold=scale)


def _grid(scales: Floats, range_factor: float, ratio: float, count: int) -> Floats:
    """Return scales / A * ratio^j for j < count, one row per j."""
    steps = np.arange(float(count))[:, None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        grid: Floats = scales / range_factor * ratio**steps
        if not np.isfinite(grid).all() or not (grid > 0.0).all():
            # The power may overflow although the product does not.
            grid = np.exp(np.log(scales) - math.log(range_factor) + steps * math.log(ratio))
    if not (grid < 1e307).all() or not (grid > 1e-307).all():
        raise InvalidInput(
            f"with range_factor = {range_factor:g} the moments reach from {grid.min():.3g} to {grid.max():.3g} as scales, outside "
            "the range of doubles: divide the sample by a constant, or lower range_factor"
        )
    return grid


def _scales(matrix: Floats, order: float) -> Floats:
    """Return (mean |x|^order)^(1/order), computed in units of the largest size so that no power overflows."""
    sizes = np.abs(matrix)
    largest = sizes.max(axis=1)
    if not (largest > 0.0).all():
        raise InvalidInput("all values of a sample are zero, so its moment has no estimate: leave that sample out")
    scales: Floats = largest * ((sizes / largest[:, None]) ** order).mean(axis=1) ** (1.0 / order)
    return scales


def _smallest_that_agrees(roots: Floats, grid: Floats, width: float) -> Floats:
    """Return for each sample the least j with |roots[k] - roots[j]| <= 2 width grid[j] for every k > j."""
    chosen = np.full(roots.shape[1], len(grid) - 1)
    above = roots[-1].copy()  # the largest and the smallest root beyond j
    below = roots[-1].copy()
    for j in reversed(range(len(grid) - 1)):
        reach = 2.0 * width * grid[j]
        chosen[(above - roots[j] <= reach) & (roots[j] - below <= reach)] = j
        above = np.maximum(above, roots[j])
        below = np.minimum(below, roots[j])
    return chosen
