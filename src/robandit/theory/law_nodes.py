"""Convert laws to points with weights, for expectations of functions that are smooth except at a few known places.

**Laws with a density** are integrated over x by the double-exponential rule. The variable is the logarithm of the distance to
the next place: an end of the support, the bulk, or a given place. The tails are cut at a probability below 1e-60, and means have
at least 13 correct digits.

**Other laws** (`robandit.laws.Stable`, and your own) have only a cdf. They are integrated over the logit of the cdf, up to
probabilities of `TAIL` on either side. Beyond that 1 - cdf has few correct digits, so the rest of the tails is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from robandit.kernel.types import Floats
from robandit.laws.combinators import Leaf
from robandit.laws.location_scale import LocationScale, SymmetricLaw
from robandit.laws.quadrature import NEGLIGIBLE, Density
from robandit.policies.klinf.upper_bound import FARTHEST

NODES = 800  # per piece of a law
OUT = 10.0  # a break at 10 times the centre: between the two the tail begins, and may fall steeply
DEPTH = 140.0  # a heavy tail is cut where the probability beyond is exp(-140) < 1e-60
TAIL = 1e-10  # cut probability where only the cdf is known


def has_density(leaf: Leaf) -> bool:
    """Return whether the law is integrated to the end of its tails."""
    return isinstance(leaf.law, LocationScale)


def nodes(leaf: Leaf, unit: float, places: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return points, densest at ``places`` (both in units), and weights that add up to the leaf's weight."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        x, weight = _by_density(leaf, unit, places) if has_density(leaf) else _by_cdf(leaf, unit, places)
    positive = weight > 0.0
    return x[positive], leaf.weight * weight[positive] / weight.sum()


def _by_density(leaf: Leaf, unit: float, places: tuple[float, ...]) -> tuple[Floats, Floats]:
    law = leaf.law
    assert isinstance(law, LocationScale)  # has_density
    loc, scale = law.placement
    density = law.standard_density(2.0)
    x, weight = [], []
    for side in (1.0, -1.0) if isinstance(law, SymmetricLaw) else (1.0,):
        named = (side * ((place * unit - leaf.loc) / leaf.scale - loc) / scale for place in places)
        breaks = sorted(
            {density.lower, density.centre, OUT * density.centre, *(z for z in named if density.lower < z < math.inf)}
        )
        for z, mass in _pieces(density, breaks):
            x.append((leaf.loc + leaf.scale * (loc + scale * (side * z))) / unit)
            weight.append(mass)
    return np.concatenate(x), np.concatenate(weight)


def _pieces(density: Density, breaks: list[float]) -> Iterator[tuple[Floats, Floats]]:
    """Yield points and weights between the breaks, and beyond the last one."""
    for low, high in pairwise(breaks):
        edge = min(density.edge, 1.0) if low == density.lower else 1.0
        length = math.log(high - low)
        t = np.linspace(
            -math.asinh(NEGLIGIBLE / edge + max(length, 0.0)), math.asinh(NEGLIGIBLE + max(length, 0.0)), NODES
        )
        logit = np.sinh(t)
        below, above = length - np.logaddexp(0.0, -logit), length - np.logaddexp(0.0, logit)
        z = np.where(t < 0.0, low + np.exp(below), high - np.exp(above))
        log_z = np.where(t < 0.0, below, np.log(z)) if low == 0.0 else np.log(z)
        yield z, _terms(density.log_density(z, log_z) + below + above - length, t)
    low = breaks[-1]
    edge = min(density.edge, 1.0) if low == density.lower else 1.0
    far = max(math.log(low), 0.0) if low > 0.0 else 0.0
    if density.log_kernel is None:
        far += max(NEGLIGIBLE / min(density.edge, 1.0), density.reach)
    else:
        far += DEPTH / min(density.tail, 1.0)
    t = np.linspace(-math.asinh(NEGLIGIBLE / edge), math.asinh(far), NODES)
    offset = np.sinh(t)
    log_z = np.logaddexp(math.log(low), offset) if low > 0.0 else offset
    z = low + np.exp(offset)
    if density.log_kernel is None:
        yield z, _terms(density.log_density(z, log_z) + offset, t)
    else:  # z itself may overflow
        yield z, _terms(density.log_kernel(np.exp(-log_z)) - (density.tail + 1.0) * log_z + offset, t)


def _terms(log_terms: Floats, t: Floats) -> Floats:
    """Return the rule's weights, with 0 for terms that are NaN (0 times infinity)."""
    return np.asarray(np.exp(np.where(np.isnan(log_terms), -np.inf, log_terms)) * np.cosh(t) * (t[1] - t[0]))


def _by_cdf(leaf: Leaf, unit: float, places: tuple[float, ...]) -> tuple[Floats, Floats]:
    end = math.log(1.0 / TAIL - 1.0)
    levels = np.clip(leaf.cdf(np.array(places) * unit), TAIL, 1.0 - TAIL)
    breaks = np.unique([-end, *np.log(levels / (1.0 - levels)), end])
    t = np.linspace(-3.7, 3.7, NODES)  # beyond, nodes are less than 1e-27 from a break
    near = 1.0 / (1.0 + np.exp(np.pi * np.sinh(t)))
    logits, weights = [], []
    for low, high in pairwise(breaks.tolist()):
        logit = np.where(t < 0.0, low + (high - low) * near[::-1], high - (high - low) * near)
        level = 1.0 / (1.0 + np.exp(-logit))
        logits.append(logit)
        weights.append((high - low) * level * (1.0 - level) * np.cosh(t) * near * (1.0 - near))
    return _quantiles(leaf, unit, 1.0 / (1.0 + np.exp(-np.concatenate(logits)))), np.concatenate(weights)


def _quantiles(leaf: Leaf, unit: float, level: Floats) -> Floats:
    """Return quantiles in units, by bisection in asinh x. The error is 1e-10, absolute for small x and relative for large x."""
    reach = math.asinh(FARTHEST)
    low, high = np.full(level.shape, -reach), np.full(level.shape, reach)
    for _ in range(42):
        middle = 0.5 * (low + high)
        below = leaf.cdf(np.sinh(middle) * unit) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.sinh(0.5 * (low + high)))
