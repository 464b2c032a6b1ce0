"""Regret bounds, lower bounds, rates, KLinf and the assumption, as functions."""
