"""statsmodels: the trimmed mean with its interval, and Huber's M-estimator with and without one."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from sample import DELTA, SIZES, sample

PACKAGES = ["statsmodels", "scipy", "numpy", "pandas"]
np = import_module("numpy")
stats = import_module("scipy.stats")
robust_compare = import_module("statsmodels.stats.robust_compare")
linear = import_module("statsmodels.robust.robust_linear_model")
norms = import_module("statsmodels.robust.norms")
scale = import_module("statsmodels.robust.scale")


def trimmed(x: Any) -> float:
    estimate = robust_compare.TrimmedMean(x, 0.1)
    half_width = stats.t.ppf(1.0 - DELTA / 2.0, estimate.ttest_mean()[2]) * estimate.std_mean_trimmed
    return float(estimate.mean_trimmed + half_width)


def huber(x: Any) -> float:
    return float(scale.Huber()(x)[0])


def huber_interval(x: Any) -> float:
    fitted = linear.RLM(x, np.ones((len(x), 1)), M=norms.HuberT()).fit()
    return float(fitted.conf_int(alpha=DELTA)[0][1])


ACTIONS = {
    f"{call.__name__} {n}": (partial(call, sample(n)), n) for n in SIZES for call in (trimmed, huber, huber_interval)
}
