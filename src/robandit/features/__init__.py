"""Declared features: what the caller knows about a decision, as the numbers that a policy learns from."""

from __future__ import annotations

from robandit.features.declared import Category as Category
from robandit.features.declared import Feature as Feature
from robandit.features.declared import Number as Number
from robandit.features.encoder import FIRST, MOST_COLUMNS, Encoder, Scale

__all__ = ["FIRST", "MOST_COLUMNS", "Category", "Encoder", "Feature", "Number", "Scale"]
