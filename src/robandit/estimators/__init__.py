"""Robust means with finite-sample confidence bounds: plain functions on arrays that return an `Estimate`.

Each states its theorem, what that assumes and what must be known. All take batches: arrays of shape (..., n) along ``axis``.
`TrimmedMean`, `MedianOfMeans` and `Catoni` do the same for streams.
"""

from __future__ import annotations

from robandit.estimators.adaptive import adaptive_trimmed_mean
from robandit.estimators.catoni import catoni_mean, catoni_root
from robandit.estimators.estimate import Estimate
from robandit.estimators.infinite_variance import infinite_variance_catoni
from robandit.estimators.lepskii import lepskii_catoni
from robandit.estimators.median_of_means import median_of_means, median_of_means_blocks, median_of_means_width
from robandit.estimators.p_robust import b_p, p_robust_mean
from robandit.estimators.sample import sample_mean
from robandit.estimators.streaming import Catoni, MedianOfMeans, TrimmedMean
from robandit.estimators.threshold import trimmed_mean, trimmed_variance, trimming_threshold
from robandit.estimators.truncated import truncated_mean
from robandit.estimators.winsorized import winsorized_mean

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
