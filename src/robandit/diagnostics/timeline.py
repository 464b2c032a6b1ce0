"""Rewards of all arms in order of time: which arms changed, and whether the best arm is the same before and after.

`robandit.drift.record` tests each arm. "Before" ends at the first change, and "since" begins at the last one. If an arm changed,
the whole record mixes several laws. So an answer is settled only if it also holds since the last change, and no other arm was
significantly better before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from robandit.diagnostics.resolution import Omitted, Resolution, resolution
from robandit.diagnostics.words import words
from robandit.drift.record import LEAST, Change, can_be_named, changed_arms
from robandit.errors import InvalidInput, formatted
from robandit.kernel.types import Floats, Ints
from robandit.wording import counted, percent

if TYPE_CHECKING:
    from robandit.recorded import Log, Records

LEVEL = 0.05  # probability of naming any arm if none changed
NAMED = 10  # changed arms with a sentence

RECENT = "Use the recent part of the record"
WHAT_TO_DO = (
    "A live bandit with drift='restart' forgets the past after a change. If the record has a "
    "reward of every arm at every time, compare policies in order of time: robandit replay with --mode in-order."
)


@dataclass(frozen=True, eq=False)
class Timeline:
    """The rewards of all arms in order of time: ``arms[actions[t]]`` paid ``rewards[t]``."""

    arms: tuple[str, ...]
    actions: Ints
    rewards: Floats
    times: NDArray[Any] | None = None
    """The time of each reward; None if it is unknown."""
    propensities: Floats | None = None
    paired: bool = False
    """Whether every arm has one reward at every time; the arms then alternate in their order."""
    records: Records | None = None
    """The table that has the rewards; None if it is unknown."""

    @classmethod
    def of_log(cls, log: Log, *, weighted: bool = False) -> Timeline:
        """Return the timeline of a log. Its propensities are used only if it is ``weighted``."""
        weights = log.propensities if weighted else None
        return cls(log.arms, log.actions, log.rewards, log.times, weights, records=log.records)

    @classmethod
    def of_table(
        cls, rewards: Floats, arms: tuple[str, ...], times: NDArray[Any] | None = None, records: Records | None = None
    ) -> Timeline:
        """Return the timeline of the rewards of all arms at all times, of shape (times, arms)."""
        count, width = rewards.shape
        repeated = None if times is None else np.repeat(times, width)
        actions = np.tile(np.arange(width), count)
        return cls(arms, actions, rewards.ravel(), repeated, paired=True, records=records)

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        return f"<Timeline: {counted(len(self), 'reward')} of {counted(len(self.arms), 'arm')}>"

    def rows_of(self, arm: int) -> Ints:
        """Return the positions of an arm's rewards."""
        return np.flatnonzero(self.actions == arm)

    def time(self, row: int) -> str:
        """Return the time of a row as text: a date, a date and time, or a number; empty if it is unknown."""
        if self.times is None:
            return ""
        value = self.times[row]
        if not isinstance(value, np.datetime64):
            return f"{value:.15g}" if isinstance(value, (int, float, np.number)) else str(value)
        day, clock = np.datetime_as_string(value, unit="s").split("T")
        return day if clock == "00:00:00" else f"{day} {clock.removesuffix(':00')}"

    def short_time(self, row: int) -> str:
        """Return the time of a row for an axis: without seconds, or without a clock if the record lasts for weeks."""
        text = self.time(row)
        if self.times is None or not isinstance(self.times[row], np.datetime64) or " " not in text:
            return text or f"row {row + 1:,}"
        days = (self.times[-1] - self.times[0]) / np.timedelta64(1, "D")
        return text[:10] if days > 10.0 else text[5:16] if days > 1.0 else text[11:]

    def place(self, row: int) -> str:
        """Return the time of a row, or its number if no time is known. Numbers count from 1, in order of time."""
        return self.time(row) or f"row {row + 1:,} of {len(self):,}"

    def named_time(self, row: int) -> str:
        """Return the time of a row for a sentence. A number gets the name of its column, since it may look like a year."""
        text = self.time(row)
        if not text or self.times is None or isinstance(self.times[row], np.datetime64):
            return text
        column = "time" if self.records is None or self.records.time is None else self.records.time
        return f"{column[:200]} = {text}"

    def part(self, first: int, last: int) -> Timeline:
        """Return the rewards from one position to another, without the last."""
        times, weights = (None if x is None else x[first:last] for x in (self.times, self.propensities))
        actions, rewards = self.actions[first:last], self.rewards[first:last]
        return replace(self, actions=actions, rewards=rewards, times=times, propensities=weights)

    def resolution(self, *, minimize: bool) -> Resolution:
        """Compare the arms. Those without rewards are left out."""
        if self.paired:
            columns = self.rewards.reshape(-1, len(self.arms))
            return resolution(dict(zip(self.arms, columns.T, strict=True)), table=columns, minimize=minimize)
        rows = {arm: each for i, arm in enumerate(self.arms) if len(each := self.rows_of(i))}
        weights = None
        if self.propensities is not None:
            weights = {arm: 1.0 / self.propensities[each] for arm, each in rows.items()}
        samples = {arm: self.rewards[each] for arm, each in rows.items()}
        found = resolution(samples, weights=weights, minimize=minimize)
        absent = (Omitted(arm, 0, math.nan) for arm in self.arms if arm not in rows)
        return replace(found, left_out=(*found.left_out, *absent))

    def drift(self, *, minimize: bool = False, level: float = LEVEL) -> Drift:
        """Test each arm for a change, and compare the arms before the first and since the last change."""
        rows = {arm: self.rows_of(i) for i, arm in enumerate(self.arms)}
        changes = changed_arms({arm: self.rewards[each] for arm, each in rows.items()}, level)
        places = [int(rows[each.arm][each.changed - 1]) for each in changes]
        changes = tuple(
            msgspec.structs.replace(each, time=self.named_time(row)) for each, row in zip(changes, places, strict=True)
        )
        tested = sum(len(each) >= LEAST for each in rows.values())
        short = sum(not can_be_named(len(each), tested, level) for each in rows.values())
        if not changes:
            return Drift((), tested, level, short)
        width = len(self.arms) if self.paired else 1
        first, last = (place // width * width for place in (min(places), max(places)))
        return Drift(
            changes,
            tested,
            level,
            short,
            before=self.part(0, first).resolution(minimize=minimize),
            since=self.part(last, len(self)).resolution(minimize=minimize),
            first=self.named_time(first) or self.place(first),
            last=self.named_time(last) or self.place(last),
            recent=len(self) - last,
            rows=tuple(places),
        )


@dataclass(frozen=True)
class Drift:
    """The arms that changed with time, and the comparison of all arms before and after. Its truth value is whether any changed."""

    changes: tuple[Change, ...]
    tested: int
    """The number of arms with enough rewards for the test."""
    level: float
    short: int = 0
    """The number of arms with so few rewards that no change of theirs would be named."""
    before: Resolution | None = None
    """The comparison before the first change; None if nothing changed."""
    since: Resolution | None = None
    """The comparison since the last change; None if nothing changed."""
    first: str = ""
    """The time or the row of the first change."""
    last: str = ""
    """The same of the last change."""
    recent: int = 0
    """The number of rewards since the last change."""
    rows: tuple[int, ...] = ()
    """The positions of the changes in the record, in the order of ``changes``."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __repr__(self) -> str:
        return f"<Drift: {len(self.changes)} of {counted(self.tested, 'arm')} changed>"

    @property
    def best_changed(self) -> bool:
        """Whether another arm is best since the last change, and one of the two is significantly better in its part."""
        if self.before is None or self.since is None or self.before.best == self.since.best:
            return False
        omitted = {each.arm for each in (*self.before.left_out, *self.since.left_out)}
        if omitted & {self.before.best, self.since.best}:  # too few values in the other part to be the best there
            return False
        return _excludes(self.before, self.since.best) or _excludes(self.since, self.before.best)

    @property
    def lines(self) -> list[str]:
        """Sentences on the arms that changed, the surest first, on what to do, and on arms that could not be tested."""
        arms = counted(self.short, "arm")
        short = [f"Changes with time cannot be seen in {arms} with few values."] if self.short else []
        if self.before is None:
            return short
        noun = words(self.before.minimize).one
        chance = f"a false alarm for any arm has probability {percent(self.level)}"
        lines = [f"{len(self.changes)} of {counted(self.tested, 'arm')} changed with time ({chance})."]
        ordered = sorted(self.changes, key=lambda change: change.p_value)
        lines += [f"A{change.sentence(noun)[1:]}." for change in ordered[:NAMED]]  # arm ... -> Arm ...
        lines += [f"{len(ordered) - NAMED} more arms changed."] * (len(ordered) > NAMED)
        return [*lines, *short, f"{RECENT}, since {self.last}.", WHAT_TO_DO]


def _excludes(compared: Resolution, arm: Any) -> bool:
    return any(each.excluded and each.arm == arm for each in compared.others)


@dataclass(frozen=True)
class Verdict:
    """Whether the best arm of a record is known: the comparison of the whole record, unless drift contradicts it."""

    whole: Resolution
    drift: Drift | None = None
    """None if changes were not tested."""

    def __repr__(self) -> str:
        return f"<Verdict: {formatted(self.whole.best)}, {self.word}>"

    @property
    def settled(self) -> bool:
        """Whether the best arm is significantly better in the whole record, and also since the last change."""
        if not self.drift:
            return self.whole.resolved
        return self.whole.resolved and not self.drift.best_changed and self._holds_since

    @property
    def word(self) -> str:
        """The verdict in one or two words."""
        if self.settled or not self.whole.resolved:
            return "significant" if self.settled else "not significant"
        return "not settled"

    @cached_property
    def _holds_since(self) -> bool:
        since = self.drift.since if self.drift else None
        if since is None or not since.resolved or since.best != self.whole.best:
            return False
        compared = {each.arm for each in self.whole.others}
        return not any(each.arm in compared for each in since.left_out)

    def __str__(self) -> str:
        drift, whole = self.drift, self.whole
        if not drift or not whole.others or drift.before is None or drift.since is None:
            return str(whole)
        best, kind = formatted(whole.best), words(whole.minimize)
        since = f"Since {drift.last} ({counted(drift.recent, kind.one)}): {_lowered(str(drift.since))}"
        omission = "" if drift.since.left_out else whole.omission
        if drift.best_changed:
            before, after = drift.before, drift.since
            among = " of the arms with enough values" if before.left_out or after.left_out else ""
            return (
                f"NOT settled: the best arm changed. Before {drift.first}, {formatted(before.best)} has the {kind.best} mean"
                f"{among}, {before.mean:.4g}; since {drift.last}, {formatted(after.best)}, {after.mean:.4g}. Means over the whole "
                f"record ({best}: {whole.mean:.4g}) mix both. {since} {omission}"
            ).strip()
        if self.settled:
            return f"{whole} Arms changed, but {best} is also significantly better since {drift.last}."
        if whole.resolved:
            return (
                f"NOT settled: over the whole record, {best} has the {kind.best} mean, {whole.mean:.4g}, and is significantly "
                f"better, but arms changed. {since} {omission}"
            ).strip()
        return f"{whole} Arms changed. {since}"


def _lowered(text: str) -> str:
    return text if text.startswith("NOT") else f"{text[0].lower()}{text[1:]}"


def timed_log(records: Records, rows: int, most: int) -> Log | str | None:
    """Return the log of records with its times, None without a column of times, or a sentence on why it is not sorted."""
    if records.time is None:
        return None
    untested = f"Changes with time were not tested: the column {records.time!r}"
    if rows > most:
        return f"{untested} has {rows:,} rows, and more than {most:,} are not sorted."
    try:
        return records.log(times=True)
    except InvalidInput as error:
        return f"{untested} cannot be read as times. {error}."
