"""AdaKL-UCB, the default policy, and AdaKL-Proved: UCB policies on a likelihood bound, with a threshold from the data."""
