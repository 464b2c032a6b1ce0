"""Writes the constants that hooks read (numbers, strings, tuples, arrays, NamedTuple classes) as source text."""

from __future__ import annotations

import math
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

_LARGEST_ARRAY = 1_000_000  # bytes; Numba does not cache code with larger arrays


def literal(value: Any) -> str:
    """Return the source text of a constant. Raise `TypeError` with the type's name if it cannot be written."""
    if isinstance(value, (bool, type(None))):
        return repr(value)
    if isinstance(value, str):
        return str.__repr__(value)  # a subclass, such as an enumeration, may have another repr
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        if value.nbytes > _LARGEST_ARRAY:
            raise TypeError(f"array of {value.nbytes} bytes, too large for a constant (pass it in the state)")
        return f"np.array({literal(tuple(value.ravel().tolist()))}, dtype=np.{value.dtype.name}).reshape({value.shape})"
    if isinstance(value, np.generic) and not isinstance(value, float) and value.dtype.kind in "biuf":
        if isinstance(value.item(), np.generic):
            raise TypeError(type(value).__name__)  # a longdouble, which no Python number can represent
        return f"np.{value.dtype.name}({literal(value.item())})"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else f'float("{float(value)}")'
    if isinstance(value, tuple):
        return "(" + "".join(literal(v) + ", " for v in value) + ")"
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return f"namedtuple({value.__name__!r}, {value._fields!r})"
    raise TypeError(type(value).__name__)


def fingerprint(value: Any) -> Any:
    """Return the literal of a value, since arrays change in place, or its identity if it has none. It detects changed values."""
    if isinstance(value, (FunctionType, ModuleType, type)):  # most values that hooks read, and an error takes longer
        return value
    try:
        return literal(value)
    except TypeError:
        return value
