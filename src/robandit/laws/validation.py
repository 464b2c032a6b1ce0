"""The checks of :mod:`robandit.validation`, for laws written against Robandit 0.1, whose guide imported them from here."""

from __future__ import annotations

from robandit.validation import finite, items_of, numbers, points, positive, probabilities, within

__all__ = ["finite", "items_of", "numbers", "points", "positive", "probabilities", "within"]
