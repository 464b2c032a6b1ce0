"""Estimate the cost of a plan before it is played: processor time, bytes, and the time on a number of workers.

A unit occupies its worker for ``overhead + replications (REPLICATION + horizon x seconds per pull)`` seconds. It occupies the
client, which submits units and writes their parts, for ``client`` seconds. Units start in the plan's order, each on the first free
worker. This schedule is simulated, not approximated. All machines are assumed to be as fast as the one that was measured.
"""

from __future__ import annotations

import heapq
import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Cell, Plan
from robandit.problems import Problem
from robandit.simulate.result import problem_reference
from robandit.simulate.simulation import simulate
from robandit.validation import integer, positive, within

__all__ = ["CellCost", "Cost", "better_cut", "cost", "measure", "recorded"]

# Seconds on a machine with two cores and a local Dask cluster. `make bench` measures the first two, and the total.
OVERHEAD = 0.01  # of a worker per unit: it receives the unit, makes the part and sends it back
CLIENT = 0.01  # of the client per unit: it submits the unit, checks the part and writes it to disk
REPLICATION = 250e-6  # per replication: create the random streams and the state, and wait for a thread

FRAME = 2000  # bytes of a part without numbers
PACKED = 0.2  # compressed size of its numbers; measured: 6 to 43 %, depending on law, horizon and policy

FIRST = 1000  # pulls in the first measured prefix
GROWTH = 4  # ratio of the lengths of two successive prefixes


@dataclass(frozen=True)
class CellCost:
    """The cost of the units of a cell that are not done."""

    cell: Cell
    ns_per_pull: float
    batches: tuple[tuple[int, int], ...]  # (number of units, replications in each), in the plan's order
    done: int  # number of units that are done
    bytes: int  # size of the parts of these units

    @property
    def units(self) -> int:
        """Number of units to play."""
        return sum(units for units, _ in self.batches)

    @property
    def pulls(self) -> int:
        """Number of pulls to make."""
        return sum(units * count for units, count in self.batches) * self.cell.played.horizon

    @property
    def seconds(self) -> float:
        """Processor time of the replications, without the overhead of units."""
        return sum(units * self.playing(count) for units, count in self.batches)

    def playing(self, count: int) -> float:
        """Return the processor time of ``count`` replications."""
        return count * (REPLICATION + self.cell.played.horizon * self.ns_per_pull * 1e-9)


@dataclass(frozen=True)
class Cost:
    """The cost of the units of a plan that are not done, as `cost` returns it."""

    cells: tuple[CellCost, ...]  # units that two cells share are counted in the first one
    overhead: float
    client: float
    compiling: float

    @property
    def units(self) -> int:
        """Number of units to play."""
        return sum(each.units for each in self.cells)

    @property
    def done(self) -> int:
        """Number of units that are done."""
        return sum(each.done for each in self.cells)

    @property
    def pulls(self) -> int:
        """Number of pulls to make."""
        return sum(each.pulls for each in self.cells)

    @property
    def bytes(self) -> int:
        """Size of the parts of units to play, within a factor of 3."""
        return sum(each.bytes for each in self.cells)

    @property
    def work(self) -> float:
        """Total seconds of all workers, without compilation."""
        return sum(each.seconds + each.units * self.overhead for each in self.cells)

    @property
    def cpu_hours(self) -> float:
        """Total hours of all workers and the client."""
        return (self.work + self.units * self.client) / 3600.0

    @cached_property
    def longest(self) -> tuple[float, Cell | None]:
        """Seconds of the longest unit and its cell. More workers cannot make the run shorter than this."""
        times = [(self.overhead + each.playing(count), each.cell) for each in self.cells for _, count in each.batches]
        return max(times, key=lambda time: time[0], default=(0.0, None))

    def least(self, workers: int) -> float:
        """Return a lower bound on `time_on` that holds for any order of the units."""
        workers = integer(workers, "workers", 1, None)
        return max(self.work / workers, self.longest[0], self.units * self.client)

    def time_on(self, workers: int) -> float:
        """Return the seconds of the run on that many workers, with one thread each.

        The result lies between `least` and ``work / workers + longest`` (plus ``compiling`` once per policy, and once more), unless
        the client needs longer for all units. More workers never take longer, unless each of them compiles.
        """
        workers = integer(workers, "workers", 1, None)
        batches = (
            (units, self.overhead + each.playing(count), each.cell.label)
            for each in self.cells
            for units, count in each.batches
        )
        return max(_makespan(batches, min(workers, max(self.units, 1)), self.compiling), self.units * self.client)

    def limit(self, workers: int) -> str:
        """Return the reason why more workers would not help much: "client" or "longest unit", or "" if they would help."""
        time = self.time_on(workers)
        if self.units and self.units * self.client >= 0.9 * time:
            return "client"
        return "longest unit" if self.units and 2.0 * self.longest[0] > time and workers > 1 else ""


