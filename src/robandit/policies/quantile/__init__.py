"""Policies for quantiles of rewards."""
