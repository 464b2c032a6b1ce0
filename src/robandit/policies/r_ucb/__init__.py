"""R-UCB: statistically robust policies whose bonus grows by a given function."""
