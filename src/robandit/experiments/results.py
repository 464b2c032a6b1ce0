"""The results of an experiment, cell by cell and as tidy tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from robandit.experiments.plan import Cell, Plan, Played, Unit
from robandit.kernel.types import Floats, Ints
from robandit.simulate.result import Result
from robandit.validation import instance
from robandit.wording import counted

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Measured:
    """The results of one cell. Arrays have one row per replication that was played."""

    cell: Cell
    replications: Ints  # numbers of the replications: all of the plan's, unless units failed or were not played yet
    checkpoints: Ints
    regret: Floats
    """Pseudo-regret, one column per checkpoint. On a problem played in order it is realised regret, which can be negative."""
    pulls: Ints  # one column per arm
    seconds: float  # processor time in the loop, without compilation; NaN if unknown

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Measured: {self.cell.label} on {self.cell.played.name}, {counted(len(self.replications), 'replication')}>"

    @property
    def final(self) -> Floats:
        """Regret at the horizon."""
        last: Floats = self.regret[:, -1]
        return last

    @property
    def ns_per_pull(self) -> float:
        """Processor time of a pull, including the draw of the reward."""
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
    """The command, versions and machine, for the report."""

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Results: {self.plan!r}, {counted(len(self.measured), 'cell')} measured, {counted(len(self.failures), 'failure')}>"

    @classmethod
    def of(
        cls,
        plan: Plan,
        played: Iterable[tuple[Unit, Result, float]],
        failures: Iterable[Failure] = (),
        about: dict[str, Any] | None = None,
    ) -> Results:
        """Combine the results of units, each given with its processor time."""
        by_cell: dict[Cell, list[tuple[Unit, Result, float]]] = {}
        for part in played:
            by_cell.setdefault(part[0].cell, []).append(part)
        measured = tuple(_measured(cell, by_cell[cell]) for cell in plan.cells if cell in by_cell)
        return cls(plan, measured, tuple(failures), about or {})

    @classmethod
    def of_simulation(cls, result: Result, name: str) -> Results:
        """Return the results of `robandit.simulate`, on a problem with this name."""
        played = Played(name, result.problem, result.horizon)
        replications = result.regret.shape[1]
        measured = []
        for i, policy in enumerate(result.policies):
            arrays = result.checkpoints, result.regret[i], result.pulls[i], float(result.seconds[i])
            numbers = np.arange(result.first, result.first + replications)
            measured.append(Measured(Cell(played, policy, policy.name), numbers, *arrays))
        plan = Plan(tuple(each.cell for each in measured), (), result.seed, replications)
        return cls(plan, tuple(measured))

    @cached_property
    def problems(self) -> tuple[Played, ...]:
        """The problems with at least one measured cell, in order."""
        return tuple(dict.fromkeys(m.cell.played for m in self.measured))

    def on(self, played: Played) -> tuple[Measured, ...]:
        """Return the measured cells of one problem."""
        return tuple(m for m in self.measured if m.cell.played == played)

    @property
    def complete(self) -> bool:
        """Whether every replication of every cell was played."""
        counts = [len(m.replications) for m in self.measured]
        return counts == [self.plan.replications] * len(self.plan.cells)


def check_results(results: Any) -> None:
    """Raise `InvalidInput` unless these are the results of an experiment."""
    instance(results, Results, "results", "the results of a run", hint="such as run(plan, folder).store.results()")


def _measured(cell: Cell, parts: list[tuple[Unit, Result, float]]) -> Measured:
    """Combine the results of the units of one cell, each given with its processor time."""
    units, results, seconds = zip(*sorted(parts, key=lambda part: part[0].first), strict=True)
    return Measured(
        cell=cell,
        replications=np.concatenate([np.arange(unit.first, unit.first + unit.count) for unit in units]),
        checkpoints=results[0].checkpoints,
        regret=np.concatenate([result.regret[0] for result in results]),
        pulls=np.concatenate([result.pulls[0] for result in results]),
        seconds=float(sum(seconds)),
    )


def regret_table(measured: Iterable[Measured]) -> pl.DataFrame:
    """Return regret with one row per problem, horizon, policy, replication and checkpoint ``t``."""
    import polars as pl

    return _table({"t": pl.Int64, "regret": pl.Float64}, [(m, m.checkpoints, m.regret) for m in measured])


def pulls_table(measured: Iterable[Measured]) -> pl.DataFrame:
    """Return pulls with one row per problem, horizon, policy, replication and ``arm``."""
    import polars as pl

    rows = [(m, np.arange(m.cell.played.problem.arms), m.pulls) for m in measured]
    return _table({"arm": pl.Int64, "pulls": pl.Int64}, rows)


def _table(columns: dict[str, Any], rows: list[tuple[Measured, Ints, Any]]) -> pl.DataFrame:
    """Return a table with one row per cell, replication and index. ``columns`` names the index and the value."""
    import polars as pl

    schema = {"problem": pl.String, "horizon": pl.Int64, "policy": pl.String, "replication": pl.Int64} | columns
    index, value = columns
    frames = [pl.DataFrame(schema=schema)]
    for m, indices, values in rows:
        played, rows_of = m.cell.played, np.repeat(m.replications, len(indices))
        cells = {"replication": rows_of, index: np.tile(indices, len(values)), value: values.reshape(-1)}
        frame = pl.DataFrame(cells).with_columns(
            problem=pl.lit(played.name), horizon=pl.lit(played.horizon, pl.Int64), policy=pl.lit(m.cell.label)
        )
        frames.append(frame.select(pl.col(name).cast(kind) for name, kind in schema.items()))
    return pl.concat(frames, rechunk=True)
