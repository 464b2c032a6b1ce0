"""Replications of policies on a problem (`simulate`), and their `Result`."""

from __future__ import annotations

from robandit.simulate.result import Result
from robandit.simulate.simulation import simulate

__all__ = ["Result", "simulate"]
