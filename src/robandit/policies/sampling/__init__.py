"""Policies that sample from a posterior or compare subsamples."""
