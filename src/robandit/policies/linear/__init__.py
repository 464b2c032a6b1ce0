"""Policies whose estimate of an arm's mean is linear in the features x of the decision."""
