"""Robust means with finite-sample confidence bounds: plain functions on arrays that return an `Estimate`.

Each states its theorem, the assumptions and what you must know. All take batches: arrays of shape (..., n) along ``axis``.
`TrimmedMean`, `MedianOfMeans` and `Catoni` do the same for streams.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from robandit.estimators.adaptive import adaptive_trimmed_mean
    from robandit.estimators.block_means import median_of_means, median_of_means_blocks, median_of_means_width
    from robandit.estimators.catoni import catoni_mean, catoni_root
    from robandit.estimators.estimate import Estimate
    from robandit.estimators.infinite_variance import infinite_variance_catoni
    from robandit.estimators.lepskii import lepskii_catoni
    from robandit.estimators.p_robust import b_p, p_robust_mean
    from robandit.estimators.sample import sample_mean
    from robandit.estimators.streaming import Catoni, MedianOfMeans, TrimmedMean
    from robandit.estimators.threshold import trimmed_mean, trimmed_variance, trimming_threshold
    from robandit.estimators.truncated import truncated_mean
    from robandit.estimators.winsorized import winsorized_mean

_MODULES = {
    "adaptive": ("adaptive_trimmed_mean",),
    "block_means": ("median_of_means", "median_of_means_blocks", "median_of_means_width"),
    "catoni": ("catoni_mean", "catoni_root"),
    "estimate": ("Estimate",),
    "infinite_variance": ("infinite_variance_catoni",),
    "lepskii": ("lepskii_catoni",),
    "p_robust": ("b_p", "p_robust_mean"),
    "sample": ("sample_mean",),
    "streaming": ("Catoni", "MedianOfMeans", "TrimmedMean"),
    "threshold": ("trimmed_mean", "trimmed_variance", "trimming_threshold"),
    "truncated": ("truncated_mean",),
    "winsorized": ("winsorized_mean",),
}
__all__ = [
    "Catoni",
    "Estimate",
    "MedianOfMeans",
    "TrimmedMean",
    "adaptive_trimmed_mean",
    "b_p",
    "catoni_mean",
    "catoni_root",
    "infinite_variance_catoni",
    "lepskii_catoni",
    "median_of_means",
    "median_of_means_blocks",
    "median_of_means_width",
    "p_robust_mean",
    "sample_mean",
    "trimmed_mean",
    "trimmed_variance",
    "trimming_threshold",
    "truncated_mean",
    "winsorized_mean",
]


def __getattr__(name: str) -> _Any:
    """Import an estimator when it is first used: policies need only the formulas."""
    for module, names in _MODULES.items():
        if name in names:
            globals()[name] = getattr(_import_module(f"robandit.estimators.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module 'robandit.estimators' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return __all__
