"""KLinf-UCB and its index."""
