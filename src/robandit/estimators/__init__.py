"""Robust means with finite-sample confidence bounds, as functions on arrays that return an `Estimate`.

All take ``x``, a sample or a batch of samples whose values lie along ``axis``; a batch gives arrays of its shape. Most take
``delta``, the allowed probability that the bounds fail, 0.05 by default. Each docstring states the theorem, its
assumptions and the required knowledge.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from robandit.estimators.adaptive import adaptive_trimmed_mean as adaptive_trimmed_mean
    from robandit.estimators.block_means import median_of_means as median_of_means
    from robandit.estimators.block_means import median_of_means_blocks as median_of_means_blocks
    from robandit.estimators.block_means import median_of_means_width as median_of_means_width
    from robandit.estimators.catoni import catoni_mean as catoni_mean
    from robandit.estimators.catoni import catoni_root as catoni_root
    from robandit.estimators.estimate import ConfidenceInterval as ConfidenceInterval
    from robandit.estimators.estimate import Estimate as Estimate
    from robandit.estimators.infinite_variance import infinite_variance_catoni as infinite_variance_catoni
    from robandit.estimators.lepskii import lepskii_catoni as lepskii_catoni
    from robandit.estimators.p_robust import b_p as b_p
    from robandit.estimators.p_robust import p_robust_mean as p_robust_mean
    from robandit.estimators.sample import sample_mean as sample_mean
    from robandit.estimators.threshold import trimmed_mean as trimmed_mean
    from robandit.estimators.threshold import trimmed_variance as trimmed_variance
    from robandit.estimators.threshold import trimming_threshold as trimming_threshold
    from robandit.estimators.truncated import truncated_mean as truncated_mean

_MODULES = {
    "adaptive": ("adaptive_trimmed_mean",),
    "block_means": ("median_of_means", "median_of_means_blocks", "median_of_means_width"),
    "catoni": ("catoni_mean", "catoni_root"),
    "estimate": ("ConfidenceInterval", "Estimate"),
    "infinite_variance": ("infinite_variance_catoni",),
    "lepskii": ("lepskii_catoni",),
    "p_robust": ("b_p", "p_robust_mean"),
    "sample": ("sample_mean",),
    "threshold": ("trimmed_mean", "trimmed_variance", "trimming_threshold"),
    "truncated": ("truncated_mean",),
}
_NAMES = sorted(name for names in _MODULES.values() for name in names)
if not TYPE_CHECKING:  # a type checker reads the imports above
    __all__ = _NAMES


def __getattr__(name: str) -> _Any:
    """Import an estimator when it is first used: policies need only the formulas."""
    for module, names in _MODULES.items():
        if name in names:
            globals()[name] = getattr(_import_module(f"robandit.estimators.{module}"), name)
            return globals()[name]
    if name in _MODULES:
        return _import_module(f"robandit.estimators.{name}")
    hints = _import_module("robandit.hints")
    meant = hints.question(hints.close(name, _NAMES))
    raise AttributeError(f"module 'robandit.estimators' has no attribute {name!r}{meant}", name=name)


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return _NAMES
