"""How heavy a tail is: the index alpha of P(X > x) ~ x^-alpha, from a sample.

Three classical estimators, of which none is best. All look at the k largest values of a side only, and estimate the
shape 1/alpha; a shape of 0 or below is a light tail, of index infinity.

- ``"hill"`` (Hill 1975): mean of log(X_(i) / X_(k+1)) over the k largest. The most precise where the tail is a power.
  It believes that it is: for light tails it gives a finite index that grows with n. The interval comes from the Gamma
  law that k shape has for an exact Pareto tail.
- ``"moment"`` (Dekkers, Einmahl, de Haan 1989): Hill's mean and the mean of squares combined, so that the shape may
  be 0 or below.
- ``"pickands"`` (Pickands 1975): from the k-th, 2k-th and 4k-th largest. Moves with no shift or scale; by far the
  widest interval.

The rule for k: with n values on the side, k = n^(2/3), rounded down (``"pickands"``: half of it, since it looks at 4k
values). It balances bias and variance for tails whose second-order term is like that of Frechet's law (n^(2/3) is the
optimal rate for it, Hall 1982); other tails would like another k, and no rule can know which: look at several.
Intervals tell what chance does; they do not contain the bias of a k that reaches into the bulk. `tail_path` shows what
other k would have said.

Of values that are too many to keep (a `Part`) the farthest are kept. They are used, not the sample, which may have none of them: k
is then at most their number (``"pickands"``: a quarter of it), if the rule gives more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robandit.diagnostics.part import Part
from robandit.diagnostics.samples import check_about, check_confidence, sample
from robandit.errors import InvalidInput
from robandit.kernel.types import Floats, Ints
from robandit.validation import choice

__all__ = ["LEAST", "METHODS", "TailIndex", "TailPath", "tail_index", "tail_path"]

LEAST = 50  # values on a side: with fewer, k is below 14 and the widest intervals say nothing
SIDES = ("left", "right", "both")
METHODS = ("hill", "moment", "pickands")
FIRST = 5  # the smallest k of a path: below it intervals are wider than any question


@dataclass(frozen=True, kw_only=True)
class TailIndex:
    """An estimated tail index with its interval; NaN where nothing can be said, and ``note`` says why."""

    index: float
    """Moments of smaller order are finite; infinity: no heavy tail visible."""
    low: float
    high: float
    """Infinity: a light tail is not excluded."""
    shape: float
    """1 / index where that is finite; 0 or below for a light tail."""
    k: int
    """How many of the largest values were used."""
    n: int
    """Values on this side."""
    side: str
    method: str
    confidence: float
    note: str = ""

    @property
    def light(self) -> bool:
        """Whether no heavy tail is visible: a light one is not excluded, an infinite variance is."""
        return self.high == math.inf and self.low > 2.0

    def __str__(self) -> str:
        """The index and its interval, or why there is none."""
        if math.isnan(self.index):
            return f"unknown: {self.note}"
        if self.light:
            return "no heavy tail visible" + (f" (index above {self.low:.2f})" if self.low < math.inf else "")
        if self.high == math.inf:
            return f"above {self.low:.2f}"
        return f"{self.index:.2f} [{self.low:.2f}, {self.high:.2f}]"


def tail_index(
    x: Any,
    side: Literal["left", "right", "both"] = "right",
    method: Literal["hill", "moment", "pickands"] = "hill",
    k: int | None = None,
    *,
    about: float | Literal["median"] = 0.0,
    confidence: float = 0.95,
) -> TailIndex:
    """The tail index of a sample: below 2 the variance is infinite, at or below 1 the mean.

    Parameters
    ----------
    x
        Independent values, or a `Part` of them; their order does not matter.
    side
        Values below ``about`` (as distances from it), above it, or both.
    method
        See the module.
    k
        How many of the largest values to use; None: the rule of the module.
    about
        Where the sides meet: a number, or ``"median"``. Far out it does not matter, but a sample does not reach far:
        the textbook's estimators have 0; take the median for values whose zero has no meaning.
    confidence
        Of the interval, which is approximate: from the limit law.

    Returns
    -------
    TailIndex
        With fewer than 50 values on the side and no k given it is NaN with a note: no estimate is better than a wild
        one.

    Examples
    --------
    >>> from robandit.laws import Gaussian, Pareto
    >>> x = Pareto(tail=1.5).sample(10_000, seed=0)
    >>> print(tail_index(x), "|", tail_index(x, method="moment"))
    1.53 [1.39, 1.67] | 1.63 [1.39, 1.97]
    >>> print(tail_index(x, "left"))
    unknown: 0 values on the left of 0, 50 are needed
    >>> print(tail_index(Gaussian(mean=0.0, sd=1.0).sample(10_000, seed=0), method="moment"))
    no heavy tail visible

    References
    ----------
    B. M. Hill. A simple general approach to inference about the tail of a distribution. Annals of Statistics 3, 1975.

    A. L. M. Dekkers, J. H. J. Einmahl, L. de Haan. A moment estimator for the index of an extreme-value distribution.
    Annals of Statistics 17, 1989.

    J. Pickands. Statistical inference using extreme order statistics. Annals of Statistics 3, 1975.
    """
    far, point = _checked(x, side, method, about, confidence)
    return _estimated(far, side, method, k, point, confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class TailPath:
    """What an estimator says for many k: the data of a Hill plot. Empty if there are too few values on the side."""

    k: Ints
    shape: Floats
    """1 / index; 0 or below: a light tail. NaN where equal values leave no estimate."""
    low: Floats
    high: Floats
    chosen: int
    """The k of the rule; 0 if there is none."""
    n: int
    side: str
    method: str
    confidence: float

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest index for k from half of the rule's to twice it; NaN without any."""
        near = (2 * self.k >= self.chosen) & (self.k <= 2 * self.chosen) & ~np.isnan(self.shape)
        if not near.any():
            return math.nan, math.nan
        return _index(float(self.shape[near].max())), _index(float(self.shape[near].min()))


