"""Formulas shared by estimators and policies. The scalar ones can be compiled."""
