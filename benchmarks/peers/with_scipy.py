"""scipy.stats: the trimmed mean, with and without an interval, and the bootstrap interval."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from sample import DELTA, SIZES, sample

PACKAGES = ["scipy", "numpy"]
np = import_module("numpy")
stats = import_module("scipy.stats")
mstats = import_module("scipy.stats.mstats")


def trim_mean(x: Any) -> float:
    return float(stats.trim_mean(x, 0.1))


def trimmed_mean_ci(x: Any) -> float:
    return float(mstats.trimmed_mean_ci(x, limits=(0.1, 0.1), alpha=DELTA)[1])


def bootstrap(x: Any) -> float:
    result = stats.bootstrap((x,), np.mean, confidence_level=1.0 - DELTA, batch=100, rng=np.random.default_rng(0))
    return float(result.confidence_interval.high)


ACTIONS = {
    f"{call.__name__} {n}": (partial(call, sample(n)), n) for n in SIZES for call in (trim_mean, trimmed_mean_ci)
} | {f"bootstrap {SIZES[0]}": (partial(bootstrap, sample(SIZES[0])), SIZES[0])}  # its jackknife processes n^2 values
