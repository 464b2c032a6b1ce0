"""Formulas shared by one-shot estimators, streams and policies. The scalar ones can be compiled."""
