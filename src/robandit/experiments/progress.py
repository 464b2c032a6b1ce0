"""Progress of a run: what it reports, and the counts behind that."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from robandit.experiments.plan import Unit

TICK = 0.2  # seconds between two reports, and between two checks of units that other runs have locked


@dataclass(frozen=True)
class Compiling:
    """Reported before a policy is compiled, or loaded from the cache."""

    number: int
    total: int
    label: str


@dataclass(frozen=True)
class Playing:
    """Reported while units are played, about five times a second."""

    units: int  # in the plan
    units_done: int
    pulls: int  # in the plan
    pulls_done: int  # including those of earlier and other runs
    rate: float  # pulls per second of this run; 0 before its first unit is done
    failures: int = 0
    retries: int = 0  # how often a unit was tried again after a failure
    workers: int | None = None  # of the engine, if known; 0: it waits for some
    held: int = 0  # units locked by other runs, if no others are left

    @property
    def units_left(self) -> int:
        """Units that are neither done nor failed."""
        return self.units - self.units_done - self.failures

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds at this rate; None while the rate is unknown."""
        return (self.pulls - self.pulls_done) / self.rate if self.rate > 0.0 else None


Progress: TypeAlias = Callable[[Compiling | Playing], None]


@dataclass(frozen=True)
class Ended:
    """How a run finished with a unit; "found" means that another run had played it."""

    how: Literal["played", "found", "busy", "failed", "stopped"]
    damaged: Path | None = None
    retries: int = 0


class Tally:
    """Counts how units ended."""

    def __init__(self, units: list[Unit], todo: list[Unit]) -> None:
        """Start with all units of a plan, and those not done yet."""
        self.units, self.todo = len(units), len(todo)
        self.pulls = sum(unit.pulls for unit in units)
        self.pulls_done = self.pulls - sum(unit.pulls for unit in todo)
        self.pulls_played = 0
        self.ended: Counter[str] = Counter()
        self.damaged: list[Path] = []
        self.retries = 0
        self.workers: int | None = None
        self.held = 0
        self.start = time.monotonic()

    def add(self, unit: Unit, ended: Ended) -> None:
        """Count a unit that ended."""
        self.ended[ended.how] += 1
        if ended.how != "failed":
            self.pulls_done += unit.pulls
        if ended.how == "played":
            self.pulls_played += unit.pulls
        self.retries += ended.retries
        if ended.damaged is not None:
            self.damaged.append(ended.damaged)

    def state(self) -> Playing:
        """Return the counts for a progress report."""
        return Playing(
            units=self.units,
            units_done=self.units - self.todo + self.ended["played"] + self.ended["found"],
            pulls=self.pulls,
            pulls_done=self.pulls_done,
            rate=self.pulls_played / max(time.monotonic() - self.start, 1e-9),
            failures=self.ended["failed"],
            retries=self.retries,
            workers=self.workers,
            held=self.held,
        )
