"""The plan of `robandit replay`: policies on recorded rewards, and what has to be said about these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from robandit.diagnostics.resolution import Resolution, resolution
from robandit.errors import InvalidInput
from robandit.experiments.plan import Plan, Played, planned
from robandit.experiments.spec import asked_policies, asked_replications
from robandit.kernel.types import Floats
from robandit.problems import InOrder, Logged, Problem, recorded_problem
from robandit.recorded import Incomplete, Log, Records, Samples, Table
from robandit.wording import counted

__all__ = ["Mode", "replayed", "table_unasked"]

Mode = Literal["bootstrap", "in-order", "rejection"]
MOST_PULLS = 50_000  # by default: as many as `robandit compare` makes
UNASKED = 2_000_000  # rows that are held in memory and put in order without being asked to
KEPT = 0.1  # of the rows of an arm: if thinning keeps fewer, it is said
MIXED = 0.2  # of the changes of arm that a log in random order has: with fewer it is said

_HOW = {
    "bootstrap": "each pull draws one of the arm's recorded rewards at random. Right if rewards neither depend on each other nor "
    "change with time.",
    "in-order": "time by time, since every arm has a reward at every time: what each policy would have got. Regret is what the arm "
    "with the best mean got more. Replication 1 starts at the first time, the others at random times, and go round.",
    "rejection": "a choice waits for the next row in which that arm was logged; rows passed over are lost.",
}
_TOLD = (
    "Policies that must be told moments are told those of the record, and UCB-V its range: nobody knew them when it was made. UCB1 "
    "takes 1 for the range."
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
    table = records.table() if "in-order" in modes else None
    if not modes:
        table = table_unasked(records, sum(samples.counts.values()))
    log = records.log() if records.propensity is not None or "rejection" in modes else None
    notes = [_read(records, samples), *([] if modes else _left_out(records, table))]
    found = []
    for mode in modes or _possible(log, table):
        problem, pulls, note = _played(mode, records, samples, table, log, horizon, quick=quick, asked=mode in modes)
        found.append(Played(f"{name}, {mode}", problem, pulls))
        notes.append(note)
    return planned(
        found, chosen, replications=count, seed=seed, notes=(*notes, _TOLD, str(_resolution(samples, table, log)))
    )


def table_unasked(records: Records, rows: int) -> Table | Incomplete | None:
    """The reward of every arm at every time, for those who can do without; None: no column says when, or too many rows."""
    if records.time is None or rows > UNASKED:
        return None
    try:
        return records.table()
    except InvalidInput as error:  # times that cannot be read
        return Incomplete(str(error))


def _resolution(samples: Mapping[str, Floats], table: Table | Incomplete | None, log: Log | None) -> Resolution:
    """Whether the record tells which arm is best: time by time, or weighed by propensity, where that is possible."""
    if isinstance(table, Table) and table.arms == tuple(samples):  # bad times may have cost an arm its rows
        return resolution(samples, table=table.rewards)
    if log is not None and log.propensities is not None:
        rows = {arm: log.actions == i for i, arm in enumerate(log.arms)}
        weights = {arm: 1.0 / log.propensities[where] for arm, where in rows.items()}
        return resolution({arm: log.rewards[where] for arm, where in rows.items()}, weights=weights)
    return resolution(samples)


def _read(records: Records, samples: Samples) -> str:
    """What was read, and what was not."""
    rows = sum(samples.counts.values())
    said = f"{records.source}: {rows:,} rewards of {len(samples)} arms"
    said += f", minus the column {records.reward!r}" if records.negated else ""
    said += f"; LEFT OUT: {samples.bad}" if samples.bad.count else ""
    return f"{said}."


def _possible(log: Log | None, table: Table | Incomplete | None) -> list[Mode]:
    modes: list[Mode] = ["bootstrap"]
    modes += ["in-order"] if isinstance(table, Table) else []
    modes += ["rejection"] if log is not None else []
    return modes


def _left_out(records: Records, table: Table | Incomplete | None) -> list[str]:
    """Why the other ways are not taken."""
    if isinstance(table, Table):
        return []
    if table is None:
        why = "no column says when"
        if records.time is not None:
            why = f"more than {UNASKED:,} rows are put in order only if asked (--mode in-order)"
    else:
        why = table.reason
    said = f"Not in order, since {why.rstrip('.')}."
    if records.propensity is None:
        said += " For a log of choices in their order there is --mode rejection."
    return [said]


def _played(
    mode: Mode,
    records: Records,
    samples: Samples,
    table: Table | Incomplete | None,
    log: Log | None,
    horizon: int | None,
    *,
    quick: bool,
    asked: bool,
) -> tuple[Problem, int, str]:
    """A way of replaying, its horizon, and what is to be said about it."""
    problem: Problem
    weighed = log is not None and log.propensities is not None
    said = _HOW[mode]
    cut = False
    if mode == "bootstrap":
        problem, most = recorded_problem(samples), sum(map(len, samples.values()))
        if log is not None and weighed:
            problem = Problem(_logged(log).laws, log.arms)
            said += " Each is as likely as 1 / propensity, as if each arm had been logged at random."
        elif not samples.whole:
            said += f" Here from a random sample of {most:,} of them."
    elif mode == "in-order":
        if not isinstance(table, Table):
            assert table is not None
            raise InvalidInput(
                f"{records.source} cannot be replayed in order: {table.reason}. Take --mode bootstrap or rejection"
            )
        problem, most = InOrder(table.rewards, table.arms), len(table.rewards)
        cut = horizon is not None and horizon > most
        if cut and asked:
            raise InvalidInput(
                f"horizon = {horizon} is beyond the {most:,} times of {records.source}: ask for fewer pulls"
            )
    else:
        assert log is not None
        problem = _logged(log)
        most = problem.fewest
        said += _LOGGED[weighed]
        said += _cautions(log)
        if horizon is not None and horizon > most:
            said += f" The rarest arm has only {counted(most, 'reward')}, so that rows may be used again."
    pulls = most if cut else horizon or max(1, min(most, MOST_PULLS) // (10 if quick else 1))
    of = f", since the record ends there (not {horizon:,})" if cut else ""
    return problem, pulls, f"{mode.capitalize()}, {counted(pulls, 'pull')}{of}: {said}"


def _logged(log: Log) -> Logged:
    return Logged(log.actions, log.rewards, log.arms, log.propensities)


def _cautions(log: Log) -> str:
    """What makes a rejection replay worth little."""
    said, n = "", len(log.actions)
    for arm, name in enumerate(log.arms if log.propensities is not None else ()):
        chances = log.propensities[log.actions == arm]  # type: ignore[index]
        kept = float(np.sum(chances.min() / chances))
        if kept < KEPT * len(chances):
            said += f" BUT THAT KEEPS ONLY {kept:,.0f} OF {len(chances):,} ROWS OF {name!r}:"
            said += f" one has the propensity {chances.min():.3g}."
    shares = np.bincount(log.actions) / n
    if np.count_nonzero(np.diff(log.actions)) < MIXED * n * (1.0 - float(shares @ shares)):
        said += " BUT ITS ARMS COME IN LONG RUNS: a choice waits until its arm's turn, and the log is read many times."
    return said
