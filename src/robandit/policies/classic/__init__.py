"""The classical policies and the baselines."""
