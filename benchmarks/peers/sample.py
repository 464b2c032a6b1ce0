"""The sample for estimators: Student's t with 3 degrees of freedom.

It is symmetric, so that all estimators have the same target, and its variance is 3.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

SIZES = (1_000, 100_000, 1_000_000)
VARIANCE = 3.0
DELTA = 0.05


def sample(n: int) -> Any:
    return import_module("numpy").random.default_rng(n).standard_t(3.0, n)
