"""The plan of `robandit replay`: policies on recorded rewards, with notes about the record."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from robandit.diagnostics.costs import sign_question
from robandit.diagnostics.profile import Profile
from robandit.diagnostics.reference import Reference, log_reference, random_reference
from robandit.diagnostics.resolution import Resolution, omission, resolution, too_few_to_compare
from robandit.diagnostics.timeline import Drift, Timeline, Verdict, timed_log
from robandit.diagnostics.words import words
from robandit.errors import InvalidInput, formatted
from robandit.experiments.compare_plan import asked_numbers, asked_policies
from robandit.experiments.plan import Plan, Played, planned
from robandit.kernel.types import Floats
from robandit.objectives import MEAN, Objective, objective_from, value_of
from robandit.policies import UCB1, UCBV, Policy
from robandit.problems import InOrder, Logged, Problem, recorded_problem, with_objective
from robandit.recorded import Incomplete, Log, Records, Samples, Table
from robandit.validation import flag, function, instance, invalid, items_of, text
from robandit.wording import counted

Mode = Literal["bootstrap", "in-order", "rejection"]
MaybeTable: TypeAlias = Table | Incomplete | None
MOST_PULLS = 50_000  # by default, as in `robandit compare`
UNASKED = 2_000_000  # longer records are sorted in memory only on request
KEPT = 0.1  # a note warns if thinning keeps a smaller share of an arm's rows
MIXED = 0.2  # a note warns if the arm changes less often than this share of the changes in a random order

_HOW = {
    "bootstrap": "each pull draws one of the arm's recorded rewards at random. This is valid if rewards do not depend on each "
    "other or on time.",
    "in-order": "each policy plays the recorded times one by one, since every arm has a reward at every time. Regret is the "
    "difference to the arm with the best mean. Replication 1 starts at the first time, others at random times; they wrap.",
    "rejection": "a choice waits for the next row in which that arm was logged. The rows in between are skipped.",
}
_MIXED_LAWS = "Results of the mode bootstrap mix the rewards from before and after the changes."
_MIXED_REGRET = (
    "The mode rejection reads the log in its order, but its regret has the means of the whole log, which mix what arms gave before "
    "and after the changes. So it does not say what a policy would have cost or earned."
)
_COMPARED = {
    "log": "Policies are compared with the log, whose rows count as the choices that were made. Intervals are for other logs of "
    "this kind. They do not cover values beyond those recorded.",
    "random": "The record has a value of every arm at every time, so it does not say which arm was chosen. Policies are compared "
    "with choosing arms at random. Intervals do not cover values beyond those recorded.",
}
_THINNED = " Rows are thinned by their propensities, as if each arm had been logged at random."
_UNTHINNED = " This is valid if the logged choices did not depend on anything that also changed the rewards."


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
    objective: str = "mean",
    progress: Callable[[int, int | None], None] | None = None,
) -> Plan:
    """Return the plan of policies on recorded rewards. The default is the policies of `robandit compare`, in all possible modes.

    Parameters
    ----------
    records
        The record that `robandit.recorded.open_records` returns.
    policies
        Policies in the notation of a spec, such as ``AdaRUCB`` or ``AdaRUCB(bonus="tight")``; ``["all"]`` means every policy
        that learns. Empty: about ten, as in `robandit compare`.
    name
        The name of the record in tables and reports.
    modes
        ``"bootstrap"`` draws rewards from each arm's record. ``"in-order"`` plays a record that has a reward of every arm at
        every time row by row. ``"rejection"`` reads a log in its order and skips rows with another arm than the policy's choice.
        Empty: bootstrap, in-order if the record allows it, and rejection if it has propensities.
    horizon
        Pulls in each replication. The default is the number of rewards (in-order: of times; rejection: of the rarest arm's
        rewards), but at most 50,000.
    replications
        Independent runs of each policy; by default 50.
    seed
        Same seed, same numbers.
    quick
        A tenth of the pulls and 20 replications, unless given.
    objective
        ``"p95"``: regret is that of a quantile, and the mode in-order, whose regret is a sum of rewards, is not played.
        ``"within:2.0"``: the rewards are replaced by costs, 1 beyond the limit and 0 within it.
    progress
        Called with the number of rows read so far and the total number of rows, if known.
    """
    quick = flag(quick, "quick")
    horizon, replications, seed = asked_numbers(horizon, replications, seed, quick=quick)
    instance(records, Records, "records", "records", hint="make them with robandit.recorded.open_records")
    name = text(name, "name")
    function(progress, "progress", "a function that takes two numbers")
    modes = items_of(modes, "modes", "names")
    for mode in modes:
        if not isinstance(mode, str) or mode not in get_args(Mode) or modes.count(mode) > 1:
            raise invalid("modes", list(modes), f"a list without repetitions of {', '.join(get_args(Mode))}")
    aim = objective_from(objective)
    chosen, more = asked_policies(policies, aim)
    recorded = records.samples(progress=progress)
    if len(recorded) < 2:
        raise InvalidInput(
            f"{records.source} has rewards of one arm only, {next(iter(recorded))!r}, so nothing is decided yet: a replay needs at "
            f"least two. Arms are the values of the column {records.arm!r}; choose another column with arm= (--arm)"
        )
    few = too_few_to_compare(recorded.counts)
    samples = recorded.without(few)
    table = records.table() if "in-order" in modes else None
    equal = len(set(samples.counts.values())) == 1  # then the rows may be a table, not a log of choices
    if not modes or (table is None and equal):
        table = table_unasked(records, sum(samples.counts.values()))
    rows = sum(samples.counts.values())
    weighted_or_asked = records.propensity is not None or "rejection" in modes
    whole_log = records.log(times=rows <= UNASKED) if weighted_or_asked else None
    log = None if whole_log is None else whole_log.without(few)
    possible: list[Mode] = ["bootstrap"]
    possible += ["in-order"] if isinstance(table, Table) and aim.q is None else []
    possible += ["rejection"] if log is not None else []
    chosen_modes = modes or possible
    cautions, drift = first_notes(records, recorded, table, whole_log, rows, chosen_modes)
    cautions += unplayed(few, recorded)
    notes = [read_note(records, recorded), *([] if modes else _left_out(records, table, drift))]
    minimize = records.minimize
    if aim != MEAN:
        notes += [f"{value_of(arm, samples[arm], aim, minimize=minimize)}." for arm in samples]
        name = f"{name}, {aim.text}"
    if aim.limit is not None:
        minimize = True
        samples, table, log = _beyond(aim, records, samples, table, log)
    played = []
    references = _References(records, samples, table, log, few)
    for mode in chosen_modes:
        problem, pulls, note = _played(mode, records, samples, table, log, horizon, quick, minimize)
        if aim.q is not None:
            problem = with_objective(problem, aim.text)
        if mode in modes and horizon is not None and pulls < horizon:
            beyond = f"horizon = {horizon} is beyond the {pulls:,} times of {records.source}"
            raise InvalidInput(f"{beyond}: ask for fewer pulls")
        # Under drift the regret of rejection does not determine the rewards that the policy got (`_MIXED_REGRET`).
        reference = None if (drift and mode == "rejection") or aim.q is not None else references.of(mode)
        if reference is not None and aim.limit is not None:
            reference = replace(reference, column="")  # a share has no unit
        played.append(Played(f"{name}, {mode}", problem, pulls, reference))
        notes.append(note)
    verdict = [str(Verdict(_resolution(recorded, table, whole_log, minimize), drift))] if aim == MEAN else []
    notes += [*references.notes, *told(chosen), *verdict, *more]
    return planned(played, chosen, replications=replications, seed=seed, notes=notes, cautions=cautions)


def _beyond(
    aim: Objective, records: Records, samples: Samples, table: MaybeTable, log: Log | None
) -> tuple[Samples, MaybeTable, Log | None]:
    """Return the record with a cost of 1 for each reward beyond the limit, and of 0 for the others."""

    limit = aim.limit
    assert limit is not None

    def costs(values: Floats) -> Floats:
        return (values > limit if records.minimize else values < limit).astype(np.float64)

    indicators = {arm: costs(values) for arm, values in samples.items()}
    samples = Samples(indicators, samples.counts, 0.0, samples.bad, samples.filtered, samples.notes)
    if isinstance(table, Table):
        table = replace(table, rewards=costs(table.rewards))
    return samples, table, None if log is None else replace(log, rewards=costs(log.rewards))


def told(policies: Sequence[Policy]) -> list[str]:
    """Return the note about what the policies know of the record, or nothing if they know nothing."""
    inner = [getattr(policy, "of", policy) for policy in policies]
    moments = any({"u", "v", "kappa"}.intersection(policy.facts.knows) for policy in inner)
    ranges = any(isinstance(policy, UCBV) for policy in inner)
    notes = []
    if moments:
        notes.append("Policies that need moments get the moments of the record, which were unknown when it was made.")
    if ranges:
        notes.append("UCB-V gets the range of the record, which was unknown when it was made.")
    if any(isinstance(policy, UCB1) for policy in inner):
        notes.append("UCB1 assumes a range of 1.")
    return [" ".join(notes)] if notes else []


def table_unasked(records: Records, rows: int) -> MaybeTable:
    """Return the table of rewards by time and arm; None without a time column, or if there are too many rows to sort."""
    if records.time is None or rows > UNASKED:
        return None
    try:
        return records.table()
    except InvalidInput as error:  # unreadable times
        return Incomplete(str(error))


def first_notes(
    records: Records, samples: Samples, table: MaybeTable, log: Log | None, rows: int, modes: Sequence[Mode]
) -> tuple[list[str], Drift | None]:
    """Return what to read before any result, whether values are costs and which arms changed, and these changes."""
    minimize = records.minimize
    # Samples may miss the only value that is negative.
    question = sign_question(Profile(x, minimize) for x in samples.values()) if samples.least >= 0.0 else ""
    notes = [*([question] if question else []), *samples.notes]
    order: Timeline | None = None
    if isinstance(table, Table):
        order = Timeline.of_table(table.rewards, table.arms, table.times, table.records)
    elif log is not None and (records.time is not None or "rejection" in modes):  # rejection reads rows in this order
        order = Timeline.of_log(log, weighted=True)
    elif log is None:
        sorted_log = timed_log(records, rows, UNASKED)
        notes += [sorted_log] if isinstance(sorted_log, str) else []
        order = Timeline.of_log(sorted_log) if isinstance(sorted_log, Log) else None
    if order is None:
        return notes, None
    drift = order.drift(minimize=minimize)
    if not drift:
        return [*notes, *drift.lines], drift
    mixed = {"bootstrap": _MIXED_LAWS, "rejection": _MIXED_REGRET}
    return [*notes, *drift.lines, *(mixed[mode] for mode in modes if mode in mixed)], drift


class _References:
    """What the record cost or earned, for each mode. Each is computed once."""

    def __init__(
        self, records: Records, samples: Samples, table: MaybeTable, log: Log | None, few: Sequence[str]
    ) -> None:
        self._records, self._samples, self._table, self._log = records, samples, table, log
        self._without = formatted(few[0]) if len(few) == 1 else counted(len(few), "arm") if few else ""
        self._known: dict[str, Reference] = {}

    def of(self, mode: Mode) -> Reference:
        """Return the reference of a mode, for the arms of its problem in their order."""
        log, table = self._log, self._table
        weighted = log is not None and log.propensities is not None
        source = "log" if mode == "rejection" or (mode == "bootstrap" and weighted) else "samples"
        if isinstance(table, Table) and not weighted:
            same = table.arms == (tuple(self._samples) if source == "samples" else log.arms if log else ())
            source = "table" if same else source
        if mode == "in-order":
            source = "table"
        if source not in self._known:
            self._known[source] = replace(self._computed(source), without=self._without)
        return self._known[source]

    def _computed(self, source: str) -> Reference:
        log, column = self._log, self._records.reward
        if source == "table":
            assert isinstance(self._table, Table)
            return random_reference(self._table.rewards, self._table.arms, column=column)
        if source == "samples":
            return log_reference(self._samples, counts=self._samples.counts, column=column)
        assert log is not None
        rewards, weights = _by_arm(log)
        return log_reference(rewards, weights=weights, column=column)

    @property
    def notes(self) -> list[str]:
        """The references of the modes so far, and what they assume."""
        return [_COMPARED[kind] for kind in dict.fromkeys(each.kind for each in self._known.values())]


def _by_arm(log: Log) -> tuple[dict[str, Floats], dict[str, Floats] | None]:
    """Return the rewards of each arm and, if propensities are known, their weights."""
    rows = {arm: log.actions == i for i, arm in enumerate(log.arms)}
    rewards = {arm: log.rewards[where] for arm, where in rows.items()}
    if log.propensities is None:
        return rewards, None
    return rewards, {arm: 1.0 / log.propensities[where] for arm, where in rows.items()}


def _resolution(samples: Mapping[str, Floats], table: MaybeTable, log: Log | None, minimize: bool) -> Resolution:
    """Return whether the record shows which arm is best. Compare rewards at equal times, or weigh by propensity, if possible."""
    # Rows with bad times are dropped. This may drop all rows of an arm.
    if isinstance(table, Table) and table.arms == tuple(samples):
        return resolution(samples, table=table.rewards, minimize=minimize)
    if log is not None and log.propensities is not None:
        rewards, weights = _by_arm(log)
        return resolution(rewards, weights=weights, minimize=minimize)
    return resolution(samples, minimize=minimize)


def read_note(records: Records, samples: Samples) -> str:
    """Return a note about the rows that were read and the rows that were skipped."""
    note = f"{records.source}: {sum(samples.counts.values()):,} {words(records.minimize).many} of {len(samples)} arms"
    note += f", the column {records.reward!r}, minimised" if records.minimize else ""
    note += f"; SKIPPED: {samples.bad}" if samples.bad.count else ""
    note += f"; {samples.filtered}" if samples.filtered is not None else ""
    return f"{note}."


def unplayed(few: Sequence[str], recorded: Samples) -> list[str]:
    """Return cautions about the arms that are not played, because they have too few rows."""
    if not few:
        return []
    them = "it" if len(few) == 1 else "them"
    note = f"No policy plays {them}, and all totals and regrets are without {them}."
    named = omission({arm: recorded.counts[arm] for arm in few})
    return [f"{named} {note}"]


def _left_out(records: Records, table: MaybeTable, drift: Drift | None) -> list[str]:
    """Return a note about the modes that are not played."""
    if isinstance(table, Table):
        return []
    reason = "there is no time column"
    if table is not None:
        reason = table.reason
    elif records.time is not None:
        reason = f"more than {UNASKED:,} rows are sorted only on request (--mode in-order)"
    note = f"The mode in-order is skipped: {reason.rstrip('.')}."
    if records.unused_time is not None:
        name = records.unused_time
        note += f" The column {name!r} looks like a time: to read rows in its order, add --time {shlex.quote(name)}."
    if records.propensity is None and not drift:
        note += " For a log of choices in their order, use --mode rejection."
    return [note]


def _played(
    mode: Mode,
    records: Records,
    samples: Samples,
    table: MaybeTable,
    log: Log | None,
    horizon: int | None,
    quick: bool,
    minimize: bool,
) -> tuple[Problem, int, str]:
    """Return the problem of a mode, its horizon, and a note about it."""
    problem: Problem
    weighted = log is not None and log.propensities is not None
    one = words(records.minimize).one
    note = _HOW[mode].replace("reward", one)
    cut = False
    if mode == "bootstrap":
        problem, most = recorded_problem(samples, minimize), sum(map(len, samples.values()))
        if log is not None and weighted:
            problem = Problem(_logged(log, minimize).laws, log.arms, minimize)
            note += " Each has the weight 1 / propensity, as if each arm had been logged at random."
        elif not samples.whole:
            note += f" They are a random sample of {most:,} {one}s."
    elif mode == "in-order":
        if not isinstance(table, Table):
            assert table is not None
            reason = f"{records.source} cannot be replayed in order: {table.reason}"
            raise InvalidInput(f"{reason}. Use --mode bootstrap or rejection")
        problem, most = InOrder(table.rewards, table.arms, minimize), len(table.rewards)
        cut = horizon is not None and horizon > most
    else:
        assert log is not None
        problem = _logged(log, minimize)
        most = problem.fewest
        note += (_THINNED if weighted else _UNTHINNED).replace("reward", one) + _cautions(log)
        if horizon is not None and horizon > most:
            note += f" The rarest arm has only {counted(most, one)}, so rows may be used again."
    pulls = most if cut else horizon or max(1, min(most, MOST_PULLS) // (10 if quick else 1))
    of = f", since the record ends there (not {horizon:,})" if cut else ""
    return problem, pulls, f"{mode.capitalize()}, {counted(pulls, 'pull')}{of}: {note}"


def _logged(log: Log, minimize: bool) -> Logged:
    return Logged(log.actions, log.rewards, log.arms, log.propensities, minimize)


def _cautions(log: Log) -> str:
    """Return warnings about properties of a log that make a rejection replay unreliable."""
    warnings, n = "", len(log.actions)
    for arm, name in enumerate(log.arms if log.propensities is not None else ()):
        chances = log.propensities[log.actions == arm]  # type: ignore[index]
        kept = float(np.sum(chances.min() / chances))
        if kept < KEPT * len(chances):
            warnings += f" BUT THIS KEEPS ONLY {kept:,.0f} OF {len(chances):,} ROWS OF {name!r}:"
            warnings += f" one row has the propensity {chances.min():.3g}."
    shares = np.bincount(log.actions) / n
    if np.count_nonzero(np.diff(log.actions)) < MIXED * n * (1.0 - float(shares @ shares)):
        warnings += (
            " BUT THE LOG HAS LONG RUNS OF ONE ARM: a choice waits for the next run, and the log is read many times."
        )
    return warnings
