"""How failed units are described, on pages and in the terminal."""

from __future__ import annotations

from robandit.experiments.plan import Unit


def replications(unit: Unit) -> str:
    """Name the replications of a unit."""
    last = unit.first + unit.count - 1
    return f"replication {unit.first}" if unit.count == 1 else f"replications {unit.first} to {last}"


def last_line(traceback: str) -> str:
    """Return the last line of a traceback, which names the error."""
    return (traceback.strip().splitlines() or ["no traceback"])[-1]
