"""What an estimator returns, and how its input is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats

__all__ = ["Estimate", "Number", "check_delta", "check_order", "check_positive", "refuse_non_finite", "rows", "shaped"]

Number = Any
"""A float for one sample, an array of them for a batch."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A robust mean with what is known about it: lower <= mean <= upper with probability at least 1 - delta.

    Both sides hold together, and a side that the theorem does not give is infinite. Without bounds delta is None. For a batch of
    samples the numbers are arrays with the batch's shape.
    """

    value: Number
    lower: Number
    upper: Number
    delta: float | None
    assumed: str
    """What must hold for the bounds to be right."""
    n: int
    share_trimmed: Number = 0.0
    threshold: Number = None

    def __repr__(self) -> str:
        """Value and interval in one line."""
        if np.ndim(self.value):
            return f"<Estimate of {np.shape(self.value)} samples of {self.n}: {self.assumed}>"
        sure = "" if self.delta is None else f" with probability {1 - self.delta:g}"
        return f"<Estimate {self.value:.6g} in [{self.lower:.6g}, {self.upper:.6g}]{sure}: {self.assumed}>"


def rows(x: ArrayLike, axis: int = -1, *, least: int = 1, check: bool = True) -> tuple[Floats, tuple[int, ...]]:
    """The samples as the rows of a matrix that compiled code takes, and the shape of the batch (empty for one sample).

    With ``check=False`` the caller finds NaN and infinity itself, in a sum that it makes anyway, and calls `refuse_non_finite`.
    """
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InvalidInput("the sample has masked values: leave them out with .compressed()")
    try:
        data = np.asarray(x)
        if data.dtype.kind not in "biuf":
            if data.dtype.kind != "O":
                raise TypeError(f"its type is {data.dtype}")
            data = data.astype(np.float64)
        data = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"the sample is not an array of numbers ({error}): pass a list or array of floats") from None
    if data.ndim == 0:
        raise InvalidInput(f"the sample is the single number {data.item()!r}: pass a list or array of them")
    if not isinstance(axis, (int, np.integer)) or not -data.ndim <= axis < data.ndim:
        raise InvalidInput(
            f"axis = {axis!r} does not exist in an array with {data.ndim} axes: count from 0, or back from -1"
        )
    data = np.moveaxis(data, axis, -1)
    n = data.shape[-1]
    if n < max(least, 1):
        raise InvalidInput(f"the sample has {n} values: at least {max(least, 1)} are needed")
    # Compiled code has one signature: contiguous, aligned and writeable (nothing is written; read-only is another type).
    matrix = np.require(data, requirements=["C", "A", "W"]).reshape(-1, n)
    if check and not np.isfinite(matrix).all():
        refuse_non_finite(matrix)
    return matrix, data.shape[:-1]


def refuse_non_finite(matrix: Floats) -> None:
    """Raise for the first NaN or infinity; return when there is none."""
    bad = np.argwhere(~np.isfinite(matrix))
    if bad.size:
        row, position = bad[0]
        raise InvalidInput(f"the sample holds {matrix[row, position]} (position {position}): leave it out")


def shaped(values: Floats, shape: tuple[int, ...]) -> Number:
    """Results of the rows in the batch's shape: a float for one sample."""
    return values.reshape(shape) if shape else float(values[0])


def check_delta(delta: Any) -> float:
    """A probability strictly between 0 and 1."""
    return _within("delta", delta, 0.0, 1.0, "a probability between 0 and 1, such as 0.05")


def check_order(name: str, value: Any, low: float, high: float) -> float:
    """A number in (low, high]."""
    if value == high and not isinstance(value, bool):
        return float(high)
    return _within(name, value, low, high, f"a number > {low:g} and <= {high:g}")


def check_positive(name: str, value: Any) -> float:
    """A finite number > 0."""
    return _within(name, value, 0.0, np.inf, "a finite number > 0")


def _within(name: str, value: Any, low: float, high: float, rule: str) -> float:
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not good or not low < float(value) < high:
        raise InvalidInput(f"{name} = {value!r} must be {rule}")
    return float(value)
