"""What a plan costs before it is played: processor time, bytes, and the time on so many workers.

A unit takes ``overhead + replications (REPLICATION + horizon x seconds per pull)`` of its worker, and ``client`` of the process
that hands units out and writes what comes back. Units are handed out in the plan's order, each to the worker that is free first;
this is simulated, not approximated. Machines are taken to be like the one where seconds per pull were measured.
"""

from __future__ import annotations

import heapq
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from robandit.errors import InvalidInput
from robandit.experiments.ledger import Ledger
from robandit.experiments.plan import Cell, Plan
from robandit.problems import Problem
from robandit.simulate.simulation import simulate

__all__ = ["CellCost", "Cost", "better_cut", "cost", "measure", "recorded"]

# In seconds, on a machine with two cores and a local Dask cluster. `make bench` measures the first two, and the whole.
OVERHEAD = 0.01  # of a worker for each unit: receiving it, making its part, sending that back
CLIENT = 0.01  # of the client for each unit: handing it out, checking its part and bringing it to the disk
REPLICATION = 250e-6  # for each replication: its random streams, its state and its turn among the threads

# Of a part's size, as Polars writes it. Regret and pulls are compressed to 6 to 43 % (laws, horizons and policies differ).
FRAME = 2000
PACKED = 0.2

FIRST = 1000  # pulls in the first prefix that is measured
GROWTH = 4  # of each prefix over the one before


@dataclass(frozen=True)
class CellCost:
    """What a cell costs."""

    cell: Cell
    ns_per_pull: float
    batches: tuple[tuple[int, int], ...]
    """What is left, in the plan's order: so many units of so many replications."""
    done: int
    """Units that need not be played any more."""
    bytes: int
    """Of the parts of what is left."""

    @property
    def units(self) -> int:
        """How many are left."""
        return sum(units for units, _ in self.batches)

    @property
    def pulls(self) -> int:
        """How many are left."""
        return sum(units * count for units, count in self.batches) * self.cell.played.horizon

    @property
    def seconds(self) -> float:
        """Processor time of what is left, without what each unit costs beside its replications."""
        return sum(units * self.playing(count) for units, count in self.batches)

    def playing(self, count: int) -> float:
        """Processor time of that many replications."""
        return count * (REPLICATION + self.cell.played.horizon * self.ns_per_pull * 1e-9)


