"""AdaR-UCB, its centred variant, and AdaKL-UCB: optimism with a threshold that the data choose."""
