"""What an estimator returns, and how its input is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robandit.errors import InvalidInput, formatted
from robandit.kernel.types import Floats

__all__ = [
    "Estimate",
    "Number",
    "check_choice",
    "check_delta",
    "check_order",
    "check_positive",
    "check_whole",
    "check_within",
    "formatted",
    "log_over",
    "refuse_non_finite",
    "rows",
    "shaped",
]

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

    def __post_init__(self) -> None:
        """A share that is the same for the whole batch has the batch's shape too."""
        if np.ndim(self.value) and not np.ndim(self.share_trimmed):
            object.__setattr__(self, "share_trimmed", np.full(np.shape(self.value), float(self.share_trimmed)))

    def __repr__(self) -> str:
        """Value and interval, where there is one, in one line."""
        if np.ndim(self.value):
            return f"<Estimate of {np.shape(self.value)} samples of {self.n}: {self.assumed}>"
        if self.delta is None:
            return f"<Estimate {self.value:.6g}: {self.assumed}>"
        sure = f"with probability {1 - self.delta:g}"
        return f"<Estimate {self.value:.6g} in [{self.lower:.6g}, {self.upper:.6g}] {sure}: {self.assumed}>"


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
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool) or not -data.ndim <= axis < data.ndim:
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
        which = f"sample {row} of the batch" if len(matrix) > 1 else "the sample"
        raise InvalidInput(f"{which} holds {matrix[row, position]} (position {position}): leave it out")


def shaped(values: Floats, shape: tuple[int, ...]) -> Number:
    """Results of the rows in the batch's shape: a float for one sample."""
    return values.reshape(shape) if shape else float(values[0])


def check_delta(delta: Any, name: str = "delta") -> float:
    """A probability strictly between 0 and 1."""
    return check_within(name, delta, 0.0, 1.0, "a probability between 0 and 1, such as 0.05")


def check_order(name: str, value: Any, low: float, high: float) -> float:
    """A number in (low, high]; an eps must also be more than nothing beside 1, as it only ever occurs in 1 + eps."""
    order = check_within(name, value, low, math.nextafter(high, math.inf), f"a number > {low:g} and <= {high:g}")
    if 1.0 + order == 1.0:
        raise InvalidInput(f"{name} = {formatted(value)} is too small: 1 + {name} is 1 in doubles; pass at least 1e-15")
    return order


def check_positive(name: str, value: Any) -> float:
    """A finite number > 0."""
    return check_within(name, value, 0.0, math.inf, "a finite number > 0")


def check_within(name: str, value: Any, low: float, high: float, rule: str) -> float:
    """A number in (low, high); booleans are none, and an integer that is no double counts as infinite."""
    number = math.nan
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.copysign(math.inf, 1 if value > 0 else -1)
    if not low < number < high:
        raise InvalidInput(f"{name} = {formatted(value)} must be {rule}")
    return number


def check_whole(name: str, value: Any) -> int:
    """A whole number from 1 to 2^63 - 1, as sizes of samples are."""
    good = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not good or not 1 <= value < 2**63:
        raise InvalidInput(f"{name} = {formatted(value)} must be a whole number from 1 to 2^63 - 1")
    return int(value)


def check_choice(name: str, value: Any, allowed: tuple[str | None, ...], more: str = "") -> None:
    """One of a few names, or None where that is allowed."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise InvalidInput(f"{name} = {formatted(value)} must be one of {', '.join(repr(a) for a in allowed)}{more}")


def log_over(parts: float, delta: float) -> float:
    """log(parts / delta), also where the quotient is no double."""
    ratio = parts / delta
    return math.log(ratio) if ratio < math.inf else math.log(parts) - math.log(delta)
