"""Checks of :mod:`robandit.validation`. The guide of Robandit 0.1 imported them from here, so existing laws may need them."""

from __future__ import annotations

from robandit.validation import finite, items_of, numbers, points, positive, probabilities, within

__all__ = ["finite", "items_of", "numbers", "points", "positive", "probabilities", "within"]
