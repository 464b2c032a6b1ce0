"""UCB policies on robust means: Robust UCB and its relatives."""
