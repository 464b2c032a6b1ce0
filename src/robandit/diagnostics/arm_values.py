"""The resampled mean and the allowance of one arm, from all values, weighted values, or a `Part`; see `resolution`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robandit.diagnostics.part import Part
from robandit.diagnostics.tails import TailIndex, tail_index
from robandit.kernel.types import Floats
from robandit.wording import counted

RESAMPLES = 2_000
SEED = 8
UNITS = 1_024  # units drawn for a resample of an arm; fewer if there are many arms
LEAST = 20  # least number of values of an arm; with fewer, no limit is reliable
DIFFER = 10  # least number of values that differ from the median, unless all are equal
CONSTANT = 100  # number of equal values after which an arm is taken as constant
FLOOR = 1.1  # smallest index a in the allowance; a / (a - 1) is then 11
UNSEEN = 1.5  # index assumed if there are too few values to estimate it


class Values:
    """All of an arm's values."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self.source: Floats | Part = values
        self.n = len(values)
        self.centre = float(values.mean())
        self.ends = float(values.min()), float(values.max())

    def resampled(self, most: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
        """Return the means of resamples of at most ``most`` units, their variances, and the variance of the data's mean."""
        units = _block_means(self.values, most)
        return *_resample(units, rng), _variance_of_mean(units)

    def too_few(self) -> str:
        """Return the reason why the arm cannot be compared; empty if it can."""
        return _too_few(self.values)

    def tail(self, side: str) -> TailIndex:
        """Return the moment estimator's tail index on a side of the median.

        It is less cautious than the stated index, but the error rates of the comparison are measured with it.
        """
        return tail_index(self.source, side, "moment", about="median")  # type: ignore[arg-type]

    def reach(self, side: str) -> float:
        """Return the largest distance from the median on a side."""
        median = float(np.median(self.values))
        return median - self.ends[0] if side == "left" else self.ends[1] - median


class _Weighted(Values):
    """Values with weights. Tails are estimated from the terms whose mean is the weighted mean."""

    def __init__(self, values: Floats, weights: Floats) -> None:
        self.weights = weights / weights.mean()
        centre = float(np.mean(values * self.weights))
        super().__init__(centre + self.weights * (values - centre))
        self.rewards, self.centre = values, centre

    def resampled(self, most: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
        off, base = _block_means(self.values - self.centre, most), _block_means(self.weights, most)
        picked = rng.integers(0, len(off), (RESAMPLES, len(off)), dtype=np.uint16)
        weight = base[picked].mean(axis=1)
        ratio = off[picked].mean(axis=1) / weight
        squares = (off * off)[picked].mean(axis=1) - 2.0 * ratio * (off * base)[picked].mean(axis=1)
        squares = np.maximum(squares + ratio**2 * (base * base)[picked].mean(axis=1), 0.0) / weight**2
        return self.centre + ratio, squares / len(off), _variance_of_mean(off)

    def too_few(self) -> str:
        count = 1.0 / float(np.mean(self.weights**2)) * self.n
        if self.n >= LEAST > count:
            return f"{self.n} values, but weights so unequal that they count for {count:.3g}, {LEAST} are needed"
        return _too_few(self.rewards)


class _Sampled(Values):
    def __init__(self, part: Part) -> None:
        self.source = self.part = part
        self.values, self.n, self.centre = part.sample, part.n, part.mean
        self.ends = float(part.smallest[0]), float(part.largest[0])

    def resampled(self, most: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
        part = self.part.farthest(most // 2)  # so that there are as many extremes as units
        body = part.body
        units = _block_means(body, most)
        means, variances = _resample(units, rng)
        inner, of_units = float(units.mean()), _variance_of_mean(units)
        own = float(body.var())
        true = own / part.inside + max(0.0, of_units - own / len(body))
        ratio = true / of_units if of_units > 0.0 else 0.0
        share = part.inside / part.n
        off = (part.extremes - inner) / part.n
        moved, squared = _poisson_sums(off, rng)
        shifted = share * math.sqrt(ratio) * (means - inner) + moved
        return self.centre + shifted, share**2 * ratio * variances + squared, share**2 * true + float(off @ off)

    def too_few(self) -> str:
        return _too_few(np.concatenate([self.part.body, self.part.smallest, self.part.largest]), self.n)


def values_of(values: Floats | Part, unit: int, weights: Floats | None = None) -> Values:
    """Return an arm's values in units of 2^unit."""
    if isinstance(values, Part):
        return _Sampled(values.scaled(-unit))
    scaled = np.ldexp(values, -unit)
    return Values(scaled) if weights is None else _Weighted(scaled, weights)


def resampled_arms(arms: Sequence[Values], seed: int) -> tuple[Floats, Floats, Floats]:
    """Resample each arm with its own stream: one row of means and of variances per arm, and the variances of the data's means."""
    most = min(UNITS, max(128, 16 * UNITS // len(arms)))  # so that 500 arms take two seconds
    streams = np.random.SeedSequence(seed).spawn(len(arms))
    drawn = [each.resampled(most, np.random.default_rng(s)) for each, s in zip(arms, streams, strict=True)]
    means, variances, spread = map(np.array, zip(*drawn, strict=True))
    return means, variances, spread


def _block_means(values: Floats, most: int) -> Floats:
    """Return the means of at most ``most`` blocks of consecutive values, whose lengths differ by at most one."""
    if len(values) <= most:
        return values
    edges = np.linspace(0, len(values), most + 1).astype(np.int64)
    means: Floats = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    return means


def _variance_of_mean(units: Floats) -> float:
    return float(units.var()) / len(units)


def _resample(units: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the means of resamples, and for each resample the estimated variance of its mean."""
    centred = units - units.mean()
    picked = rng.integers(0, len(units), (RESAMPLES, len(units)), dtype=np.uint16)
    means = centred[picked].mean(axis=1)
    squares = (centred * centred)[picked].mean(axis=1)
    return means + units.mean(), np.maximum(squares - means * means, 0.0) / len(units)


def _poisson_sums(values: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Resample with a Poisson number of copies of each value; return the changes of the sum, and the sums of squares."""
    if not len(values):
        return np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    counts = rng.poisson(len(values), RESAMPLES)
    drawn = values[rng.integers(0, len(values), int(counts.sum()), dtype=np.uint16)]
    ends = np.append(0, np.cumsum(counts))
    sums, squares = (np.diff(np.append(0.0, np.cumsum(each))[ends]) for each in (drawn, drawn * drawn))
    return sums - values.sum(), squares


def lower_limit(means: Floats, variances: Floats, centre: float, spread: float, level: float) -> float:
    """Return the smaller of percentile and studentised limit. ``spread`` is the variance of the data's mean ``centre``."""
    off, sd = means - centre, np.sqrt(variances)
    t = np.where(off == 0.0, 0.0, np.copysign(math.inf, off))
    np.divide(off, sd, out=t, where=sd > 0.0)
    percentile = float(np.quantile(means, level, method="inverted_cdf"))
    reach = float(np.quantile(t, 1.0 - level, method="inverted_cdf"))
    return min(percentile, centre - max(reach, 0.0) * math.sqrt(spread)) if spread > 0.0 else centre


def allowance(values: Values, side: str, level: float) -> tuple[float, str]:
    """Return the allowance of a side and its reason; 0 for a light tail."""
    reach = values.reach(side)
    if reach <= 0.0:
        return 0.0, ""
    tail = values.tail(side)
    if math.isnan(tail.index):
        index, reason = UNSEEN, f"has too few values on the {side} to see its tail (taken to have index {UNSEEN})"
    elif tail.low > 2.0:
        return 0.0, ""
    elif tail.high <= 1.0:
        return math.inf, no_mean(tail)
    else:
        index = max(tail.index, FLOOR)
        reason = f"may have an infinite variance on the {side} (tail index by the moment estimator: {tail})"
    factor = 1.0 if math.isinf(index) else index / (index - 1.0)
    return reach * factor * math.log(1.0 / level) / values.n, reason


def no_mean(tail: TailIndex) -> str:
    """Return the reason why a tail seems to have no mean, or an empty string if it has one."""
    return (
        f"seems to have no mean on the {tail.side} (tail index by the moment estimator: {tail})"
        if tail.high <= 1.0
        else ""
    )


def _too_few(values: Floats, count: int | None = None) -> str:
    """Return the reason why an arm with ``count`` values (None: these values) cannot be compared; empty if it can."""
    n = len(values) if count is None else count
    if n < LEAST:
        return f"{counted(n, 'value')}, {LEAST} are needed"
    differ = int(np.count_nonzero(values != np.median(values)))
    if differ == 0 and n < CONSTANT:
        return f"{n} values that are all equal: at least {CONSTANT} are needed to exclude others"
    if 0 < differ < DIFFER:
        return f"{n} values, but only {differ} differ from the median; {DIFFER} are needed"
    return ""
