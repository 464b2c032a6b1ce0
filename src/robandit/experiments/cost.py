"""Estimate the processor time of a plan before it is played."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robandit.experiments.plan import Cell, Plan
from robandit.simulate.simulation import simulate
from robandit.validation import integer, positive

__all__ = ["CellCost", "Cost", "cost"]

FIRST = 1000  # pulls of the first measured game
GROWTH = 4  # ratio of the lengths of two successive games


@dataclass(frozen=True)
class CellCost:
    """The units of a cell that are not done, and the speed of its policy."""

    cell: Cell
    ns_per_pull: float
    units: int
    pulls: int
    longest: int  # pulls of the longest unit

    @property
    def seconds(self) -> float:
        """Processor time of the units."""
        return self.pulls * self.ns_per_pull * 1e-9


@dataclass(frozen=True)
class Cost:
    """The cost of the units of a plan that are not done, as `cost` returns it."""

    cells: tuple[CellCost, ...]
    done: int  # number of units that are done

    @property
    def units(self) -> int:
        """Number of units to play."""
        return sum(each.units for each in self.cells)

    @property
    def pulls(self) -> int:
        """Number of pulls to make."""
        return sum(each.pulls for each in self.cells)

    @property
    def seconds(self) -> float:
        """Processor time of all units."""
        return sum(each.seconds for each in self.cells)

    def time_on(self, workers: int) -> float:
        """Return the least time of the run on that many workers: they are never idle, or wait for the longest unit."""
        workers = integer(workers, "workers", 1, None)
        longest = max((each.longest * each.ns_per_pull * 1e-9 for each in self.cells), default=0.0)
        return max(self.seconds / workers, longest)


def cost(
    plan: Plan,
    *,
    folder: str | os.PathLike[str] | None = None,
    seconds: float = 20.0,
    track: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> Cost:
    """Measure each policy on each problem for a moment in this process, and return the cost of the units that are not done.

    Parameters
    ----------
    plan
        The plan.
    folder
        A run folder of this plan. Units that are done there cost nothing.
    seconds
        Approximate time of all measurements together, without compilation.
    track
        A function that wraps the list of measured cells, to show progress.
    """
    seconds = positive(seconds, "seconds")
    parts = set() if folder is None else {path.stem for path in (Path(folder) / "parts").glob("*.parquet")}
    left = {cell: [unit.pulls for unit in plan.units_of(cell) if unit.key not in parts] for cell in plan.cells}
    todo = [cell for cell, pulls in left.items() if pulls]
    cells = [
        CellCost(
            cell, measured(cell, plan.seed, seconds / len(todo)), len(left[cell]), sum(left[cell]), max(left[cell])
        )
        for cell in track(todo)
    ]
    return Cost(tuple(cells), len(plan.units) - sum(map(len, left.values())))


def measured(cell: Cell, seed: int, seconds: float) -> float:
    """Return nanoseconds per pull in the longest game that fits into a time. Games grow until the horizon, from `FIRST` pulls."""
    horizon = cell.played.horizon
    policy = cell.policy.prepared(horizon)  # for the full horizon, even if the game is short
    length, spent = min(horizon, FIRST), 0.0
    while True:
        games = max(1, FIRST // length)  # short games are repeated
        result = simulate(policy, cell.played.problem, length, games, seed, threads=1, progress=False)
        took = float(result.seconds[0])
        spent += took
        if length == horizon or spent + GROWTH * took > seconds:
            return max(took / (games * length) * 1e9, 1e-3)  # a coarse clock may measure 0
        length = min(horizon, GROWTH * length)
