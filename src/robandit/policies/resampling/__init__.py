"""Upper confidence bounds from random signs: RMM-UCB and MARS."""
