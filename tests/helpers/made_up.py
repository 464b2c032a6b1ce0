"""Results whose numbers are given, not played."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import robandit as rb
from robandit.experiments.plan import Cell, LeftOut, Plan, Played
from robandit.experiments.results import Failure, Measured, Results

PROBLEM = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
HORIZON = 100


def problem(name: str = "p", horizon: int = HORIZON) -> Played:
    return Played(name, PROBLEM, horizon)


def results(
    finals: Mapping[Played, Mapping[str, Sequence[float]]],
    *,
    replications: int | None = None,
    numbers: Mapping[tuple[str, str], Sequence[int]] | None = None,
    policies: Mapping[str, rb.Policy] | None = None,
    left_out: Sequence[LeftOut] = (),
    missing: Sequence[tuple[Played, str]] = (),
    failures: Sequence[Failure] = (),
    seconds: float = math.nan,
) -> Results:
    """Final regret by problem and label; ``numbers`` are the replications' by problem and label, where some are missing."""
    most = max((len(each) for by_label in finals.values() for each in by_label.values()), default=1)
    cells, measured = [], []
    for played, by_label in finals.items():
        for label, values in by_label.items():
            cell = Cell(played, (policies or {}).get(label, rb.EpsilonGreedy()), label)
            which = (numbers or {}).get((played.name, label), range(len(values)))
            final = np.asarray(values, dtype=np.float64)
            array: Any = np.stack([0.5 * final, final], axis=1)
            marks = np.array([played.horizon // 2, played.horizon])
            pulls = np.zeros((len(final), 2), dtype=np.int64)
            measured.append(Measured(cell, np.array(list(which), dtype=np.int64), marks, array, pulls, seconds))
            cells.append(cell)
    cells += [Cell(played, rb.EpsilonGreedy(), label) for played, label in missing]
    plan = Plan(tuple(cells), tuple(left_out), seed=1, replications=replications or most)
    return Results(plan, tuple(measured), tuple(failures))
