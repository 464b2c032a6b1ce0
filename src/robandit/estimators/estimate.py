"""The result of an estimator, and the conversion of its input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, formatted
from robandit.kernel.types import Floats
from robandit.validation import array, integer, order, probability

Number = Any
"""A float for one sample, an array of floats for a batch."""

SMALLEST_EPS = math.nextafter(
    2.0**-53, 1.0
)  # the least eps for which 1 + eps differs from 1; eps occurs only in 1 + eps


class ConfidenceInterval(NamedTuple):
    """The two ends of a confidence interval, named as in SciPy. A side without a bound is infinite."""

    low: Number
    high: Number


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A robust mean and its confidence bounds: lower <= mean <= upper with probability at least 1 - delta.

    Both sides hold together. A side without a theorem is infinite. If both are infinite, delta is None. For a batch of samples
    the numbers are arrays with the batch's shape. ``float(estimate)`` is the value of one sample.

    Examples
    --------
    >>> from robandit.estimators import catoni_mean
    >>> estimate = catoni_mean([1.0, 2.0, 3.0] * 10, v=1.0)
    >>> float(estimate), estimate.confidence_interval.high == estimate.upper
    (2.0, True)
    """

    value: Number
    lower: Number
    upper: Number
    delta: float | None
    assumed: str
    """The assumption under which the bounds hold."""
    n: int
    share_trimmed: Number = 0.0
    threshold: Number = None

    def __post_init__(self) -> None:
        """Broadcast a share that is the same for all samples to the batch's shape."""
        if np.ndim(self.value) and not np.ndim(self.share_trimmed):
            object.__setattr__(self, "share_trimmed", np.full(np.shape(self.value), float(self.share_trimmed)))

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """The bounds, as ``low`` and ``high``. An estimate without any bound raises `InvalidInput`, which says why."""
        if self.delta is None:
            raise InvalidInput(f"this estimate has no confidence interval; it assumes {self.assumed}")
        return ConfidenceInterval(self.lower, self.upper)

    def __float__(self) -> float:
        """Return the value of one sample. A batch raises `InvalidInput`."""
        if np.ndim(self.value):
            shape = np.shape(self.value)
            raise InvalidInput(f"this estimate has the values of a batch of shape {shape}: use .value, an array")
        return float(self.value)

    def __format__(self, spec: str) -> str:
        """Format the value of one sample, as in ``f"{estimate:.3f}"``; without a format, the whole line."""
        return format(float(self), spec) if spec else repr(self)

    def __repr__(self) -> str:
        if np.ndim(self.value):
            return f"<Estimate of {np.shape(self.value)} samples of {self.n}: {self.assumed}>"
        if self.delta is None:
            return f"<Estimate {self.value:.6g}: {self.assumed}>"
        confidence = f"with probability {1 - self.delta:g}"
        return f"<Estimate {self.value:.6g} in [{self.lower:.6g}, {self.upper:.6g}] {confidence}: {self.assumed}>"


def bounded(value: Number, lower: Number, upper: Number, shape: tuple[int, ...] = (), **fields: Any) -> Estimate:
    """Return the estimate with these bounds and other fields. Arrays with one number per row get the batch's shape."""
    numbers = {"value": value, "lower": lower, "upper": upper} | fields
    return Estimate(**{name: shaped(x, shape) if isinstance(x, np.ndarray) else x for name, x in numbers.items()})


def interval(value: Number, width: Number, shape: tuple[int, ...] = (), **fields: Any) -> Estimate:
    """Return the estimate with the bounds value - width and value + width."""
    return bounded(value, value - width, value + width, shape, **fields)


def rows(x: ArrayLike, axis: int = -1, *, least: int = 1, check: bool = True) -> tuple[Floats, tuple[int, ...]]:
    """Return the samples as rows of a matrix for compiled code, and the shape of the batch (empty for one sample).

    With ``check=False`` the caller finds NaN and infinity in a sum that it computes anyway, and calls `reject_non_finite`.
    """
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise _invalid_sample("the sample has masked values: leave them out with .compressed()")
    data = array(x, "x", hint="pass a list or array of floats")
    if data.ndim == 0:
        raise _invalid_sample(f"the sample is the single number {data.item()!r}: pass a list or array of numbers")
    axis = integer(axis, "axis", -data.ndim, data.ndim - 1)
    data = np.moveaxis(data, axis, -1)
    n = data.shape[-1]
    if n < max(least, 1):
        raise _invalid_sample(f"the sample has {n} values: at least {max(least, 1)} are needed")
    # Compiled code has one signature: contiguous, aligned and writeable. (It writes nothing, but read-only is another type.)
    matrix = np.require(data, requirements=["C", "A", "W"]).reshape(-1, n)
    if check and not np.isfinite(matrix).all():
        reject_non_finite(matrix)
    return matrix, data.shape[:-1]


def reject_non_finite(matrix: Floats) -> None:
    """Raise `InvalidInput` for the first NaN or infinity, if there is one."""
    bad = np.argwhere(~np.isfinite(matrix))
    if bad.size:
        row, position = bad[0]
        sample = f"sample {row} of the batch" if len(matrix) > 1 else "the sample"
        raise _invalid_sample(f"{sample} holds {matrix[row, position]} (position {position}): leave it out")


def _invalid_sample(message: str) -> InvalidInput:
    return InvalidInput(message, parameter="x", rule="an array of finite numbers")


def shaped(values: Floats, shape: tuple[int, ...]) -> Number:
    """Return the results of the rows in the batch's shape, or a float for one sample."""
    return values.reshape(shape) if shape else float(values[0])


def given_pair(**pair: Any) -> bool:
    """Return whether both parameters are given (not None). Raise `InvalidInput` if only one is."""
    missing = [name for name, value in pair.items() if value is None]
    if len(missing) == 1:
        given = " and ".join(f"{name} = {formatted(value)}" for name, value in pair.items())
        rule = "given together with the other"
        raise InvalidInput(f"{given}: give both for bounds, or neither", parameter=missing[0], rule=rule)
    return not missing


def bound_delta(delta: Any, **bound: Any) -> float | None:
    """Return the delta of bounds that need the parameter ``bound``: 0.05 by default, and None if the parameter is None."""
    ((name, value),) = bound.items()
    if value is not None:
        return probability(0.05 if delta is None else delta, "delta")
    if delta is not None:
        raise InvalidInput(
            f"delta = {formatted(delta)} without {name}: the bounds need {name}; give both, or leave out delta for a value alone",
            parameter=name,
            rule="given together with delta",
        )
    return None


def moment_order(eps: Any) -> float:
    """Return eps in (0, 1]. Unlike policies, estimators take any eps for which 1 + eps differs from 1."""
    return order(eps, "eps", least=SMALLEST_EPS)


def log_over(parts: float, delta: float) -> float:
    """Return log(parts / delta), also if the quotient overflows."""
    ratio = parts / delta
    return math.log(ratio) if ratio < math.inf else math.log(parts) - math.log(delta)
