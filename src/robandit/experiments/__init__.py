"""Studies that compare things over many random trials."""
