"""Measure runs on a local Dask cluster: the speed-up of a second worker, and the overhead per unit.

Part of ``make bench``. To run it alone: ``python benchmarks/cluster.py`` (half a minute).
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

PROBLEM = rb.problems.negated_pareto(means=(-np.linspace(1.0, 5.5, 10)).tolist(), tail=1.5)
TRIES = 2
SHORT_UNITS = 200  # units of one short replication each


class Figures(NamedTuple):
    """Measured times, in seconds."""

    one: float
    two: float
    unit: float
    """Wall-clock time per short unit on one worker."""
    worker: float
    """The worker's processor time per short unit."""
    client: float
    """Processor time of this process (client and scheduler) per short unit."""


def plan(horizon: int, replications: int, unit_pulls: int) -> Plan:
    """Return a plan of UCB1 and AdaR-UCB on ten arms."""
    played = planned([Played("p", PROBLEM, horizon)], [rb.UCB1(), rb.AdaRUCB()], replications=replications, seed=1)
    return replace(played, unit_pulls=unit_pulls)


@contextmanager
def _cluster(workers: int) -> Iterator[tuple[Any, Any]]:
    """Start a local cluster; yields its client and executor."""
    distributed: Any = import_module("distributed")  # untyped
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client, client.get_executor()


def figures() -> Figures | None:
    """Return the measurements, or None if Dask is not installed."""
    if find_spec("distributed") is None:
        return None
    large = plan(horizon=500_000, replications=60, unit_pulls=2_500_000)  # 24 units of a fifth of a second
    short = plan(horizon=500, replications=SHORT_UNITS // 2, unit_pulls=1)
    seconds = {}
    unit = worker = client = 0.0
    for workers in (1, 2):
        with _cluster(workers) as (dask, executor), tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run(plan(500, 8, 1), folder / "first", engine=executor)  # workers load the compiled code
            if workers == 1:
                before = time.perf_counter(), time.process_time(), *dask.run(time.process_time).values()
                run(short, folder / "short", engine=executor)
                after = time.perf_counter(), time.process_time(), *dask.run(time.process_time).values()
                unit, client, worker = ((b - a) / SHORT_UNITS for a, b in zip(before, after, strict=True))
            times = []
            for number in range(TRIES):
                start = time.perf_counter()
                run(large, folder / f"large {number}", engine=executor)
                times.append(time.perf_counter() - start)
            seconds[workers] = min(times)
    return Figures(one=seconds[1], two=seconds[2], unit=unit, worker=worker, client=client)


if __name__ == "__main__":
    start = time.perf_counter()
    print(figures(), f"{time.perf_counter() - start:.0f} s")