def tail_path(
    x: Any,
    side: Literal["left", "right", "both"] = "right",
    method: Literal["hill", "moment", "pickands"] = "hill",
    *,
    about: float | Literal["median"] = 0.0,
    confidence: float = 0.95,
    points: int = 48,
) -> TailPath:
    """The same estimate for many k, from 5 to half of the values on the side: where it stays level, it can be believed.

    Parameters
    ----------
    x, side, method, about, confidence
        As of `tail_index`.
    points
        How many k, at most, evenly spaced in the logarithm; the rule's k is always among them.

    Examples
    --------
    >>> from robandit.laws import Pareto
    >>> path = tail_path(Pareto(tail=1.5).sample(10_000, seed=0))
    >>> path.chosen, [round(end, 2) for end in path.spread]
    (464, [1.46, 1.55])
    """
    far, _ = _checked(x, side, method, about, confidence)
    if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or not 2 <= points <= 10**6:
        raise InvalidInput(f"points = {points!r} must be a whole number from 2 to 1,000,000")
    n, reach = far.n, _reach(method)
    most = n // (2 if reach == 1 else reach) if n >= LEAST else 0
    chosen = min(_rule(n, method), far.most(reach)) if n >= LEAST else 0
    if most < FIRST:
        nothing = np.empty(0)
        return TailPath(
            k=np.empty(0, np.int64),
            shape=nothing,
            low=nothing,
            high=nothing,
            chosen=0,
            n=n,
            side=side,
            method=method,
            confidence=confidence,
        )
    ks = np.unique(np.append(np.round(np.geomspace(FIRST, most, points)).astype(np.int64), chosen))
    ks = far.asked(ks, reach)
    tops = [far.top(k, reach) for k in ks.tolist()]
    found = np.array([_METHODS[method](top, k, confidence)[:3] for top, k in tops])
    return TailPath(
        k=ks,
        shape=found[:, 0],
        low=found[:, 1],
        high=found[:, 2],
        chosen=chosen,
        n=n,
        side=side,
        method=method,
        confidence=confidence,
    )


@dataclass(frozen=True, eq=False)
class _Far:
    """The values of a side as distances from the point, in units of the greatest value."""

    exact: Floats
    """The farthest, in falling order: all that may be asked for, or as many as were kept."""
    n: int
    """All values on the side."""
    rest: Floats
    """Those of the sample, in falling order, where not all are known."""

    def most(self, reach: int) -> int:
        """The greatest k for which the farthest are known."""
        return len(self.exact) // reach if reach > 1 else len(self.exact) - 1

    def top(self, k: int, reach: int) -> tuple[Floats, int]:
        """The largest values for k, and k; where they are not known those of the sample, and as many as k is in it."""
        if k <= self.most(reach):
            return self.exact[: k * reach + (reach == 1)], k
        few = int(k * len(self.rest) / self.n)
        return self.rest[: few * reach + (reach == 1)], few

    def asked(self, k: Ints, reach: int) -> Ints:
        """Those k for which there are enough values."""
        return k[(k <= self.most(reach)) | (k * len(self.rest) >= FIRST * self.n)]


