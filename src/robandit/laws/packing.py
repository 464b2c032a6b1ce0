"""Arrays in JSON: short ones as lists that people can read, long ones as the base64 text of their bytes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from robandit.errors import InvalidInput

__all__ = ["is_packed", "packed", "unpacked"]

LONG = 1000  # values: a list of more is not read by anybody, and takes twice the room
KINDS = {"float64": "<f8", "int32": "<i4"}


def packed(values: np.ndarray[Any, Any], kind: str = "float64") -> list[Any] | dict[str, str]:
    """A one-dimensional array as JSON data; the same values give the same text on every machine.

    >>> packed(np.array([1.5, 2.0]))
    [1.5, 2.0]
    >>> packed(np.zeros(2000), "int32")["int32"][:8]
    'AAAAAAAA'
    """
    if values.size <= LONG:
        return list(values.tolist())
    return {kind: base64.b64encode(values.astype(KINDS[kind]).tobytes()).decode()}


def is_packed(value: Any) -> bool:
    """Whether this is JSON data of a long array."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in KINDS


def unpacked(value: Any, name: str) -> Any:
    """What `packed` was given; anything but packed values is returned as it is, and checked by whoever asked.

    >>> unpacked(packed(np.arange(2000.0)), "data").tolist() == list(range(2000))
    True
    """
    if not is_packed(value):
        return value
    kind, text = next(iter(value.items()))
    try:
        content = base64.b64decode(text, validate=True)
        return np.frombuffer(content, dtype=KINDS[kind])
    except (binascii.Error, TypeError, ValueError) as error:
        raise InvalidInput(f"{name} is not the base64 text of {kind} numbers ({error}): the file is damaged") from error