@dataclass(frozen=True)
class Cost:
    """What is left of a plan costs. `cost` makes one."""

    cells: tuple[CellCost, ...]
    """Those that share their units with an earlier one have none."""
    overhead: float
    client: float
    compiling: float

    @property
    def units(self) -> int:
        """How many are left."""
        return sum(each.units for each in self.cells)

    @property
    def done(self) -> int:
        """Units that need not be played any more."""
        return sum(each.done for each in self.cells)

    @property
    def pulls(self) -> int:
        """How many are left."""
        return sum(each.pulls for each in self.cells)

    @property
    def bytes(self) -> int:
        """Of the parts of what is left, within a factor of 3."""
        return sum(each.bytes for each in self.cells)

    @property
    def work(self) -> float:
        """Seconds of all workers together, compiling excluded."""
        return sum(each.seconds + each.units * self.overhead for each in self.cells)

    @property
    def cpu_hours(self) -> float:
        """The same in hours, and those of the client."""
        return (self.work + self.units * self.client) / 3600.0

    @cached_property
    def longest(self) -> tuple[float, Cell | None]:
        """Seconds of the longest unit, and whose it is: no number of workers makes less of it."""
        found: tuple[float, Cell | None] = (0.0, None)
        for each in self.cells:
            for _, count in each.batches:
                seconds = self.overhead + each.playing(count)
                if seconds > found[0]:
                    found = seconds, each.cell
        return found

    def least(self, workers: int) -> float:
        """Seconds that no order of the units can beat."""
        _check_workers(workers)
        return max(self.work / workers, self.longest[0], self.units * self.client)

    def time_on(self, workers: int) -> float:
        """Seconds on that many workers of one thread each.

        It lies between `least` and ``work / workers + longest`` (with ``compiling`` for each policy, and once more), or is what the
        client needs for all units, if that is longer. More workers take no longer, unless each of them compiles.
        """
        _check_workers(workers)
        batches = (
            (units, self.overhead + each.playing(count), each.cell.label)
            for each in self.cells
            for units, count in each.batches
        )
        return max(_makespan(batches, min(workers, max(self.units, 1)), self.compiling), self.units * self.client)

    def limit(self, workers: int) -> str:
        """What keeps more workers from helping much: "client", "longest unit", or "" if that is nothing."""
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
    """What is left of a plan costs.

    Parameters
    ----------
    plan
        What is to be played. Units that two cells share count once, as in `robandit.experiments.run`.
    ns_per_pull
        Of each cell, as `measure` and `recorded` give it; None: `recorded` where the folder has it, else `measure`.
    folder
        A run folder of this plan: what is done there costs nothing any more.
    overhead
        Seconds of a worker for each unit, beside its replications.
    client
        Seconds of the client for each unit.
    compiling
        Seconds that a worker spends when it meets a policy for the first time; 0 where workers find compiled code in their cache.

    Examples
    --------
    >>> import robandit as rb
    >>> from robandit.experiments import Played, planned
    >>> problem = rb.problems.gaussian(means=[0.0, -0.5])
    >>> plan = planned([Played("two arms", problem, horizon=10**7)], [rb.UCB1()], replications=10**6, seed=1)
    >>> found = cost(plan, ns_per_pull={plan.cells[0]: 36.0}, overhead=0.0, client=0.0)
    >>> found.units, round(found.cpu_hours), round(found.time_on(1000))
    (1000000, 100, 360)
    """
    for name, value in (("overhead", overhead), ("client", client), ("compiling", compiling)):
        if not 0.0 <= value < math.inf:
            raise InvalidInput(f"{name} = {value!r} must be a number of seconds >= 0")
    if ns_per_pull is None:
        known = {} if folder is None else recorded(plan, folder)
        ns_per_pull = known | measure(plan, known=known)
    there = _parts(folder)
    seen: set[Any] = set()
    cells = []
    for cell in plan.cells:
        speed = ns_per_pull.get(cell)
        if speed is None or not 0.0 < speed < math.inf:
            raise InvalidInput(
                f"ns_per_pull of {cell.label} on {plan.called(cell.played)} is {speed!r}: it must be a number > 0; measure gives it"
            )
        same = (cell.policy, cell.played.problem, cell.played.horizon)
        batches, done = ((), 0) if same in seen else _left(plan, cell, there)
        seen.add(same)
        size = sum(units * _part_bytes(cell, count) for units, count in batches)
        cells.append(CellCost(cell, float(speed), batches, done, size))
    return Cost(tuple(cells), overhead, client, compiling)


