"""R-UCB: statistically robust policies whose bonus grows with a given function."""
