"""Runs on a local Dask cluster: two workers against one, what a unit costs beside its pulls, and whether the cost model says so.

Part of ``make bench``; alone: ``python benchmarks/cluster.py``. About half a minute.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import robandit as rb
from robandit.experiments import Plan, Played, planned, run
from robandit.experiments.cost import cost, measure

PROBLEM = rb.problems.negated_pareto(means=(-np.linspace(1.0, 5.5, 10)).tolist(), tail=1.5)
TRIES = 2
TINY = 200  # units of one short replication


class Figures(NamedTuple):
    """What was measured, in seconds, and what the model says of it."""

    one: float
    two: float
    predicted_one: float
    predicted_two: float
    unit: float
    """Of one worker, from one unit with next to no pulls to the next."""
    worker: float
    """Processor time of the worker for each of them, beside what the model has for its replication."""
    client: float
    """Processor time of this process for each of them; it has the scheduler, too."""
    thousand: float
    """A schedule on 1,000 workers against its lower bound."""


def plan(horizon: int, replications: int, unit_pulls: int) -> Plan:
    """UCB1 and AdaR-UCB on ten arms."""
    made = planned([Played("p", PROBLEM, horizon)], [rb.UCB1(), rb.AdaRUCB()], replications=replications, seed=1)
    return replace(made, unit_pulls=unit_pulls)


@contextmanager
def _cluster(workers: int) -> Iterator[tuple[Any, Any]]:
    """Its client and executor."""
    distributed: Any = import_module("distributed")  # it has no types
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        ) as there,
        distributed.Client(there) as client,
    ):
        yield client, client.get_executor()


def figures() -> Figures | None:
    """None: there is no Dask."""
    if find_spec("distributed") is None:
        return None
    large = plan(horizon=500_000, replications=60, unit_pulls=2_500_000)  # 24 units of a fifth of a second
    tiny = plan(horizon=500, replications=TINY // 2, unit_pulls=1)
    speeds = measure(large, seconds=2.0)
    found = cost(large, ns_per_pull=speeds)
    seconds = {}
    unit = worker = client = 0.0
    for workers in (1, 2):
        with _cluster(workers) as (dask, executor), tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run(plan(500, 8, 1), folder / "warm", engine=executor)  # workers load what is compiled
            if workers == 1:
                before = time.perf_counter(), time.process_time(), *dask.run(time.process_time).values()
                run(tiny, folder / "tiny", engine=executor)
                after = time.perf_counter(), time.process_time(), *dask.run(time.process_time).values()
                unit, client, worker = ((b - a) / TINY for a, b in zip(before, after, strict=True))
                worker -= cost(tiny, ns_per_pull=dict.fromkeys(tiny.cells, 100.0), overhead=0.0).work / TINY
            times = []
            for number in range(TRIES):
                start = time.perf_counter()
                run(large, folder / f"large {number}", engine=executor)
                times.append(time.perf_counter() - start)
            seconds[workers] = min(times)
    # The sweep that clusters are for: 30 policies of 30 to 1,000 ns on 12 problems, 900 replications of 1e7 pulls.
    cells = [replace(large.cells[0], label=f"policy {i}", policy=rb.UCB1(scale=1.0 + i)) for i in range(30)]
    problems = [Played(f"p{j}", rb.problems.gaussian(means=[0.0, -1.0 - j]), 10**7) for j in range(12)]
    sweep = replace(large, cells=tuple(replace(c, played=p) for p in problems for c in cells), replications=900)
    given = {cell: 30.0 * 1000.0 ** (int(cell.label.split()[1]) / 58.0) for cell in sweep.cells}
    whole = cost(sweep, ns_per_pull=given, client=0.0)  # the schedule itself, however busy the client is
    return Figures(
        one=seconds[1],
        two=seconds[2],
        predicted_one=found.time_on(1),
        predicted_two=found.time_on(2),
        unit=unit,
        worker=worker,
        client=client,
        thousand=whole.time_on(1000) / whole.least(1000),
    )


if __name__ == "__main__":
    start = time.perf_counter()
    print(figures(), f"{time.perf_counter() - start:.0f} s")
