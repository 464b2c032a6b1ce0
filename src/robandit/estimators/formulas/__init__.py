"""Formulas that one-shot estimators, streams and policies share. The scalar ones can be compiled."""
