"""AdaR-UCB: a UCB policy whose trimming threshold comes from the data."""
