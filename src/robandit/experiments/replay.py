"""The plan of `robandit replay`: policies on recorded rewards, and what has to be said about these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from robandit.diagnostics.resolution import resolution
from robandit.errors import InvalidInput
from robandit.experiments.plan import Plan, Played, planned
from robandit.experiments.spec import asked_policies, asked_replications
from robandit.kernel.types import Floats
from robandit.problems import InOrder, Logged, Problem, recorded_problem
from robandit.recorded import Incomplete, Records, Samples, Table
from robandit.recorded.source import MOST_ROWS

__all__ = ["Mode", "replayed"]

Mode = Literal["bootstrap", "in-order", "rejection"]
MOST_PULLS = 50_000  # by default: as many as `robandit compare` makes
MIXED = 0.2  # of the changes of arm that a log in random order has: with fewer it is said

_HOW = {
    "bootstrap": "each pull draws one of the arm's recorded rewards at random. Right if rewards neither depend on each other nor "
    "change with time.",
    "in-order": "time by time, since every arm has a reward at every time: what each policy would have got. Regret is what the arm "
    "with the best mean got more. Replication 1 starts at the first time, the others at random times, and go round.",
    "rejection": "a choice waits for the next row in which that arm was logged; rows passed over are lost.",
}
_TOLD = (
    "Policies that must be told moments or a range are told those of the record, which nobody knew when it was made."
)
_LOGGED = {
    True: " Rows are thinned by their propensities, as if each arm had been logged at random.",
    False: " Right if the logged choices did not depend on what made the rewards larger or smaller.",
}


def replayed(
    records: Records,
    policies: Sequence[str] = (),
    *,
    name: str = "recorded",
    modes: Sequence[Mode] = (),
    horizon: int | None = None,
    replications: int | None = None,
    seed: int = 1,
    quick: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> Plan:
    """Policies on recorded rewards; by default all that learn, in every way that the record allows.

    Parameters
    ----------
    records
        From `robandit.recorded.open_records`.
    policies
        Such as ``AdaRUCB`` or ``AdaRUCB(bonus="tight")``.
    name
        What the record is called in tables and reports.
    modes
        ``"bootstrap"``: rewards are drawn from each arm's record. ``"in-order"``: row by row, for records that have a reward of
        every arm at every time. ``"rejection"``: the log is read in its order, and rows with another arm than the policy's choice
        are passed over. None given: bootstrap, in order if the record allows it, and rejection if it has propensities.
    horizon
        Pulls in each replication; by default as many as there are rewards (times, for in-order; rewards of the rarest arm, for
        rejection), and at most 50,000.
    replications
        How often each policy starts anew; by default 50.
    seed
        Same seed, same numbers.
    quick
        A tenth of the pulls and 20 replications, unless given.
    progress
        Called with the rows read so far, and how many there are if that is known.
    """
    count = asked_replications(horizon, replications, seed, quick=quick)
    for mode in modes:
        if mode not in get_args(Mode) or modes.count(mode) > 1:
            raise InvalidInput(
                f"modes = {list(modes)!r}: each is one of {', '.join(get_args(Mode))}, and none is given twice"
            )
    chosen = asked_policies(policies)
    samples = records.samples(progress=progress)
    if len(samples) < 2:
        raise InvalidInput(
            f"{records.source} has rewards of one arm only, {next(iter(samples))!r}: a replay needs two or more to choose from. "
            f"Arms are the values of the column {records.arm!r}; another column is named with arm= (--arm)"
        )
    table = None
    if "in-order" in modes or (not modes and records.time is not None and sum(samples.counts.values()) <= MOST_ROWS):
        table = records.table()
    notes = [_read(records, samples)]
    if not modes:
        notes += _left_out(records, table)
    found = []
    for mode in modes or _possible(records, table):
        problem, pulls, note = _played(mode, records, samples, table, horizon, quick=quick, asked=mode in modes)
        found.append(Played(f"{name}, {mode}", problem, pulls))
        notes.append(note)
    notes.append(_TOLD)
    names = tuple(samples)  # bad times may have cost an arm its rows
    notes.append(
        str(resolution(samples, table=table.rewards if isinstance(table, Table) and table.arms == names else None))
    )
    return planned(found, chosen, replications=count, seed=seed, notes=tuple(notes))


def _read(records: Records, samples: Samples) -> str:
    """What was read, and what was not."""
    rows = sum(samples.counts.values())
    said = f"{records.source}: {rows:,} rewards of {len(samples)} arms"
    said += f", minus the column {records.reward!r}" if records.negated else ""
    said += f"; LEFT OUT: {samples.bad}" if samples.bad.count else ""
    if not samples.whole:
        said += f"; a random sample of {sum(map(len, samples.values())):,} of them is replayed"
    return f"{said}."


def _possible(records: Records, table: Table | Incomplete | None) -> list[Mode]:
    modes: list[Mode] = ["bootstrap"]
    modes += ["in-order"] if isinstance(table, Table) else []
    modes += ["rejection"] if records.propensity is not None else []
    return modes


def _left_out(records: Records, table: Table | Incomplete | None) -> list[str]:
    """Why the other ways are not taken."""
    if isinstance(table, Table):
        return []
    if table is None:
        why = "no column says when" if records.time is None else f"more than {MOST_ROWS:,} rows are not held in memory"
    else:
        why = table.reason
    said = f"Not in order, since {why}."
    if records.propensity is None:
        said += " For a log of choices in their order there is --mode rejection."
    return [said]


def _played(
    mode: Mode,
    records: Records,
    samples: Mapping[str, Floats],
    table: Table | Incomplete | None,
    horizon: int | None,
    *,
    quick: bool,
    asked: bool,
) -> tuple[Problem, int, str]:
    """A way of replaying, its horizon, and what is to be said about it."""
    problem: Problem
    if mode == "bootstrap":
        problem, most = recorded_problem(samples), sum(map(len, samples.values()))
    elif mode == "in-order":
        if not isinstance(table, Table):
            assert table is not None
            raise InvalidInput(
                f"{records.source} cannot be replayed in order: {table.reason}. Take --mode bootstrap or rejection"
            )
        problem, most = InOrder(table.rewards, table.arms), len(table.rewards)
        if horizon is not None and horizon > most:
            if asked:
                raise InvalidInput(
                    f"horizon = {horizon} is beyond the {most:,} times of {records.source}: ask for fewer pulls"
                )
            horizon = most
    else:
        log = records.log()
        problem = Logged(log.actions, log.rewards, log.arms, log.propensities)
        most = problem.fewest
    pulls = horizon or max(1, min(most, MOST_PULLS) // (10 if quick else 1))
    said = f"{mode.capitalize()}, {pulls:,} pulls: {_HOW[mode]}"
    if mode == "rejection":
        said += _LOGGED[records.propensity is not None]
        if pulls > most:
            said += f" The rarest arm has only {most:,} rewards, so that rows may be used again."
        shares = np.bincount(log.actions) / len(log.actions)
        if np.count_nonzero(np.diff(log.actions)) < MIXED * len(log.actions) * (1.0 - float(shares @ shares)):
            said += (
                " BUT ITS ARMS COME IN LONG RUNS: a choice waits until its arm's turn, and the log is read many times."
            )
    return problem, pulls, said