def better_cut(plan: Plan, ns_per_pull: Mapping[Cell, float], workers: int, **options: Any) -> tuple[int, float] | None:
    """The ``unit_pulls`` that would save most time on that many workers, and the time; None: none saves a tenth.

    The options are those of `cost`. A run folder that is there already keeps the units it has.
    """
    now = cost(plan, ns_per_pull=ns_per_pull, **options).time_on(workers)
    cuts = [plan.unit_pulls * 2**k // 2**6 for k in range(13)]  # a 64th to 64 times
    found = []
    for pulls in (each for each in cuts if each >= 1):
        other = cost(replace(plan, unit_pulls=pulls), ns_per_pull=ns_per_pull, **options)
        found.append((other.least(workers), pulls, other))
    best = None
    for least, pulls, other in sorted(found, key=lambda each: each[:2]):
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
    """Nanoseconds of a pull in each cell, from a short play of each policy on each problem here.

    Prefixes of the first replication are played, each four times as long as the one before, until the time is used up. Beyond the
    last one, pulls are taken to cost what they did in its last three quarters. So it is an estimate: a policy whose pulls become
    dearer later costs more. Processor time is measured; compiling is not.

    Parameters
    ----------
    plan
        What is to be played.
    seconds
        Of all measurements together, about; each has at least ``FIRST`` pulls.
    known
        Cells that need not be measured.
    track
        Wraps the list of measurements, to show progress.
    """
    if not 0.0 < seconds < math.inf:
        raise InvalidInput(f"seconds = {seconds!r} must be a number > 0")
    pairs: dict[tuple[Any, Problem], list[Cell]] = {}
    for cell in plan.cells:
        if cell not in (known or {}):
            pairs.setdefault((cell.policy, cell.played.problem), []).append(cell)
    found: dict[Cell, float] = {}
    for cells in track(list(pairs.values())):
        longest = max(cells, key=lambda cell: cell.played.horizon)
        pulls, taken = _prefixes(longest, plan.seed, seconds / len(pairs))
        rate = (taken[-1] - taken[-2]) / (pulls[-1] - pulls[-2])
        for cell in cells:
            horizon = cell.played.horizon
            total = float(np.interp(horizon, pulls, taken)) + max(0, horizon - pulls[-1]) * rate
            found[cell] = max(total / horizon * 1e9, 1e-3)  # a clock that ticks slowly may say 0
    return found


def recorded(plan: Plan, folder: str | os.PathLike[str]) -> dict[Cell, float]:
    """Nanoseconds of a pull in those cells of a plan of which units were played into a run folder, wherever that was."""
    ledger = Ledger(Path(folder))
    there = _parts(folder)
    seconds: dict[Cell, float] = {}
    pulls: dict[Cell, int] = {}
    for unit in plan.units if there else ():
        if unit.key in there:
            took = ledger.seconds(unit)
            if took > 0.0:
                seconds[unit.cell] = seconds.get(unit.cell, 0.0) + took
                pulls[unit.cell] = pulls.get(unit.cell, 0) + unit.pulls
    return {cell: took / pulls[cell] * 1e9 for cell, took in seconds.items()}


# --- schedules ------------------------------------------------------------------------------------------------------


def _makespan(batches: Iterable[tuple[int, float, str]], workers: int, compiling: float) -> float:
    """When the last unit ends, if each goes to the worker that is free first; of several, to that with the lowest number.

    Units of a batch are equal. As soon as no worker is behind by a unit or more, each gets one unit in every round, and rounds are
    counted, not played: a million units on a thousand workers take less than a second.
    """
    free = [(0.0, worker) for worker in range(workers)]  # a heap
    last = 0.0
    warm: dict[str, set[int]] = {}
    for units, seconds, label in batches:
        met = warm.setdefault(label, set())
        while units:
            if last - free[0][0] < seconds and units >= workers and (compiling == 0.0 or len(met) == workers):
                rounds, units = divmod(units, workers)
                free = [(time + rounds * seconds, worker) for time, worker in free]
                last += rounds * seconds
                continue
            time, worker = free[0]
            time += seconds
            if compiling > 0.0 and worker not in met:
                met.add(worker)
                time += compiling
            heapq.heapreplace(free, (time, worker))
            last = max(last, time)
            units -= 1
    return last


def _left(plan: Plan, cell: Cell, there: set[str]) -> tuple[tuple[tuple[int, int], ...], int]:
    """The units of a cell that are not there, put together, and how many are."""
    if not there:
        size = plan.unit_replications(cell)
        full, rest = divmod(plan.replications, size)
        return tuple(batch for batch in ((full, size), (int(rest > 0), rest)) if batch[0]), 0
    batches: list[tuple[int, int]] = []
    done = 0
    for unit in replace(plan, cells=(cell,)).units:
        if unit.key in there:
            done += 1
        elif batches and batches[-1][1] == unit.count:
            batches[-1] = (batches[-1][0] + 1, unit.count)
        else:
            batches.append((1, unit.count))
    return tuple(batches), done


def _parts(folder: str | os.PathLike[str] | None) -> set[str]:
    """The keys of the units whose parts are there. Whether they are damaged is seen when they are read."""
    return set() if folder is None else {path.stem for path in (Path(folder) / "parts").glob("*.parquet")}


def _part_bytes(cell: Cell, count: int) -> int:
    """About how large the part of so many replications is, with its file in ``times``."""
    played = cell.played
    marks = min(50, played.horizon)
    problem = played.problem
    about = json.dumps([cell.policy.to_dict(), problem.fingerprint if problem.bulky else problem.to_dict()])
    return round(FRAME + len(about) + 10 * marks + PACKED * count * 8 * (marks + played.problem.arms))


def _prefixes(cell: Cell, seed: int, seconds: float) -> tuple[list[int], list[float]]:
    """Pulls, and the processor time that they took from the start, for growing prefixes of the first replication."""
    horizon = cell.played.horizon
    ready = cell.policy.prepared(horizon)  # told the whole horizon, however short the prefix
    pulls, taken = [0], [0.0]
    spent = 0.0
    while pulls[-1] < horizon and (len(pulls) == 1 or spent + GROWTH * taken[-1] <= seconds):
        length = min(horizon, FIRST if len(pulls) == 1 else GROWTH * pulls[-1])
        times = max(1, FIRST // length)  # a short game is repeated
        result = simulate(ready, cell.played.problem, length, times, seed, threads=1, progress=False)
        spent += float(result.seconds[0])
        pulls.append(length)
        taken.append(max(taken[-1], float(result.seconds[0]) / times))
    return pulls, taken


def _check_workers(workers: int) -> None:
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise InvalidInput(f"workers = {workers!r} must be a whole number >= 1")
