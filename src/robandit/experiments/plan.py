"""The parts of an experiment: cells (a policy on a problem for a horizon) and units of work (some replications of a cell).

The result of a unit depends only on its description. It has the same bytes on every machine and in every order of units.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from robandit.diagnostics.reference import Reference
from robandit.errors import InvalidInput, NotApplicable
from robandit.kernel.cache import Kernel
from robandit.policies.base import Policy, check_policy_given
from robandit.policies.former import identity
from robandit.problems import Problem
from robandit.simulate.result import Result, check_problem, problem_reference
from robandit.simulate.simulation import name_clash, play_kernel, simulate
from robandit.validation import instance, integer, items_of, order, text
from robandit.wording import counted

PULLS = 5_000_000  # per unit: about half a second at 100 ns per pull
MOST_REPLICATIONS = 1_000_000


@dataclass(frozen=True)
class Played:
    """A problem with its name and the horizon of each run."""

    name: str
    problem: Problem
    horizon: int
    reference: Reference | None = field(default=None, compare=False)
    """What the record cost or earned, if the problem replays one."""

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Played: {self.name}, T = {self.horizon:,}>"

    @property
    def uniform_regret(self) -> float:
        """Mean regret of choosing arms at random."""
        return self.problem.uniform_regret(self.horizon)


@dataclass(frozen=True)
class Cell:
    """A policy on a problem."""

    played: Played
    policy: Policy  # with all parameters that it must know for this problem
    label: str  # the policy's name without these parameters, which is the same on every problem

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Cell: {self.label} on {self.played.name}, T = {self.played.horizon:,}>"

    def kernels(self) -> list[Kernel]:
        """Return the loop of the cell, to be compiled by any process."""
        horizon = self.played.horizon
        return [play_kernel(self.policy.prepared(horizon), self.played.problem, horizon)]


@dataclass(frozen=True)
class LeftOut:
    """A policy that is skipped on a problem, and the reason."""

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
        """The unit's name in a ledger: a hash of `describe`."""
        text = json.dumps(self.describe(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def describe(self) -> dict[str, Any]:
        """Return plain JSON data that determine the unit's results. Long records are replaced by their fingerprint."""
        played = self.cell.played
        return {
            "policy": identity(self.cell.policy.to_dict()),
            "problem": problem_reference(played.problem),
            "horizon": played.horizon,
            "seed": str(self.seed),
            "first": self.first,
            "count": self.count,
        }

    @property
    def pulls(self) -> int:
        """Total number of pulls."""
        return self.count * self.cell.played.horizon

    def run(self, *, stop: threading.Event | None = None, pool: ThreadPoolExecutor | None = None) -> Result:
        """Play the unit, on one thread unless a pool is given. The options are those of `robandit.simulate`."""
        policy, played = self.cell.policy, self.cell.played
        options: dict[str, Any] = {"first": self.first, "threads": 1, "progress": False, "stop": stop, "pool": pool}
        return simulate(policy, played.problem, played.horizon, self.count, self.seed, **options)


@dataclass(frozen=True)
class Plan:
    """All cells and units of an experiment."""

    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...]
    seed: int
    replications: int
    unit_pulls: int = field(default_factory=lambda: PULLS)
    """Pulls in a unit. Stored with the plan, so that a later version with another default still finds finished units."""
    notes: tuple[str, ...] = ()
    """Remarks about the data, for the report."""
    cautions: tuple[str, ...] = ()
    """What to read before any result, such as arms that changed with time."""

    def __repr__(self) -> str:
        """Return one line."""
        return (
            f"<Plan: {counted(len(self.cells), 'cell')}, {counted(self.replications, 'replication')}, seed {self.seed}>"
        )

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The units, the same on every machine. Each has about ``unit_pulls`` pulls and at least one replication."""
        return tuple(unit for cell in self.cells for unit in self.units_of(cell))

    def units_of(self, cell: Cell) -> Iterator[Unit]:
        """Yield the units of one cell."""
        size = max(1, self.unit_pulls // cell.played.horizon)
        for first in range(0, self.replications, size):
            yield Unit(cell, self.seed, first, min(size, self.replications - first))

    @property
    def combinations(self) -> tuple[Cell | LeftOut, ...]:
        """All pairs of a policy and a problem, first those that are played, then those that are skipped."""
        return (*self.cells, *self.left_out)

    @property
    def problems(self) -> tuple[Played, ...]:
        """The problems, in order."""
        return tuple(dict.fromkeys(cell.played for cell in self.cells))

    def called(self, played: Played) -> str:
        """Return the problem's name, followed by the horizon if the plan plays it for several horizons."""
        return f"{played.name} (T = {played.horizon:,})" if played.name in self._at_several else played.name

    @cached_property
    def _at_several(self) -> set[str]:
        everywhere = {(each.played.name, each.played.horizon) for each in self.combinations}
        return {name for name, count in Counter(name for name, _ in everywhere).items() if count > 1}


def check_plan(plan: Any) -> None:
    """Raise `InvalidInput` unless this is a plan."""
    instance(plan, Plan, "plan", "a plan", hint="make one with planned(problems, policies, ...)")


def planned(
    problems: Iterable[Played],
    policies: Sequence[Policy],
    *,
    replications: int,
    seed: int,
    eps: float | None = None,
    notes: Sequence[str] = (),
    cautions: Sequence[str] = (),
) -> Plan:
    """Return the plan of each policy on each problem. Each policy gets exactly the parameters that it must know.

    A policy is skipped, with the reason, if a parameter has no value or the horizon is too long. ``cautions`` are shown before
    any result, and ``notes`` go into the report.
    """
    problems = items_of(problems, "problems", "problems, each a Played")
    policies = items_of(policies, "policies", "policies")
    for i, each in enumerate(problems):
        instance(each, Played, f"problems[{i}]", "a Played", hint="such as Played(name, problem, horizon)")
        check_problem(each.problem)
        text(each.name, "name", owner="Played")
        integer(each.horizon, "horizon", 1, owner="Played")
    for policy in policies:
        check_policy_given(policy)
    seed, replications = integer(seed, "seed", 0, None), integer(replications, "replications", 1, MOST_REPLICATIONS)
    notes = [text(note, "note") for note in items_of(notes, "notes", "strings")]
    cautions = [text(caution, "caution") for caution in items_of(cautions, "cautions", "strings")]
    if eps is not None:
        eps = order(eps, owner="planned")
    cells: list[Cell] = []
    left_out: list[LeftOut] = []
    if (clash := name_clash(policies)) is not None:
        raise InvalidInput(clash[1])
    names: set[tuple[str, int]] = set()
    for played in problems:
        if (played.name, played.horizon) in names:
            both = f"{played.name!r} with horizon {played.horizon}"
            raise InvalidInput(f"two problems are named {both}: rename one of them")
        names.add((played.name, played.horizon))
        played.problem.check_horizon(played.horizon)
        for policy in policies:
            try:
                informed = policy.informed_by(played.problem, eps=eps if "eps" in policy.facts.knows else None)
                informed.prepared(played.horizon)
                cells.append(Cell(played, informed, policy.name))
            except NotApplicable as reason:
                left_out.append(LeftOut(played, policy.name, str(reason)))
    if not cells:
        reasons = [f"{each.label} is skipped: {each.reason}" for each in left_out]
        raise NotApplicable("; ".join(reasons) or "nothing to play")
    return Plan(tuple(cells), tuple(left_out), seed, replications, notes=tuple(notes), cautions=tuple(cautions))
