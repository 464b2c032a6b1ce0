"""Replications of policies on a problem, and their result."""

from __future__ import annotations

from robandit.simulate.simulation import Result, simulate

__all__ = ["Result", "simulate"]