def _checked(x: Any, side: str, method: str, about: Any, confidence: Any) -> tuple[_Far, float]:
    """The side and the point, or a refusal."""
    values = x.sample if isinstance(x, Part) else sample(x)
    choice(side, "side", SIDES)
    choice(method, "method", METHODS)
    check_about(about)
    check_confidence(confidence)
    point = float(np.median(values)) if about == "median" else float(about)
    if not isinstance(x, Part):
        unit = max(float(np.max(np.abs(values))), abs(point)) or 1.0
        exact = -np.sort(-_sizes(values, side, point, unit))
        return _Far(exact, len(exact), exact), point
    if side == "both":
        raise InvalidInput("side = 'both': of a part of the values take 'left' or 'right'")
    unit = max(abs(float(x.smallest[0])), abs(float(x.largest[0])), abs(point)) or 1.0
    end = x.smallest if side == "left" else x.largest
    exact, rest = (-np.sort(-_sizes(each, side, point, unit)) for each in (end, values))
    # Where the kept ones reach beyond the point, all of the side are among them.
    n = max(round(x.n * len(rest) / len(values)), len(exact)) if len(exact) == len(end) else len(exact)
    return _Far(exact, n, rest), point


def _sizes(values: Floats, side: str, point: float, unit: float) -> Floats:
    """Distances from the point on the side, in the unit."""
    offset = values / unit - point / unit
    size: Floats = {"left": -offset, "right": offset, "both": np.abs(offset)}[side]
    return size[size > 0.0]


def _reach(method: str) -> int:
    """How many of the largest values an estimator looks at, over k (1: one more)."""
    return 4 if method == "pickands" else 1


def _rule(n: int, method: str) -> int:
    return int(n ** (2.0 / 3.0) + 1e-9) // (2 if method == "pickands" else 1)


def _estimated(far: _Far, side: str, method: str, k: int | None, point: float, confidence: float) -> TailIndex:
    n, reach = far.n, _reach(method)
    most = far.most(reach)
    where = {"left": f"on the left of {point:.4g}", "right": f"on the right of {point:.4g}", "both": f"off {point:.4g}"}
    if k is not None:
        whole = isinstance(k, (int, np.integer)) and not isinstance(k, bool)
        if not whole or k < 2 or k > most:
            raise InvalidInput(
                f"k = {k!r} must be a whole number from 2 to {most} for {method!r}: there are {n} values {where[side]}"
            )
        used = int(k)
    else:
        used = min(_rule(n, method), most)
    shape, low, high, note = math.nan, math.nan, math.nan, ""
    if k is None and n < LEAST:
        used, note = 0, f"{n} value{'s' * (n != 1)} {where[side]}, {LEAST} are needed"
    else:
        shape, low, high, note = _METHODS[method](*far.top(used, reach), confidence)
    return TailIndex(
        index=_index(shape),
        low=_index(high),
        high=_index(low),
        shape=shape,
        k=used,
        n=n,
        side=side,
        method=method,
        confidence=confidence,
        note=note,
    )


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
    # k shape / (true shape) has the law Gamma(k) under an exact Pareto tail
    return shape, shape * k / float(gammaincinv(k, 1.0 - tail)), shape * k / float(gammaincinv(k, tail)), ""


def _moment(top: Floats, k: int, confidence: float) -> _Shape:
    logs = np.log(top[:k] / top[k])
    first, second = float(np.mean(logs)), float(np.mean(logs * logs))
    if second <= first * first * (1.0 + 1e-12):  # also where both are 0
        return _TIED
    shape = first + 1.0 - 0.5 / (1.0 - first * first / second)
    g = shape
    if g >= 0.0:
        variance = 1.0 + g * g
    else:
        inner = 4.0 - 8.0 * (1.0 - 2.0 * g) / (1.0 - 3.0 * g)
        inner += (5.0 - 11.0 * g) * (1.0 - 2.0 * g) / ((1.0 - 3.0 * g) * (1.0 - 4.0 * g))
        variance = (1.0 - g) ** 2 * (1.0 - 2.0 * g) * inner
    return _normal(shape, variance, k, confidence)


def _pickands(top: Floats, k: int, confidence: float) -> _Shape:
    above, below = float(top[k - 1] - top[2 * k - 1]), float(top[2 * k - 1] - top[4 * k - 1])
    if above <= 0.0 or below <= 0.0:
        return _TIED if top[0] <= top[2 * k - 1] else _NONE
    shape = math.log(above / below) / math.log(2.0)
    shape = 0.0 if abs(shape) < 1e-9 else shape  # what rounding leaves of equal steps is no heavy tail
    # g / (2^g - 1), which is 1 / log 2 at 0
    slope = shape / math.expm1(shape * math.log(2.0)) if shape != 0.0 else 1.0 / math.log(2.0)
    variance = slope * slope * (2.0 ** (2.0 * shape + 1.0) + 1.0) / (2.0 * math.log(2.0)) ** 2
    return _normal(shape, variance, k, confidence)


def _normal(shape: float, variance: float, k: int, confidence: float) -> _Shape:
    from scipy.special import ndtri

    width = float(ndtri(0.5 + confidence / 2.0)) * math.sqrt(variance / k)
    return shape, shape - width, shape + width, ""


_METHODS: dict[str, Any] = {"hill": _hill, "moment": _moment, "pickands": _pickands}
