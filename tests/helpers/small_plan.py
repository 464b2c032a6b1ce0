"""A plan of many short units, and the bytes of what came of it."""

from pathlib import Path

import robandit as rb
from robandit.experiments import plan as module

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
    """The bytes of all files in some folders of a folder."""
    return {path.name: path.read_bytes() for name in names for path in sorted((folder / name).iterdir())}
