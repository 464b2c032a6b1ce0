"""A tail index from exceedances over thresholds, with an interval that allows for bias. Shifts of the values do not matter.

Beyond a high threshold almost every law looks like a generalised Pareto law, whose shape is 1/index (Pickands 1975). The fit by
maximum likelihood ignores the location, and its standard error is (1 + shape) / sqrt(k) for k values beyond the threshold. But a
large k reaches into the bulk. So the fit is repeated for all values of the side, half of them, a quarter, and so on (rungs):

1. The base is the largest rung that agrees with the next three, within two standard errors.
2. The estimate is that of the rung with a quarter of the base's values, as a margin for bias. The interval contains those of this
   rung and of the next one; if the base is not the first rung, the light end includes a third one. The level of each is
   1 - alpha / 2, because k was chosen from the data.
3. The shape of a log-normal law falls to 0, but so slowly that it looks like a power: the local shape at the normal quantile z is
   sigma m(z) - (1 - z m(z)), with Mills' ratio m. The interval excludes an infinite index only if the shapes of the rungs from the
   base on fall significantly less than this formula predicts (level alpha / 2).

The level is measured, not proved (docs/results/tail-intervals.md), and so are the constants below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robandit.kernel.types import Floats

LEAST = 24  # values beyond a threshold; with fewer, the interval is too wide to be useful
AGREE = 2.0  # standard errors
SHORT = -0.1  # shapes below it count as equal here: which of several light tails it is does not matter
WINDOW = 3  # rungs that must agree with the base; with all of them, one outlier among the last would reject every base
MARGIN = 2  # rungs from the base to the estimate
NO_NEXT = 1.1  # widens the interval of the last rung, which has no next one
BIAS = 3.0  # the fitted shape is too low by about BIAS / k (measured for indices from 1 to infinity)
DEPTH = 2.5  # the fit to a share p of a log-normal law has the local shape at about p / DEPTH
LOWEST = -0.5  # below, the likelihood has no maximum with the usual limit law; such tails are short in any case
THINNED = 1024  # values that locate the maximum of the likelihood
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Rung(NamedTuple):
    """The largest distances of a side, in decreasing order. The last one is the threshold."""

    top: Floats
    share: float
    """The number of distances beyond the threshold over that of all values, on both sides."""
    source: int = 0
    """Rungs of one source are nested; others are taken as independent."""


class Fit(NamedTuple):
    """The shape, its interval, and the number of values beyond the threshold. An open end is infinite."""

    shape: float
    low: float
    high: float
    k: int


def fitted(rungs: Sequence[Rung], confidence: float) -> Fit | None:
    """Return the shape and its interval, or None if equal values leave no rung. Rungs have decreasing shares."""
    from scipy.special import ndtri

    kept = [(rung, excesses) for rung in rungs if len(excesses := _excesses(rung.top)) >= LEAST]
    kept = [each for i, each in enumerate(kept) if not i or len(each[1]) != len(kept[i - 1][1])]
    if not kept:
        return None
    shape = np.array([generalized_pareto_shape(each) + BIAS / len(each) for _, each in kept])
    k = np.array([float(len(each)) for _, each in kept])
    share = np.array([rung.share * len(each) / (len(rung.top) - 1) for rung, each in kept])
    source = np.array([rung.source for rung, _ in kept])
    z = float(ndtri(1.0 - (1.0 - confidence) / 4.0))
    base = next(i for i in range(len(k)) if _agrees(shape, k, source, i))
    chosen = min(base + MARGIN, len(k) - 1)
    width = z * (NO_NEXT if chosen == len(k) - 1 else 1.0) / np.sqrt(k)
    # |estimate - shape| <= width (1 + shape), solved for the shape
    lows = (shape - width) / (1.0 + width)
    highs = np.where(width < 1.0, (shape + width) / np.maximum(1.0 - width, 1e-9), math.inf)
    low, high = float(lows[chosen : chosen + (3 if base else 2)].min()), float(highs[chosen : chosen + 2].max())
    if not _falls_too_little(shape[base:], k[base:], source[base:], share[base:], z):
        low = -math.inf
    return Fit(float(shape[chosen]), low, high, int(k[chosen]))


def _excesses(top: Floats) -> Floats:
    """Return the excesses in decreasing order. The threshold is moved half-way to the next value, as if values were rounded."""
    beyond: Floats = top[:-1][top[:-1] > top[-1]]
    if not len(beyond) or beyond[0] == beyond[-1]:
        return beyond[:0]
    excesses = beyond - (0.5 * beyond[-1] + 0.5 * top[-1])
    positive: Floats = excesses[excesses > 0.0]  # all, unless the two are neighbouring doubles
    return positive


def _variances(k: Floats, source: Floats, first: int, others: slice) -> Floats:
    """Return the variances of the differences between the shapes of rungs and of a larger one, divided by (1 + shape)^2."""
    # An efficient estimate of a part has a covariance of 1 / k.
    sign = np.where(source[others] == source[first], -1.0, 1.0)
    variances: Floats = 1.0 / k[others] + sign / k[first]
    return variances


def _agrees(shape: Floats, k: Floats, source: Floats, i: int) -> bool:
    others, shape = slice(i + 1, i + 1 + WINDOW), np.maximum(shape, SHORT)
    errors = (1.0 + shape[i]) * np.sqrt(_variances(k, source, i, others))
    return bool(np.all(np.abs(shape[others] - shape[i]) <= AGREE * errors))


def _falls_too_little(shape: Floats, k: Floats, source: Floats, share: Floats, z: float) -> bool:
    """Return whether the shapes contradict a log-normal tail with the shape of the first rung."""
    from scipy.special import erfcx, ndtri

    quantile = -ndtri(share / DEPTH)
    mills = math.sqrt(math.pi / 2.0) * erfcx(quantile / math.sqrt(2.0))
    rest = 1.0 - quantile * mills
    sigma = (shape[0] + rest[0]) / mills[0]
    if sigma <= 0.0:
        return False
    expected, steps = np.diff(sigma * mills - rest), np.diff(shape)
    variances = np.array([_variances(k, source, i, slice(i + 1, i + 2))[0] for i in range(len(k) - 1)])
    weights = expected / ((1.0 + shape[0]) ** 2 * variances)
    # The sum of weights * steps has this mean and variance for a log-normal tail.
    mean = float(weights @ expected)
    return float(weights @ steps) < mean - z * math.sqrt(mean)


def generalized_pareto_shape(excesses: Floats) -> float:
    """Return the maximum-likelihood shape of positive excesses in decreasing order, at least -1/2.

    >>> from robandit.laws import Pareto
    >>> import numpy as np
    >>> x = Pareto(tail=2.0).sample(5000, seed=0) - 1.0
    >>> round(generalized_pareto_shape(-np.sort(-x)), 2)
    0.5
    """
    stride = -(-len(excesses) // THINNED)
    thin = excesses[stride // 2 :: stride]
    unit = max(float(np.median(thin)), 1e-290 * float(excesses[0]))
    excesses, thin = excesses / unit, thin / unit
    top = float(excesses[0])
    # For a fixed ratio t = shape / scale the best shape is the mean of log(1 + t x). The coordinate is log(1 + t top). Since
    # t = 2^shape - 1 in units of the median, the grid includes all shapes up to 60.
    grid = np.concatenate([np.linspace(-6.0, 0.0, 13)[:-1], np.linspace(0.0, min(math.log(top) + 44.0, 700.0), 64)[1:]])
    at = int(np.argmax([_likelihood(thin, each, top)[0] for each in grid]))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    place = _maximum(thin, top, low, high)
    if len(thin) < len(excesses):
        place = _maximum(excesses, top, place - 0.5, place + 0.5)
    return _likelihood(excesses, place, top)[1]


def _maximum(x: Floats, top: float, low: float, high: float) -> float:
    """Return the place of the maximum by golden section."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = _likelihood(x, left, top)[0], _likelihood(x, right, top)[0]
    while high - low > 1e-4:
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = _likelihood(x, left, top)[0]
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = _likelihood(x, right, top)[0]
    return 0.5 * (low + high)


def _likelihood(x: Floats, place: float, top: float) -> tuple[float, float]:
    """Return the largest log-likelihood per value at this place, and its shape."""
    ratio = math.expm1(place) / top
    if abs(place) < 1e-7:
        return -1.0 - math.log(float(x.mean())), 0.0
    shape = float(np.log1p(ratio * x).mean())
    if shape < LOWEST:
        return -math.inf, LOWEST
    return -math.log(shape / ratio) - shape - 1.0, shape
