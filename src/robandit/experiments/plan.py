"""The parts of an experiment: cells (a policy on a problem for a horizon) and units of work (some replications of a cell).

A unit is a pure function of its description: it gives the same bytes wherever, whenever and beside whatever else it runs.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
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
    policy: Policy  # with everything that it must know about this problem
    label: str  # the policy's name before it was told anything: the same on every problem

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
        policy, played = self.cell.policy, self.cell.played
        options: dict[str, Any] = {"first": self.first, "threads": 1, "progress": False, "stop": stop, "pool": pool}
        return simulate(policy, played.problem, played.horizon, self.count, self.seed, **options)


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
        return tuple(
            Unit(cell, self.seed, first, min(size, self.replications - first))
            for cell in self.cells
            for size in [self.unit_replications(cell)]
            for first in range(0, self.replications, size)
        )

    def unit_replications(self, cell: Cell) -> int:
        """Return the number of replications in a unit of this cell; the last unit may have fewer."""
        return max(1, self.unit_pulls // cell.played.horizon)

    @property
    def combinations(self) -> tuple[Cell | LeftOut, ...]:
        """Each policy with each problem, those left out at the end."""
        return (*self.cells, *self.left_out)

    @property
    def problems(self) -> tuple[Played, ...]:
        """The problems, in order."""
        return tuple(dict.fromkeys(cell.played for cell in self.cells))

    def called(self, played: Played) -> str:
        """Return the problem's name, with the horizon if the plan has several for it."""
        return f"{played.name} (T = {played.horizon:,})" if played.name in self._at_several else played.name

    @cached_property
    def _at_several(self) -> set[str]:
        everywhere = {(each.played.name, each.played.horizon) for each in self.combinations}
        return {name for name, count in Counter(name for name, _ in everywhere).items() if count > 1}


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

    Policies that cannot be told, or cannot play so many pulls, are left out, with the reason. ``notes`` go into the report.
    """
    cells: list[Cell] = []
    left_out: list[LeftOut] = []
    labels = [policy.name for policy in policies]
    for label in labels:
        if labels.count(label) > 1:
            same = "both would get the same rewards and make the same choices"
            raise InvalidInput(f"the policy {label} is given twice: {same}; leave one out")
    names: set[tuple[str, int]] = set()
    for played in problems:
        if (played.name, played.horizon) in names:
            both = f"{played.name!r} with horizon {played.horizon}"
            raise InvalidInput(f"two problems are named {both}: give one another name")
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
        reasons = [f"{each.label} is left out: {each.reason}" for each in left_out]
        raise NotApplicable("; ".join(reasons) or "nothing to play")
    return Plan(tuple(cells), tuple(left_out), seed, replications, notes=tuple(notes))
