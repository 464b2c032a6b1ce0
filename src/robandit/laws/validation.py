"""The checks of :mod:`robandit.validation`, under the name that the guide to writing a law has shown since version 0.1."""

from __future__ import annotations

from robandit.validation import finite, items_of, numbers, points, positive, probabilities, within

__all__ = ["finite", "items_of", "numbers", "points", "positive", "probabilities", "within"]
