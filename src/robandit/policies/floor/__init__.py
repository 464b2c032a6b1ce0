"""A policy around any other one that draws a share of all decisions from a fixed distribution."""
