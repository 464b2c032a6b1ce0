"""Estimates how heavy a tail is: the index alpha of P(X > x) ~ x^-alpha, from a sample.

``"gpd"`` is the estimate to state: it does not depend on the zero of the values, chooses k itself, and its interval allows for bias
(:mod:`robandit.diagnostics.exceedances`). Its coverage is measured in docs/results/tail-intervals.md.

There are also two classical estimators, for one k. They use only the k largest values of a side, and estimate the shape 1/alpha. A
shape of 0 or below is a light tail, with index infinity.

- ``"hill"`` (Hill 1975): the mean of log(X_(i) / X_(k+1)) over the k largest. It assumes a power tail, and is the most precise if
  this is true. For light tails it gives a finite index that grows with n. The interval is exact for a Pareto tail (a Gamma law).
- ``"moment"`` (Dekkers, Einmahl, de Haan 1989): combines Hill's mean with the mean of squares, so that the shape may be 0 or below.

With n values on the side, the default k is n^(2/3), rounded down: the optimal rate for tails with a second-order term like that of
Frechet's law (Hall 1982). Other tails need another k: look at several k with `tail_path`. Their intervals cover chance, not the
bias of a k that reaches into the bulk, nor that of another zero: a Pareto law has an exact power tail about 0, but not about its
median. If there are too many values to keep (a `Part`), k is at most the number of extremes that are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robandit.diagnostics.exceedances import Rung, fitted
from robandit.diagnostics.part import Part
from robandit.diagnostics.samples import checked_about, sample
from robandit.kernel.types import Floats, Ints
from robandit.validation import choice, integer, invalid, probability
from robandit.wording import counted

LEAST = 50  # values on a side; with fewer, k is below 14 and intervals are too wide to be useful
METHODS = ("hill", "moment")  # those with a k, and so with a path
Method = Literal["gpd", "hill", "moment"]
Side = Literal["left", "right"]
Variance = Literal["light", "finite", "infinite", "undecided", "unknown"]
FIRST = 5  # the smallest k of a path; below it, intervals are too wide to be useful


@dataclass(frozen=True)
class TailIndex:
    """An estimated tail index with its interval, or NaN with the reason in ``note``."""

    index: float
    """The index. Moments of lower order are finite. Infinity means that no heavy tail is visible."""
    low: float
    high: float
    """The upper limit; infinity if a light tail is not excluded."""
    shape: float
    """1 / index if that is finite; 0 or below for a light tail."""
    k: int
    """The number of largest values used."""
    n: int
    """The number of values on this side."""
    side: str
    method: str
    confidence: float
    note: str = ""

    @property
    def light(self) -> bool:
        """Whether no heavy tail is visible: an infinite variance is excluded, and a light tail is not."""
        return self.high == math.inf and self.low > 2.0

    @property
    def interval(self) -> str:
        """The interval in words: "1.30 to 1.91", or "above 1.30"; empty if there is none."""
        if math.isnan(self.index) or self.low == math.inf:
            return ""
        low, high = (f"{end:.2f}" if end < 10.0 else f"{end:.3g}" for end in (self.low, self.high))
        return f"above {low}" if self.high == math.inf else f"{low} to {high}"

    @property
    def variance(self) -> Variance:
        """What the interval says of the variance on this side: the side that it excludes is not possible."""
        if math.isnan(self.index):
            return "unknown"
        if self.light:
            return "light"
        return "finite" if self.low > 2.0 else "infinite" if self.high < 2.0 else "undecided"

    @property
    def words(self) -> str:
        """The verdict, as a phrase. An interval is not a proof, so it says "likely"."""
        if self.variance == "unknown":
            return f"unknown: {self.note}"
        if self.variance == "light":
            return "no heavy tail visible" + (f": {self.note}" if self.note else "")
        verdict = {
            "finite": "heavy, but the variance is likely finite",
            "infinite": "heavy: the variance is likely infinite",
            "undecided": "the variance may be infinite",
        }[self.variance]
        if self.high <= 1.0:
            verdict = "so heavy that there is likely no mean"
        elif self.low <= 1.0:
            verdict += ", and there may be no mean"
        return f"{verdict} (index {self.interval})"

    def __str__(self) -> str:
        """Return the index and its interval, or the reason why there is none."""
        if math.isnan(self.index):
            return f"unknown: {self.note}"
        if self.light:
            return "no heavy tail visible" + (f" (index above {self.low:.2f})" if self.low < math.inf else "")
        if self.high == math.inf:
            return f"above {self.low:.2f}"
        return f"{self.index:.2f} [{self.low:.2f}, {self.high:.2f}]"


def tail_index(
    x: Any,
    side: Side = "right",
    method: Method = "hill",
    k: int | None = None,
    *,
    about: float | Literal["median"] = 0.0,
    confidence: float = 0.95,
) -> TailIndex:
    """Estimate the tail index of a sample. The variance is infinite for an index below 2, the mean for an index of at most 1.

    Parameters
    ----------
    x
        Independent values, or a `Part` of them; their order does not matter.
    side
        The values to use, as distances from ``about``: those below it, or those above it.
    method
        See the module.
    k
        The number of largest values to use; None for the module's default. ``"gpd"`` takes none.
    about
        The point between the sides: a number (textbooks use 0), or ``"median"``, for values whose zero has no meaning.
    confidence
        The confidence of the interval, which is approximate (from the limit law).

    Returns
    -------
    TailIndex
        NaN with a note if there are fewer than 50 values on the side and no k is given, since such estimates are unreliable.

    Examples
    --------
    >>> from robandit.laws import Gaussian, Pareto
    >>> x = Pareto(tail=1.5).sample(10_000, seed=0)
    >>> print(tail_index(x), "|", tail_index(x, method="moment"))
    1.53 [1.39, 1.67] | 1.63 [1.39, 1.97]
    >>> print(tail_index(x, method="gpd"), "|", tail_index(x + 100.0, method="gpd", about="median"))
    1.47 [1.32, 1.84] | 1.56 [1.28, 2.05]
    >>> print(tail_index(x, "left"))
    unknown: 0 values on the left of 0, 50 are needed
    >>> print(tail_index(Gaussian(mean=0.0, sd=1.0).sample(10_000, seed=0), method="moment"))
    no heavy tail visible

    References
    ----------
    B. M. Hill. A simple general approach to inference about the tail of a distribution. Annals of Statistics 3, 1975.

    A. L. M. Dekkers, J. H. J. Einmahl, L. de Haan. A moment estimator for the index of an extreme-value distribution.
    Annals of Statistics 17, 1989.

    J. Pickands. Statistical inference using extreme order statistics. Annals of Statistics 3, 1975 (``"gpd"``).
    """
    choice(method, "method", ("gpd", *METHODS))
    if method == "gpd" and k is not None:
        raise invalid("k", k, "None for method='gpd'", hint="it chooses k itself")
    far, point = _checked(x, side, about)
    confidence = probability(confidence, "confidence")
    n = far.n
    place = f"on the {side} of {point:.4g}"
    if k is None and n < LEAST:
        used, shape, low, high = 0, math.nan, math.nan, math.nan
        note = f"{counted(n, 'value')} {place}, {LEAST} are needed"
    elif method == "gpd":
        fit, note = fitted(far.rungs(), confidence), ""
        if fit is not None:
            shape, low, high, used = fit
        else:
            used = 0
            shape, low, high, note = _TIED if far.exact[0] == far.rest[-1] else _NONE
    else:
        hint = f"{method!r} has {n} values {place}"
        used = min(_default_k(n), far.most) if k is None else integer(k, "k", 2, far.most, hint=hint)
        shape, low, high, note = _METHODS[method](*far.top(used), confidence)
    index, low, high = _index(shape), _index(high), _index(low)
    return TailIndex(index, low, high, shape, used, n, side, method, confidence, note)


@dataclass(frozen=True, eq=False)
class TailPath:
    """The estimates for many k: the data of a Hill plot. Empty if there are too few values on the side."""

    k: Ints
    shape: Floats
    """1 / index; 0 or below for a light tail, NaN if equal values prevent an estimate."""
    low: Floats
    high: Floats
    chosen: int
    """The default k; 0 if there is none."""
    n: int
    side: str
    method: str
    confidence: float

    def __repr__(self) -> str:
        return f"<TailPath: {len(self.k):,} values of k>"


def tail_path(
    x: Any,
    side: Side = "right",
    method: Literal["hill", "moment"] = "hill",
    *,
    about: float | Literal["median"] = 0.0,
    confidence: float = 0.95,
    points: int = 48,
) -> TailPath:
    """Estimate the tail index for many k, from 5 to half of the values on the side. It is reliable where it stays constant.

    Parameters
    ----------
    x, side, method, about, confidence
        As for `tail_index`.
    points
        The largest number of k, evenly spaced on a log scale; the default k is always among them.

    Examples
    --------
    >>> from robandit.laws import Pareto
    >>> path = tail_path(Pareto(tail=1.5).sample(10_000, seed=0))
    >>> path.chosen, path.k[[0, -1]].tolist()
    (464, [5, 5000])
    """
    choice(method, "method", METHODS)
    far, _ = _checked(x, side, about)
    confidence = probability(confidence, "confidence")
    points = integer(points, "points", 2, 10**6)
    n = far.n
    chosen, ks, shapes = 0, np.empty(0, np.int64), np.empty((0, 3))
    if n >= LEAST:
        chosen = min(_default_k(n), far.most)
        ks = np.unique(np.append(np.round(np.geomspace(FIRST, n // 2, points)).astype(np.int64), chosen))
        ks = ks[(ks <= far.most) | (ks * len(far.rest) >= FIRST * n)]  # those for which there are enough values
        shapes = np.array([_METHODS[method](*far.top(k), confidence)[:3] for k in ks.tolist()])
    shape, low, high = shapes.T
    return TailPath(ks, shape, low, high, chosen, n, side, method, confidence)


@dataclass(frozen=True, eq=False)
class _Far:
    """The values of a side as distances from the point, in units of the largest value."""

    exact: Floats  # the largest distances that were kept (perhaps all), in decreasing order
    n: int  # the number of all values on the side
    rest: Floats  # the distances of the sample, in decreasing order; used if not all are known

    @property
    def most(self) -> int:
        """The largest k for which all needed distances are known."""
        return len(self.exact) - 1

    def top(self, k: int) -> tuple[Floats, int]:
        """Return the k + 1 largest distances, and k. If not all are known, use the sample, with k scaled to its size."""
        if k <= self.most:
            return self.exact[: k + 1], k
        scaled = int(k * len(self.rest) / self.n)
        return self.rest[: scaled + 1], scaled

    def rungs(self) -> list[Rung]:
        """Return all values of the side, half of them, a quarter, and so on; from the sample if not all are known."""
        rungs = []
        for halvings in range(self.n.bit_length()):
            k = min(self.n >> halvings, self.n - 1)
            scaled = min(k * len(self.rest) // self.n, len(self.rest) - 1)
            if k <= self.most:
                rungs.append(Rung(self.exact[: k + 1], 0.5 * k / self.n))
            elif scaled > self.most:  # otherwise the exact values are more
                rungs.append(Rung(self.rest[: scaled + 1], 0.5 * k / self.n, source=1))
        return rungs


def _checked(x: Any, side: str, about: Any) -> tuple[_Far, float]:
    values = x.sample if isinstance(x, Part) else sample(x)
    choice(side, "side", ("left", "right"))
    about = checked_about(about)
    point = float(np.median(values)) if about == "median" else about
    if not isinstance(x, Part):
        unit = max(float(np.max(np.abs(values))), abs(point)) or 1.0
        exact = -np.sort(-_sizes(values, side, point, unit))
        return _Far(exact, len(exact), exact), point
    unit = max(abs(float(x.smallest[0])), abs(float(x.largest[0])), abs(point)) or 1.0
    end = x.smallest if side == "left" else x.largest
    exact, rest = (-np.sort(-_sizes(each, side, point, unit)) for each in (end, values))
    # If the kept values reach beyond the point, they include all of the side.
    n = max(round(x.n * len(rest) / len(values)), len(exact)) if len(exact) == len(end) else len(exact)
    return _Far(exact, n, rest), point


def _sizes(values: Floats, side: str, point: float, unit: float) -> Floats:
    offset = values / unit - point / unit
    size: Floats = -offset if side == "left" else offset
    return size[size > 0.0]


def _default_k(n: int) -> int:
    return int(n ** (2.0 / 3.0) + 1e-9)


def _index(shape: float) -> float:
    return shape if math.isnan(shape) else 1.0 / shape if shape > 0.0 else math.inf


_Shape = tuple[float, float, float, str]  # the shape, its interval, and a note
_TIED: _Shape = (-math.inf, -math.inf, -math.inf, "the largest values are equal: the tail ends there")
_NONE: _Shape = (math.nan, math.nan, math.nan, "equal values, such as rounded ones, leave no estimate")


def _hill(top: Floats, k: int, confidence: float) -> _Shape:
    from scipy.special import gammaincinv

    shape = float(np.mean(np.log(top[:k] / top[k])))
    if shape <= 0.0:
        return _TIED
    tail = (1.0 - confidence) / 2.0
    # For an exact Pareto tail, k shape / (true shape) has the law Gamma(k).
    return shape, shape * k / float(gammaincinv(k, 1.0 - tail)), shape * k / float(gammaincinv(k, tail)), ""


def _moment(top: Floats, k: int, confidence: float) -> _Shape:
    logs = np.log(top[:k] / top[k])
    first, second = float(np.mean(logs)), float(np.mean(logs * logs))
    if second <= first * first * (1.0 + 1e-12):  # also where both are 0
        return _TIED
    g = first + 1.0 - 0.5 / (1.0 - first * first / second)
    if g >= 0.0:
        return _normal(g, 1.0 + g * g, k, confidence)
    inner = 4.0 - 8.0 * (1.0 - 2.0 * g) / (1.0 - 3.0 * g)
    inner += (5.0 - 11.0 * g) * (1.0 - 2.0 * g) / ((1.0 - 3.0 * g) * (1.0 - 4.0 * g))
    return _normal(g, (1.0 - g) ** 2 * (1.0 - 2.0 * g) * inner, k, confidence)


def _normal(shape: float, variance: float, k: int, confidence: float) -> _Shape:
    from scipy.special import ndtri

    width = float(ndtri(0.5 + confidence / 2.0)) * math.sqrt(variance / k)
    return shape, shape - width, shape + width, ""


_METHODS: dict[str, Any] = {"hill": _hill, "moment": _moment}
