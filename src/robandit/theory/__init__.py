"""Regret bounds, lower bounds, rates, KLinf and the assumption, as functions."""

from __future__ import annotations

from robandit.theory.adar_bounds import (
    printed_instance,
    printed_worst_case,
    repaired_instance,
    repaired_worst_case,
)

__all__ = ["printed_instance", "printed_worst_case", "repaired_instance", "repaired_worst_case"]
