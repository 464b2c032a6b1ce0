"""Runs entries as plain Python, with the results of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from robandit.kernel.build import Entry


def interpreted(entry: Entry | partial[Any], *, args: tuple[Any, ...]) -> Entry:
    """Return the entry as a function that takes its arguments as `robandit.kernel.build.flat` returns them, like a compiled one.

    Records of numbers are those of ``args``; the numbers that are passed are ignored, because converting them is slow. If the entry
    raises an error, all arrays are as before the call: Python raises errors where compiled code does not, such as in ``log(0)``.
    """
    takers = [_taker(value) for value in args]

    def run(*given: Any) -> Any:
        arrays = [value for value in given if isinstance(value, np.ndarray) and value.flags.writeable]
        before = [array.copy() for array in arrays]
        taken: list[Any] = []
        start = 0
        for count, make in takers:
            taken.append(make(*given[start : start + count]))
            start += count
        try:
            with np.errstate(all="ignore"):  # compiled code does not warn either
                return entry(*taken)
        except BaseException:
            for array, old in zip(arrays, before, strict=True):
                array[...] = old
            raise

    return run


def _taker(like: Any) -> tuple[int, Callable[..., Any]]:
    """Return the number of flat arguments that make an argument like this one, and the function that makes it."""
    if not isinstance(like, tuple):
        return 1, _same
    if all(isinstance(field, np.ndarray) for field in like):
        return len(like), type(like)
    make: Callable[..., Any] = type(like)
    record = make(*(float(x) if isinstance(x, (float, np.floating)) else int(x) for x in like))
    return 1, lambda pack: record


def _same(value: Any) -> Any:
    return value
