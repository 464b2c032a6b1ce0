"""Simulation: `simulate` plays replications of policies on a problem and returns a `Result`."""

from __future__ import annotations

from robandit.simulate.result import Result
from robandit.simulate.simulation import simulate

__all__ = ["Result", "simulate"]
