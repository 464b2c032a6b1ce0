"""The posterior of a generalised Pareto tail, on a grid.

Beyond a threshold, excesses are taken as generalised Pareto with a shape xi and a scale sigma (Pickands 1975), so their mean is
sigma / (1 - xi). The prior is flat in log sigma, and on -1/2 < xi < 1 it is proportional to (1 - xi)^(1/2) exp(-(xi - 0.4)^2 / (2
0.3^2)). That the mean exists (xi < 1) is thus assumed, and no data can show it.

The grid is even in u = (1 - xi)^(1/2), since the mean excess grows like u^-2: an even grid in xi is too coarse near xi = 1. In log
sigma it is centred at the maximum of the likelihood for each xi, in units of the standard error there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robandit.kernel.types import Floats

CENTRE, SPREAD = 0.4, 0.3
"""The normal factor of the prior of xi. With k below, its coverage was measured on laws that chose nothing."""
LOWEST = -0.5
SHAPES = 96
STEP, REACH = 0.5, 13  # the grid of log sigma in standard errors: its step, and the steps to each side
NEGLIGIBLE = 30.0  # shapes whose best likelihood is smaller than the largest one by exp of this are left out
BISECTIONS = 22  # of 12 units of log sigma: to 3e-6
STRAIGHT = 1e-6  # nearer to 0, a shape counts as 0: the exponential law


class TailPosterior(NamedTuple):
    """Points of the grid with their probabilities. A point stands for a rectangle in u and log sigma."""

    u: Floats
    log_sigma: Floats
    probability: Floats
    width: float
    """The width of the rectangles in u."""
    heights: Floats
    """Their heights in log sigma."""

    def mean_excess(self) -> Floats:
        """Return the mean of the excesses at each point."""
        return np.exp(self.log_sigma) / self.u**2

    def shape(self) -> float:
        """Return the posterior median of xi."""
        middle = int(np.searchsorted(np.cumsum(self.probability), 0.5))  # the grid is in order of u
        return float(1.0 - self.u[min(middle, len(self.u) - 1)] ** 2)

    def draws(self, count: int, rng: np.random.Generator) -> Floats:
        """Return draws of the mean excess. They are spread over the rectangles, so that a coarse grid does not show."""
        at = np.minimum(np.searchsorted(np.cumsum(self.probability), rng.random(count)), len(self.u) - 1)
        u = self.u[at] + self.width * (rng.random(count) - 0.5)
        return np.exp(self.log_sigma[at] + self.heights[at] * (rng.random(count) - 0.5)) / u**2


def log_likelihood(excesses: Floats, xi: Floats | float, sigma: Floats | float) -> Floats:
    """Return the log-likelihood of generalised Pareto parameters (arrays that broadcast); -inf where an excess is impossible."""
    xi, sigma = np.broadcast_arrays(np.asarray(xi, dtype=float), np.asarray(sigma, dtype=float))
    k = excesses.size
    bent = np.where(np.abs(xi) < STRAIGHT, STRAIGHT, xi)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log1p((bent / sigma)[..., None] * excesses).sum(axis=-1)
    curved = -(1.0 + 1.0 / bent) * logs
    found: Floats = -k * np.log(sigma) + np.where(np.abs(xi) < STRAIGHT, -excesses.sum() / sigma, curved)
    return np.where(np.isfinite(found), found, -np.inf)


def tail_posterior(excesses: Floats) -> TailPosterior:
    """Return the posterior for the excesses (above 0) over a threshold."""
    k = excesses.size
    width = math.sqrt(1.0 - LOWEST) / SHAPES
    u: Floats = width * (np.arange(SHAPES, dtype=np.float64) + 0.5)
    xi: Floats = 1.0 - u**2
    prior = 2.0 * np.log(u) - (xi - CENTRE) ** 2 / (2.0 * SPREAD**2)  # one u is (1 - xi)^(1/2), the other one dxi / du
    centre = _best_log_sigma(excesses, xi)
    best = log_likelihood(excesses, xi, np.exp(centre)) + prior
    kept = best > best.max() - NEGLIGIBLE
    u, xi, prior, centre = u[kept], xi[kept], prior[kept], centre[kept]
    heights = STEP * np.sqrt((1.0 + 2.0 * xi) / k)  # the standard error of log sigma for a known xi
    log_sigma = centre[:, None] + heights[:, None] * np.arange(-REACH, REACH + 1)
    log = log_likelihood(excesses, xi[:, None], np.exp(log_sigma)) + (prior + np.log(heights))[:, None]
    probability = np.exp(log - log.max())
    columns = log_sigma.shape[1]
    found = log_sigma.ravel(), (probability / probability.sum()).ravel()
    return TailPosterior(np.repeat(u, columns), *found, width, np.repeat(heights, columns))


def _best_log_sigma(excesses: Floats, xi: Floats) -> Floats:
    """Return the log sigma of the largest likelihood for each shape, by bisection of the score, which decreases."""
    k, middle, largest = excesses.size, math.log(excesses.mean()), float(excesses.max())
    scaled = excesses * xi[:, None]
    with np.errstate(divide="ignore"):
        edge = np.log(np.maximum(-xi * largest, 0.0))  # below it, the largest excess is impossible
    low = np.maximum(middle - 6.0, edge)
    high = np.maximum(middle + 6.0, low + 1.0)
    for _ in range(BISECTIONS):
        mid = (low + high) / 2.0
        score = ((1.0 + xi)[:, None] * excesses / (np.exp(mid)[:, None] + scaled)).sum(axis=1) - k
        low, high = np.where(score > 0.0, mid, low), np.where(score > 0.0, high, mid)
    return (low + high) / 2.0
