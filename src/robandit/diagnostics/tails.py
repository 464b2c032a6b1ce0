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
Intervals tell what chance does; they do not contain the bias of a k that reaches into the bulk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robandit.diagnostics.samples import sample
from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

__all__ = ["LEAST", "TailIndex", "tail_index"]

LEAST = 50  # values on a side: with fewer, k is below 14 and the widest intervals say nothing
SIDES = ("left", "right", "both")


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
        """Whether no heavy tail is visible: a light one is not excluded."""
        return self.high == math.inf

    def __str__(self) -> str:
        """The index and its interval, or why there is none."""
        if math.isnan(self.index):
            return f"unknown: {self.note}"
        if self.light:
            return "no heavy tail visible" + (f" (index above {self.low:.2f})" if self.low < math.inf else "")
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
        Independent values; their order does not matter.
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
    values = sample(x)
    if side not in SIDES:
        raise InvalidInput(f"side = {side!r} must be one of 'left', 'right', 'both'")
    if method not in tuple(_METHODS):
        raise InvalidInput(f"method = {method!r} must be one of {', '.join(map(repr, _METHODS))}")
    if about != "median" and (
        isinstance(about, (bool, str)) or not isinstance(about, (int, float, np.number)) or not math.isfinite(about)
    ):
        raise InvalidInput(f"about = {about!r} must be a finite number, or 'median'")
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0.0 < confidence < 1.0:
        raise InvalidInput(f"confidence = {confidence!r} must be a number between 0 and 1")
    point = float(np.median(values)) if about == "median" else float(about)
    return _estimated(values, side, method, k, point, confidence)


def _estimated(values: Floats, side: str, method: str, k: int | None, point: float, confidence: float) -> TailIndex:
    unit = max(float(np.max(np.abs(values))), abs(point)) or 1.0
    offset = values / unit - point / unit
    size = {"left": -offset, "right": offset, "both": np.abs(offset)}[side]
    size = size[size > 0.0]
    n, reach = len(size), 4 if method == "pickands" else 1
    where = {"left": f"on the left of {point:.4g}", "right": f"on the right of {point:.4g}", "both": f"off {point:.4g}"}
    if k is not None:
        whole = isinstance(k, (int, np.integer)) and not isinstance(k, bool)
        if not whole or k < 2 or k * reach > n - (reach == 1):
            most = n // reach if reach > 1 else n - 1
            raise InvalidInput(
                f"k = {k!r} must be a whole number from 2 to {most} for {method!r}: there are {n} values {where[side]}"
            )
        used = int(k)
    else:
        used = math.floor(n ** (2.0 / 3.0) + 1e-9) // (2 if method == "pickands" else 1)
    shape, low, high, note = math.nan, math.nan, math.nan, ""
    if k is None and n < LEAST:
        used, note = 0, f"{n} values {where[side]}, {LEAST} are needed"
    else:
        top = (
            -np.sort(-size)[: used * reach + (reach == 1)]
            if n < 10_000
            else _largest(size, used * reach + (reach == 1))
        )
        shape, low, high, note = _METHODS[method](top, used, confidence)
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


def _largest(size: Floats, count: int) -> Floats:
    """The largest values, in falling order, without sorting the rest."""
    return -np.sort(np.partition(-size, count - 1)[:count])


def _index(shape: float) -> float:
    return shape if math.isnan(shape) else 1.0 / shape if shape > 0.0 else math.inf


_Shape = tuple[float, float, float, str]  # the shape, its interval, and a note
_TIED: _Shape = (-math.inf, -math.inf, -math.inf, "the largest values are equal: the tail ends there")


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
        return _TIED
    shape = math.log(above / below) / math.log(2.0)
    # g / (2^g - 1), which is 1 / log 2 at 0
    slope = shape / math.expm1(shape * math.log(2.0)) if abs(shape) > 1e-9 else 1.0 / math.log(2.0)
    variance = slope * slope * (2.0 ** (2.0 * shape + 1.0) + 1.0) / (2.0 * math.log(2.0)) ** 2
    return _normal(shape, variance, k, confidence)


def _normal(shape: float, variance: float, k: int, confidence: float) -> _Shape:
    from scipy.special import ndtri

    width = float(ndtri(0.5 + confidence / 2.0)) * math.sqrt(variance / k)
    return shape, shape - width, shape + width, ""


_METHODS: dict[str, Any] = {"hill": _hill, "moment": _moment, "pickands": _pickands}
