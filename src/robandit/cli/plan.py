"""``robandit plan``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from robandit.cli.options import Imports, RunFolder, import_given

if TYPE_CHECKING:
    from robandit.experiments.plan import Cell

MEASURED = 20_000  # pulls that each policy makes on each problem


def plan(spec: Path, *, out: RunFolder = None, imports: Imports = None) -> None:
    """Count the units of an experiment that are not in the run folder yet, and estimate their processor time.

    Each policy makes a few thousand pulls on each problem on this machine. Policies that become slower with time take longer than
    estimated. The command writes no file.

    Parameters
    ----------
    spec
        The TOML file, as for `robandit run`.
    """
    from robandit.cli.run_folder import another_with_out, run_folder
    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import tracked
    from robandit.experiments.spec import read_spec
    from robandit.experiments.store import Store
    from robandit.kernel.cores import cores
    from robandit.wording import counted

    import_given(imports)
    experiment = read_spec(spec)
    folder = run_folder(spec, out)
    exists = os.path.exists(folder / "run.json")  # Path.exists raises for names that are too long
    with another_with_out(folder):
        todo = Store.open(folder).continued(experiment.plan()) if exists else experiment.plan()
    parts = {path.stem for path in (folder / "parts").glob("*.parquet")} if exists else set()
    units = [unit for unit in todo.units if unit.key not in parts]

    write_line(f"{experiment.name}: {f'run folder {folder}' if exists else f'no run folder {folder} yet'}")
    left = f"{counted(len(units), 'unit')} of work left, {len(todo.units) - len(units):,} done"
    if not units:
        print(left)
        return
    print(f"{left}; {sum(unit.pulls for unit in units):,} pulls")
    cells = list(dict.fromkeys(unit.cell for unit in units))
    speeds = {cell: seconds_per_pull(cell, todo.seed) for cell in tracked("measuring")(cells)}
    seconds = sum(unit.pulls * speeds[unit.cell] for unit in units)
    here = cores()
    print(f"about {_duration(seconds)} of processor time, {_duration(seconds / here)} on {counted(here, 'idle core')}")


def seconds_per_pull(cell: Cell, seed: int) -> float:
    """Return the measured processor time of a pull of a cell's policy on its problem."""
    from robandit.simulate.simulation import simulate

    horizon = cell.played.horizon
    policy = cell.policy.prepared(horizon)  # for the full horizon, even if the game is short
    length = min(horizon, MEASURED)
    games = MEASURED // length
    result = simulate(policy, cell.played.problem, length, games, seed, threads=1, progress=False)
    return float(result.seconds[0]) / (games * length)


def _duration(seconds: float) -> str:
    if seconds < 120.0:
        return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200.0 else f"{seconds / 3600:,.1f} h"
