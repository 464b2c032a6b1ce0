"""A plan of many short units, and the bytes of its run folder."""

from pathlib import Path

import robandit as rb
from robandit.experiments import plan as module
from robandit.experiments.store import Store

HORIZON = 500


def small_plan(replications=20, policies=None, pulls=4 * HORIZON, seed=7, problem=None):
    """Units of four replications, unless ``pulls`` says otherwise."""
    problem = problem or rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.8)
    before, module.PULLS = module.PULLS, pulls
    try:
        chosen = policies if policies is not None else [rb.UCB1(), rb.Uniform()]
        return module.planned([module.Played("p", problem, HORIZON)], chosen, replications=replications, seed=seed)
    finally:
        module.PULLS = before


def contents(folder: Path, *names: str):
    """Return the bytes of all files in these subfolders."""
    return {path.name: path.read_bytes() for name in names for path in sorted((folder / name).iterdir())}


def everything(folder: Path):
    """Write the results of a run folder; return the bytes of its parts and results."""
    Store.open(folder).write_results()
    return contents(folder, "parts", "results")


def nothing_half_written(folder: Path):
    """Return whether a run folder has no lock files and no temporary files, except of run.json (swept when old)."""
    hidden = [path for path in folder.rglob(".*") if not path.name.startswith(".run.json.")]
    return not hidden and not list(folder.rglob("*.lock"))
