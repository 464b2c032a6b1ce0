"""The parts of an experiment: cells (a policy on a problem for a horizon) and units of work (some replications of a cell).

A unit is a pure function of its description: it gives the same bytes wherever, whenever and beside whatever else it runs.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from robandit.errors import InvalidInput, NotApplicable
from robandit.policies.base import Policy
from robandit.problems import Problem
from robandit.simulate.result import Result, problem_reference
from robandit.simulate.simulation import compiled_play, simulate

PULLS = 5_000_000  # in a unit: about half a second at 100 ns each
MOST_REPLICATIONS = 1_000_000


@dataclass(frozen=True)
class Played:
    """A problem with the name and the horizon of its games."""

    name: str
    problem: Problem
    horizon: int

    @property
    def uniform_regret(self) -> float:
        """Mean regret of choosing arms at random."""
        return float(self.horizon * self.problem.gaps.mean())


@dataclass(frozen=True)
class Cell:
    """A policy on a problem."""

    played: Played
    policy: Policy
    """With everything that it must know about this problem."""
    label: str
    """The policy's name before it was told anything: the same on every problem."""

    def compile(self) -> None:
        """Compile its loop, or load it from the cache."""
        horizon = self.played.horizon
        compiled_play(self.policy.prepared(horizon), self.played.problem, horizon)


@dataclass(frozen=True)
class LeftOut:
    """A policy that does not play a problem, and the reason."""

    played: Played
    label: str
    reason: str


@dataclass(frozen=True)
class Unit:
    """Replications ``first`` to ``first + count - 1`` of a cell."""

    cell: Cell
    seed: int
    first: int
    count: int

    @cached_property
    def key(self) -> str:
        """Its name in a ledger: a hash of everything its numbers depend on."""
        text = json.dumps(self.describe(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def describe(self) -> dict[str, Any]:
        """Return everything its numbers depend on as plain JSON data; for a long record, the fingerprint."""
        played = self.cell.played
        return {
            "policy": self.cell.policy.to_dict(),
            "problem": problem_reference(played.problem),
            "horizon": played.horizon,
            "seed": str(self.seed),
            "first": self.first,
            "count": self.count,
        }

    @property
    def pulls(self) -> int:
        """Number of pulls."""
        return self.count * self.cell.played.horizon

    def run(self, *, stop: threading.Event | None = None, pool: ThreadPoolExecutor | None = None) -> Result:
        """Play it, on one thread unless a pool is given; the options are those of `robandit.simulate`."""
        played = self.cell.played
        return simulate(
            self.cell.policy,
            played.problem,
            played.horizon,
            self.count,
            self.seed,
            first=self.first,
            threads=1,
            progress=False,
            stop=stop,
            pool=pool,
        )


@dataclass(frozen=True)
class Plan:
    """Everything to be played."""

    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...]
    seed: int
    replications: int
    unit_pulls: int = field(default_factory=lambda: PULLS)
    """Pulls in a unit. Stored with the plan, so that a later version with another default still finds finished units."""
    notes: tuple[str, ...] = ()
    """Remarks about the data, for the report."""

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The work, cut in the same way on every machine: about ``unit_pulls`` pulls each, and at least one replication."""
        units = []
        for cell in self.cells:
            size = self.unit_replications(cell)
            units += [
                Unit(cell, self.seed, first, min(size, self.replications - first))
                for first in range(0, self.replications, size)
            ]
        return tuple(units)

    def unit_replications(self, cell: Cell) -> int:
        """Return the number of replications in a unit of this cell; the last unit may have fewer."""
        return max(1, self.unit_pulls // cell.played.horizon)

    @property
    def problems(self) -> tuple[Played, ...]:
        """The problems, in order."""
        return tuple(dict.fromkeys(cell.played for cell in self.cells))

    def called(self, played: Played) -> str:
        """Return the problem's name, with the horizon if the plan has several for it."""
        return f"{played.name} (T = {played.horizon:,})" if played.name in self._at_several else played.name

    @cached_property
    def _at_several(self) -> set[str]:
        horizons: dict[str, set[int]] = {}
        for played in [*self.problems, *(each.played for each in self.left_out)]:
            horizons.setdefault(played.name, set()).add(played.horizon)
        return {name for name, several in horizons.items() if len(several) > 1}


def planned(
    problems: Iterable[Played],
    policies: Sequence[Policy],
    *,
    replications: int,
    seed: int,
    eps: float | None = None,
    notes: Sequence[str] = (),
) -> Plan:
    """Return the plan of each policy on each problem, told exactly what it must know.

    Policies that cannot be told, or cannot play for so long, are left out, with the reason. ``notes`` are remarks about the data,
    for the report.
    """
    cells: list[Cell] = []
    left_out: list[LeftOut] = []
    labels = [policy.name for policy in policies]
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidInput(
                f"the policy {label} is given twice: both would get the same rewards and make the same choices; leave one out"
            )
    names: set[tuple[str, int]] = set()
    for played in problems:
        if (played.name, played.horizon) in names:
            raise InvalidInput(
                f"two problems are named {played.name!r} with horizon {played.horizon}: give one another name"
            )
        names.add((played.name, played.horizon))
        played.problem.check_horizon(played.horizon)
        for policy, label in zip(policies, labels, strict=True):
            try:
                informed = policy.informed_by(played.problem, eps=eps if "eps" in policy.facts.knows else None)
                informed.prepared(played.horizon)
                cells.append(Cell(played, informed, label))
            except NotApplicable as reason:
                left_out.append(LeftOut(played, label, str(reason)))
    if not cells:
        raise NotApplicable(
            "; ".join(f"{each.label} is left out: {each.reason}" for each in left_out) or "nothing to play"
        )
    return Plan(tuple(cells), tuple(left_out), seed, replications, notes=tuple(notes))
