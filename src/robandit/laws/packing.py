"""Write arrays in JSON: short arrays as readable lists, long arrays as the base64 text of their bytes."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np

from robandit.validation import invalid

LONG = 1000  # longer lists are not readable, and base64 takes half the space
KINDS = {"float64": "<f8", "int32": "<i4"}


def packed(values: np.ndarray[Any, Any], kind: str = "float64") -> list[Any] | dict[str, str]:
    """Return a one-dimensional array as JSON data. Equal values give the same text on every machine."""
    if values.size <= LONG:
        return list(values.tolist())
    return {kind: base64.b64encode(values.astype(KINDS[kind]).tobytes()).decode()}


def is_packed(value: Any) -> bool:
    """Return whether this is the JSON data of a long array."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in KINDS


def unpacked(value: Any, name: str) -> Any:
    """Return the array that `packed` wrote. Other values are returned unchanged, and the caller checks them."""
    if not is_packed(value):
        return value
    kind, text = next(iter(value.items()))
    try:
        content = base64.b64decode(text, validate=True)
        return np.frombuffer(content, dtype=KINDS[kind])
    except (binascii.Error, TypeError, ValueError) as error:
        raise invalid(name, text, f"the base64 text of {kind} numbers ({error})", hint="the file is damaged") from error
