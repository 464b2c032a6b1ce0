"""Robust means of streams, with bounded memory, any delta at any time, mergeable shards and state as JSON.

============== ================================== ==========================================================
accumulator    one-shot function                  difference from the one-shot function
============== ================================== ==========================================================
TrimmedMean    adaptive_trimmed_mean              only rounding, for every order, split and merge
MedianOfMeans  median_of_means                    rounding; blocks begin elsewhere once they hold two values
Catoni         catoni_mean                        an error that is bounded and added to the interval
============== ================================== ==========================================================

TrimmedMean's mean, spread and threshold are the doubles nearest to the exact ones. The one-shot function rounds intermediate
results, so its last digit may differ. The docstrings of the one-shot functions have the theorems and references.
"""

from __future__ import annotations

from robandit.estimators.streaming.catoni import Catoni
from robandit.estimators.streaming.median_of_means import MedianOfMeans
from robandit.estimators.streaming.trimmed_mean import TrimmedMean

__all__ = ["Catoni", "MedianOfMeans", "TrimmedMean"]
