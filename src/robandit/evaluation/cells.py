"""Draws of the mean of a cell: the rewards of one arm (in one segment), with or without weights.

The body is taken as normal around its mean, and the two tails as generalised Pareto (`robandit.evaluation.tails`). The shares of
the three parts are those of a Bayesian bootstrap (Gamma weights). So the draws allow for rewards beyond all that were seen; for
heavy tails, the bootstrap does not. Cells of at most 25 rewards get draws of a Student-t law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from robandit.evaluation.tails import tail_posterior
from robandit.kernel.types import Floats

SMALL = 25  # rewards; up to this number, tails cannot be fitted
EXCESSES = 5  # fewer in a tail belong to the body
FEWEST, MOST, GROWTH = 8, 400, 0.6  # values in a tail, and how their number grows with the effective number of rewards


@dataclass(frozen=True, eq=False)
class CellMean:
    """The mean of a cell, and draws of the mean of its law."""

    mean: float
    """The (weighted) mean of the rewards."""
    draws: Floats = field(repr=False)
    n: int
    effective: float
    """The number of rewards without weights that would be as precise: (sum v)^2 / sum v^2."""
    left: float = math.nan
    """The posterior median of the shape of the left tail: 1 / tail index, NaN if no tail was fitted."""
    right: float = math.nan


def cell_mean(values: Floats, weights: Floats | None = None, *, count: int, rng: np.random.Generator) -> CellMean:
    """Return ``count`` draws of the mean of the law of a cell's values. There must be at least two of them.

    Parameters
    ----------
    values
        Finite numbers.
    weights
        A number above 0 for each value, such as one over the probability of its choice.

    Examples
    --------
    >>> import numpy as np
    >>> from robandit.laws import Pareto
    >>> sample = Pareto(tail=1.5).sample(1000, seed=1)  # the mean of the law is 3
    >>> found = cell_mean(sample, count=4000, rng=np.random.default_rng(0))
    >>> round(found.mean, 2), [round(float(x), 2) for x in np.quantile(found.draws, [0.025, 0.975])]
    (2.88, [2.64, 3.38])
    """
    n = len(values)
    if weights is None:
        effective, relative = float(n), np.ones(1)
        share = np.full(1, 1.0 / n)
    else:
        total = float(weights.sum())
        effective, relative, share = total**2 / float(weights @ weights), weights * (n / total), weights / total
    scale = float(np.abs(values).max()) or 1.0  # so that squares and Gamma weights of huge values do not overflow
    scaled = values / scale
    mean = float((share * scaled).sum())
    terms = math.sqrt(effective / max(effective - 1.0, 0.5)) * relative * (scaled - mean)
    terms -= terms.mean()
    if n <= SMALL:
        draws = mean + terms.std(ddof=1) / math.sqrt(n) * rng.standard_t(n - 1, count)
        return CellMean(mean * scale, draws * scale, n, effective)
    squares = relative**2
    rows = n if weights is None else float(squares.sum() ** 2 / (squares @ squares))
    k = min(MOST, max(FEWEST, math.floor(rows**GROWTH)))
    ends = np.partition(terms, (k, n - k - 1))
    above, below = float(ends[n - k - 1]), float(ends[k])  # thresholds
    right, left = terms > above, terms < below
    right &= np.count_nonzero(right) >= EXCESSES
    left &= np.count_nonzero(left) >= EXCESSES
    body = terms[~(left | right)]
    weight = rng.gamma(body.size, size=count)
    total_weight = weight.copy()
    sum_ = weight * (body.mean() + body.std() / math.sqrt(body.size) * rng.standard_normal(count))
    shapes = []
    for beyond, threshold, sign in ((left, below, -1.0), (right, above, 1.0)):
        excesses = sign * (terms[beyond] - threshold)
        if not excesses.size:
            shapes.append(math.nan)
            continue
        posterior = tail_posterior(excesses)
        shapes.append(posterior.shape())
        weight = rng.gamma(excesses.size, size=count)
        sum_ += weight * (threshold + sign * posterior.draws(count, rng))
        total_weight += weight
    return CellMean(mean * scale, (mean + sum_ / total_weight) * scale, n, effective, *shapes)
