"""Optimism on a robust mean: Robust UCB and its relatives."""