def cost(
    plan: Plan,
    *,
    ns_per_pull: Mapping[Cell, float] | None = None,
    folder: str | os.PathLike[str] | None = None,
    overhead: float = OVERHEAD,
    client: float = CLIENT,
    compiling: float = 0.0,
) -> Cost:
    """Return the cost of the units of a plan that are not done.

    Parameters
    ----------
    plan
        The plan. A unit that two cells share counts once, as in `robandit.experiments.run`.
    ns_per_pull
        Nanoseconds per pull for each cell. None uses `recorded` for cells with units in the folder, and `measure` for the others.
    folder
        A run folder of this plan. Units that are done there cost nothing.
    overhead
        Seconds of a worker per unit, in addition to its replications.
    client
        Seconds of the client per unit.
    compiling
        Seconds that a worker compiles before its first unit of a policy; 0 if compiled code is in its cache.

    Examples
    --------
    >>> import robandit as rb
    >>> from robandit.experiments import Played, planned
    >>> problem = rb.problems.gaussian(means=[0.0, -0.5])
    >>> plan = planned([Played("two arms", problem, horizon=10**7)], [rb.UCB1()], replications=10**6, seed=1)
    >>> estimate = cost(plan, ns_per_pull={plan.cells[0]: 36.0}, overhead=0.0, client=0.0)
    >>> estimate.units, round(estimate.cpu_hours), round(estimate.time_on(1000))
    (1000000, 100, 360)
    """
    overhead, client, compiling = (
        within(value, name, 0.0, math.inf, hint="give seconds")
        for name, value in (("overhead", overhead), ("client", client), ("compiling", compiling))
    )
    if ns_per_pull is None:
        known = {} if folder is None else recorded(plan, folder)
        ns_per_pull = known | measure(plan, known=known)
    done_keys = _parts(folder)
    seen: set[Any] = set()
    cells = []
    for cell in plan.cells:
        name = f"ns_per_pull of {cell.label} on {plan.called(cell.played)}"
        speed = positive(ns_per_pull.get(cell), name, hint="measure() returns it")
        same = (cell.policy, cell.played.problem, cell.played.horizon)
        batches, done = ((), 0) if same in seen else _left(plan, cell, done_keys)
        seen.add(same)
        size = sum(units * _part_bytes(cell, count) for units, count in batches)
        cells.append(CellCost(cell, speed, batches, done, size))
    return Cost(tuple(cells), overhead, client, compiling)


