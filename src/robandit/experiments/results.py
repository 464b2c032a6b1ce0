"""What an experiment measured, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from robandit.experiments.plan import Cell, Plan, Played, Unit
from robandit.kernel.types import Floats, Ints
from robandit.simulate.result import Result

__all__ = ["Failure", "Measured", "Results"]


@dataclass(frozen=True)
class Measured:
    """One cell. Arrays have a row per replication that was played."""

    cell: Cell
    replications: Ints
    """Their numbers: all of the plan's, unless units failed or are still to come."""
    checkpoints: Ints
    regret: Floats
    """Pseudo-regret, a column per checkpoint; realised regret, which can be negative, on a problem that is played in order."""
    pulls: Ints
    """A column per arm."""
    seconds: float
    """Processor time in the loop, compilation excluded; NaN where it is not known."""

    @property
    def final(self) -> Floats:
        """Regret at the horizon."""
        last: Floats = self.regret[:, -1]
        return last

    @property
    def ns_per_pull(self) -> float:
        """Processor time of a pull, rewards included."""
        return self.seconds / (len(self.regret) * self.cell.played.horizon) * 1e9


@dataclass(frozen=True)
class Failure:
    """A unit that failed every time, with the last traceback."""

    unit: Unit
    tries: int
    traceback: str


@dataclass(frozen=True)
class Results:
    """All cells that have been played, in the plan's order."""

    plan: Plan
    measured: tuple[Measured, ...]
    failures: tuple[Failure, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    """The command, versions and machine, for the report to show."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        played: Iterable[tuple[Unit, Result, float]],
        failures: Iterable[Failure] = (),
        about: dict[str, Any] | None = None,
    ) -> Results:
        """Put units together; with each comes its processor time."""
        by_cell: dict[Cell, list[tuple[Unit, Result, float]]] = {}
        for unit, result, seconds in played:
            by_cell.setdefault(unit.cell, []).append((unit, result, seconds))
        measured = []
        for cell in plan.cells:
            parts = sorted(by_cell.get(cell, []), key=lambda part: part[0].first)
            if parts:
                measured.append(
                    Measured(
                        cell=cell,
                        replications=np.concatenate([np.arange(u.first, u.first + u.count) for u, _, _ in parts]),
                        checkpoints=parts[0][1].checkpoints,
                        regret=np.concatenate([result.regret[0] for _, result, _ in parts]),
                        pulls=np.concatenate([result.pulls[0] for _, result, _ in parts]),
                        seconds=float(sum(seconds for _, _, seconds in parts)),
                    )
                )
        return cls(plan, tuple(measured), tuple(failures), about or {})

    @cached_property
    def problems(self) -> tuple[Played, ...]:
        """The problems of which something was measured, in order."""
        return tuple(dict.fromkeys(m.cell.played for m in self.measured))

    def on(self, played: Played) -> tuple[Measured, ...]:
        """What was measured on one problem."""
        return tuple(m for m in self.measured if m.cell.played == played)

    @property
    def complete(self) -> bool:
        """Whether every replication of every cell is there."""
        return len(self.measured) == len(self.plan.cells) and all(
            len(m.replications) == self.plan.replications for m in self.measured
        )
