"""AdaR-UCB, its centred variant and AdaKL-UCB: UCB policies whose trimming threshold comes from the data."""