def better_cut(plan: Plan, ns_per_pull: Mapping[Cell, float], workers: int, **options: Any) -> tuple[int, float] | None:
    """Return the ``unit_pulls`` with the shortest time on that many workers, and that time; None if no value saves a tenth.

    The options are passed to `cost`. The units of an existing run folder do not change.
    """
    now = cost(plan, ns_per_pull=ns_per_pull, **options).time_on(workers)
    candidates = []
    for pulls in (plan.unit_pulls * 2**k // 2**6 for k in range(13)):  # a 64th to 64 times
        if pulls >= 1:
            other = cost(replace(plan, unit_pulls=pulls), ns_per_pull=ns_per_pull, **options)
            candidates.append((other.least(workers), pulls, other))
    best = None
    for least, pulls, other in sorted(candidates, key=lambda each: each[:2]):
        if least > 0.9 * now or (best is not None and least >= best[1]):
            break
        time = other.time_on(workers)
        if time <= 0.9 * now and (best is None or time < best[1]):
            best = pulls, time
    return best


def measure(
    plan: Plan,
    *,
    seconds: float = 20.0,
    known: Mapping[Cell, float] | None = None,
    track: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> dict[Cell, float]:
    """Measure nanoseconds per pull for each cell: play each policy on each problem for a short time in this process.

    The function plays prefixes of the first replication, each four times as long as the one before, until the time is used up.
    It assumes that later pulls cost as much as those in the last three quarters of the last prefix. Compilation is not counted.

    Parameters
    ----------
    plan
        The plan to measure.
    seconds
        Approximate total time. Each measurement has at least ``FIRST`` pulls, even if it takes longer.
    known
        Cells to skip.
    track
        A function that wraps the list of measurements, to show progress.
    """
    seconds = positive(seconds, "seconds")
    pairs: dict[tuple[Any, Problem], list[Cell]] = {}
    for cell in plan.cells:
        if cell not in (known or {}):
            pairs.setdefault((cell.policy, cell.played.problem), []).append(cell)
    speeds: dict[Cell, float] = {}
    for cells in track(list(pairs.values())):
        longest = max(cells, key=lambda cell: cell.played.horizon)
        pulls, taken = _prefixes(longest, plan.seed, seconds / len(pairs))
        rate = (taken[-1] - taken[-2]) / (pulls[-1] - pulls[-2])
        for cell in cells:
            horizon = cell.played.horizon
            total = float(np.interp(horizon, pulls, taken)) + max(0, horizon - pulls[-1]) * rate
            speeds[cell] = max(total / horizon * 1e9, 1e-3)  # a coarse clock may measure 0
    return speeds


def recorded(plan: Plan, folder: str | os.PathLike[str]) -> dict[Cell, float]:
    """Return nanoseconds per pull for the cells with units in a run folder, as measured on the machines that played them."""
    ledger = Ledger(Path(folder))
    done_keys = _parts(folder)
    seconds: defaultdict[Cell, float] = defaultdict(float)
    pulls: Counter[Cell] = Counter()
    for unit in plan.units if done_keys else ():
        if unit.key in done_keys and (took := ledger.seconds(unit)) > 0.0:
            seconds[unit.cell] += took
            pulls[unit.cell] += unit.pulls
    return {cell: took / pulls[cell] * 1e9 for cell, took in seconds.items()}


def _makespan(batches: Iterable[tuple[int, float, str]], workers: int, compiling: float) -> float:
    """Return the end time of the last unit, if each unit goes to the first free worker (of several, to the lowest number).

    Units of a batch are equal. Once all workers are within one unit of each other, each gets one unit per round. These rounds are
    counted, not simulated, so that a million units on a thousand workers take less than a second.
    """
    free = [(0.0, worker) for worker in range(workers)]  # a heap
    last = 0.0
    compiled: dict[str, set[int]] = {}  # for each policy, the workers that have compiled it
    for units, seconds, label in batches:
        ready = compiled.setdefault(label, set())
        while units:
            if last - free[0][0] < seconds and units >= workers and (compiling == 0.0 or len(ready) == workers):
                rounds, units = divmod(units, workers)
                free = [(time + rounds * seconds, worker) for time, worker in free]
                last += rounds * seconds
                continue
            time, worker = free[0]
            time += seconds
            if worker not in ready:
                ready.add(worker)
                time += compiling
            heapq.heapreplace(free, (time, worker))
            last = max(last, time)
            units -= 1
    return last


def _left(plan: Plan, cell: Cell, done_keys: set[str]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the batches of units of a cell that are not done, and the number of units that are done."""
    if not done_keys:
        size = plan.unit_replications(cell)
        full, rest = divmod(plan.replications, size)
        return tuple(batch for batch in ((full, size), (int(rest > 0), rest)) if batch[0]), 0
    batches: list[tuple[int, int]] = []
    done = 0
    for unit in replace(plan, cells=(cell,)).units:
        if unit.key in done_keys:
            done += 1
        elif batches and batches[-1][1] == unit.count:
            batches[-1] = (batches[-1][0] + 1, unit.count)
        else:
            batches.append((1, unit.count))
    return tuple(batches), done


def _parts(folder: str | os.PathLike[str] | None) -> set[str]:
    """Return the keys of the units that have a part, without checking the parts."""
    return set() if folder is None else {path.stem for path in (Path(folder) / "parts").glob("*.parquet")}


def _part_bytes(cell: Cell, count: int) -> int:
    """Return the approximate size of a part with ``count`` replications, including its file in ``times``."""
    problem, checkpoints = cell.played.problem, min(50, cell.played.horizon)
    about = json.dumps([cell.policy.to_dict(), problem_reference(problem)])
    return round(FRAME + len(about) + 10 * checkpoints + PACKED * count * 8 * (checkpoints + problem.arms))


def _prefixes(cell: Cell, seed: int, seconds: float) -> tuple[list[int], list[float]]:
    """Return the lengths of growing prefixes of the first replication, and the processor time of each."""
    horizon = cell.played.horizon
    ready = cell.policy.prepared(horizon)  # for the full horizon, even if the prefix is short
    pulls, taken = [0], [0.0]
    spent = 0.0
    while pulls[-1] < horizon and (len(pulls) == 1 or spent + GROWTH * taken[-1] <= seconds):
        length = min(horizon, FIRST if len(pulls) == 1 else GROWTH * pulls[-1])
        times = max(1, FIRST // length)  # short games are repeated
        result = simulate(ready, cell.played.problem, length, times, seed, threads=1, progress=False)
        spent += float(result.seconds[0])
        pulls.append(length)
        taken.append(max(taken[-1], float(result.seconds[0]) / times))
    return pulls, taken
