"""A table of recorded rewards, which can be read as a summary, samples, a log or a complete table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robandit.errors import InvalidInput
from robandit.kernel.types import Floats, Ints
from robandit.recorded.cleaning import Pass, Progress
from robandit.recorded.columns import times_of
from robandit.recorded.gather import Codes, Lowest, Sample, Sums
from robandit.recorded.notes import name_questions, negative_costs
from robandit.recorded.reader import Reader
from robandit.recorded.summary import EXTREMES, ArmRecord, BadRows, Recorded
from robandit.recorded.times import Clock, looks_like_time
from robandit.recorded.where import Condition, Filtered
from robandit.validation import flag, integer
from robandit.wording import counted

if TYPE_CHECKING:
    import polars as pl

SAMPLE = 131_072  # rewards of one arm that a summary keeps
SAMPLES_TOTAL = 1 << 22  # rewards of all arms that a summary keeps: 32 MB, and 96 MB while they are chosen
MOST_ROWS = 60_000_000  # rows that can be sorted by time, in 4 GB of memory
BYTES = 65  # peak memory per sorted row; benchmarks/recorded.py measures 50 to 62


class Samples(dict[str, Floats]):
    """A dictionary from arms to rewards in the order of the file: all, or a uniform random sample without replacement.

    `counts` maps each arm to its number of rewards in the file, `least` is the smallest of these, and `whole` is True if none is
    missing. `bad`, `filtered` and `notes` are those of `Recorded`.
    """

    def __init__(
        self,
        rewards: Mapping[str, Floats],
        counts: Mapping[str, int],
        least: float,
        bad: BadRows,
        filtered: Filtered | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(rewards)
        self.counts = dict(counts)
        self.whole = all(rewards[arm].size == n for arm, n in counts.items())
        self.least = least
        self.bad = bad
        self.filtered = filtered
        self.notes = tuple(notes)

    def without(self, arms: Sequence[str]) -> Samples:
        """Return the same without some arms."""
        kept = {arm: n for arm, n in self.counts.items() if arm not in arms}
        return Samples({arm: self[arm] for arm in kept}, kept, self.least, self.bad, self.filtered, self.notes)


@dataclass(frozen=True, eq=False)
class Table:
    """The reward of every arm at every time, `rewards[t, arm]`, sorted by time."""

    times: NDArray[Any]
    arms: tuple[str, ...]
    rewards: Floats
    bad: BadRows = field(default_factory=BadRows)
    records: Records | None = None

    def __repr__(self) -> str:
        return f"<Table: {len(self.times):,} times of {counted(len(self.arms), 'arm')}>"


@dataclass(frozen=True)
class Incomplete:
    """The reason why the records are not a `Table`."""

    reason: str


@dataclass(frozen=True, eq=False)
class Log:
    """Choices sorted by time. `arms[actions[t]]` paid `rewards[t]` at `times[t]`; its probability was `propensities[t]`."""

    arms: tuple[str, ...]
    actions: Ints
    rewards: Floats
    propensities: Floats | None
    bad: BadRows = field(default_factory=BadRows)
    times: NDArray[Any] | None = None
    records: Records | None = None
    features: pl.DataFrame | None = None

    def __repr__(self) -> str:
        weighted = "" if self.propensities is None else ", with propensities"
        return f"<Log: {len(self.rewards):,} rows of {counted(len(self.arms), 'arm')}{weighted}>"

    def without(self, arms: Sequence[str]) -> Log:
        """Return the same without the rows of some arms."""
        if not arms:
            return self
        kept = [i for i, arm in enumerate(self.arms) if arm not in arms]
        rows = np.isin(self.actions, kept)
        times, chances = (None if each is None else each[rows] for each in (self.times, self.propensities))
        actions = np.searchsorted(kept, self.actions[rows])
        names = tuple(self.arms[i] for i in kept)
        some: dict[str, Any] = {"arms": names, "actions": actions, "rewards": self.rewards[rows], "times": times}
        some["features"] = None if self.features is None else self.features.filter(rows)
        return replace(self, **some, propensities=chances)


class Records:
    """A table with one recorded reward per row; see `open_records`.

    `arm`, `reward`, `time` and `propensity` are the names of the columns that are used; None for a column that does not exist.
    `columns` names all, and `source` is the name of the table in messages.
    """

    def __init__(
        self,
        reader: Reader,
        roles: Mapping[str, str],
        skip_bad: bool,
        minimize: bool = False,
        where: Condition | None = None,
        join_names: bool = False,
    ) -> None:
        self._reader = reader
        self._roles = dict(roles)
        self.source = reader.source
        self.columns = reader.columns
        self.repeated = reader.repeated
        self.minimize = minimize
        self.skip_bad = skip_bad
        self.where = where
        self.join_names = join_names
        self.arm = roles["arm"]
        self.reward = roles["reward"]
        self.time = roles.get("time")
        self.propensity = roles.get("propensity")

    def __repr__(self) -> str:
        role = "cost" if self.minimize else "reward"
        return f"<Records: {self.source}, arm {self.arm!r}, {role} {self.reward!r}>"

    @cached_property
    def unused_time(self) -> str | None:
        """The first column that looks like a time (`robandit.recorded.times.looks_like_time`), if no column of times is named."""
        if self.time is not None:
            return None
        first = self._reader.first_rows()
        names = [name for name in first.columns if name not in self._roles.values()]
        return next((name for name in names if looks_like_time(name, first[name])), None)

    def summary(self, progress: Progress | None = None) -> Recorded:
        """Read all rows once, in bounded memory, and keep per arm the counts, the mean, a sample and the extremes.

        The sample is uniform without replacement, of at most 131,072 rewards per arm and 4,194,304 of all arms. The same table
        gives the same sample.

        Parameters
        ----------
        progress
            Called with the number of rows done and the number of all rows (None if unknown).
        """
        rows = Pass(self, (), progress)
        chosen = Sample(SAMPLE, SAMPLES_TOTAL)
        low, high = Lowest(EXTREMES), Lowest(EXTREMES)
        sums = Sums()
        for batch in rows:
            arms = len(rows.arms)
            sums.add(batch.codes, batch.rewards, arms)
            chosen.add(batch.codes, batch.priorities, batch.rewards, arms)
            low.add(batch.codes, batch.rewards, batch.rewards, arms)
            high.add(batch.codes, -batch.rewards, batch.rewards, arms)
        means, zeros = sums.means(), sums.zeros.tolist()
        samples, smallest, largest = (kept.take(len(rows.arms)) for kept in (chosen, low, high))
        records = []
        for i, n in enumerate(rows.n.tolist()):
            if not n:  # all rows of this arm were bad
                continue
            mean = math.fsum(samples[i].tolist()) / n if samples[i].size == n else means[i]
            smallest[i].sort()
            largest[i][::-1].sort()
            records.append(ArmRecord.of(rows.arms[i], n, zeros[i], mean, samples[i], smallest[i], largest[i]))
        records.sort(key=lambda record: record.arm)
        about = rows.bad, self.source, self.minimize, rows.filtered, self._notes(rows)
        return Recorded(tuple(records), int(rows.n.sum()), *about)

    def samples(self, most: int = 1 << 20, progress: Progress | None = None) -> Samples:
        """Return the rewards of each arm, or a uniform random sample of at most `most` of them (16,777,216 of all arms)."""
        most = integer(most, "most", 1)
        rows = Pass(self, (), progress)
        chosen, least = Sample(most, 1 << 24), math.inf
        for batch in rows:
            least = min(least, float(batch.rewards.min(initial=math.inf)))
            chosen.add(batch.codes, batch.priorities, batch.rewards, len(rows.arms))
        rewards = dict(zip(rows.arms, chosen.take(len(rows.arms)), strict=True))
        counts = {arm: n for arm, n in sorted(zip(rows.arms, rows.n.tolist(), strict=True)) if n}
        return Samples({arm: rewards[arm] for arm in counts}, counts, least, rows.bad, rows.filtered, self._notes(rows))

    def log(self, progress: Progress | None = None, *, times: bool = False, features: Sequence[str] = ()) -> Log:
        """Return all rows sorted by time. Rows with equal times, and rows without a time column, stay in the order of the file.

        The log has the times of its rows only if you ask for them with ``times``, because they take memory. ``features`` are the
        names of other columns that it is to have.
        """
        times = flag(times, "times")
        rows = self._load(("time", "propensity"), progress, features)
        clock, rows = rows.times, rows._replace(times=None)
        order = slice(None) if clock is None else _order(clock)
        kept = None
        if times and clock is not None:
            kept = (clock if isinstance(order, slice) else clock.gather(order)).to_numpy()
        del clock
        propensities = None if rows.propensities is None else rows.propensities[order]
        actions = rows.actions[order].astype(np.int64)
        more = None if rows.features is None else rows.features[order]
        return Log(rows.arms, actions, rows.rewards[order], propensities, rows.bad, kept, self, more)

    def table(self, progress: Progress | None = None) -> Table | Incomplete:
        """Return the reward of every arm at every time. Return `Incomplete` if an arm has no reward or several at some time."""
        if self.time is None:
            return Incomplete(f"{self.source} has no time column: name it with time= (--time)")
        rows = self._load(("time",), progress)
        assert rows.times is not None
        times, rows = rows.times, rows._replace(times=None)
        order = _order(times)
        times = times if isinstance(order, slice) else times.gather(order)
        moment = times.rle_id().to_numpy()
        times = times.gather(np.flatnonzero(np.diff(moment, prepend=moment[:1] + 1)))
        cells = times.len() * len(rows.arms)
        filled = moment.astype(np.int64)
        del moment
        filled *= len(rows.arms)
        filled += rows.actions[order]
        if filled.size == cells:
            rewards = np.full(cells, np.nan)
            rewards[filled] = rows.rewards[order]
            if not np.isnan(rewards).any():
                cells_of = rewards.reshape(times.len(), len(rows.arms))
                return Table(times.to_numpy(), rows.arms, cells_of, rows.bad, self)
        del order
        return Incomplete(_gap(filled, rows.arms, times))

    @cached_property
    def skipping_clock(self) -> Clock | None:
        """A clock that reads bad times as null; None if they are not skipped, or no time can be read."""
        return Clock.skipping(self._times()) if self.skip_bad and self.time is not None else None

    def _times(self) -> Iterator[pl.Series]:
        """Yield the times of the rows that fit the condition, batch by batch."""
        assert self.time is not None
        roles = {"arm": self.arm, "reward": self.reward, "time": self.time}
        for frame in self._reader.batches(roles | ({} if self.where is None else self.where.roles())):
            yield times_of(frame if self.where is None else frame.filter(self.where.fits(frame)))

    def _notes(self, rows: Pass) -> tuple[str, ...]:
        """Return the questions about the rows of a pass."""
        counts = {arm: n for arm, n in zip(rows.arms, rows.n.tolist(), strict=True) if n}
        negative = dict(zip(rows.arms, rows.negative.tolist(), strict=False))
        place = rows.negative_rows, self._reader.unit
        return *name_questions(counts, self.arm), *negative_costs(negative, int(rows.n.sum()), *place)

    def _load(self, roles: Sequence[str], progress: Progress | None, features: Sequence[str] = ()) -> _Rows:
        """Load all rows into memory, in the order of the file; arms are sorted by name."""
        import polars as pl

        if self._reader.rows is not None and self.where is None:
            self._check_size(self._reader.rows)
        rows = Pass(self, roles, progress, features)
        codes: list[Codes] = []
        rewards: list[Floats] = []
        times: list[pl.Series] = []
        propensities: list[Floats] = []
        frames: list[pl.DataFrame] = []
        for batch in rows:
            codes.append(batch.codes)
            rewards.append(batch.rewards)
            if batch.times is not None:
                times.append(batch.times)
            if batch.propensities is not None:
                propensities.append(batch.propensities)
            if batch.features is not None:
                frames.append(batch.features)
            self._check_size(int(rows.n.sum()))
        names = rows.arms
        order = [arm for arm in sorted(range(len(names)), key=names.__getitem__) if rows.n[arm]]
        rank = np.zeros(len(names), dtype=np.uint16)
        rank[order] = np.arange(len(order))
        joined_times = rows.clock.joined(times) if times else None
        times.clear()
        arms, actions = tuple(names[arm] for arm in order), rank[_joined(codes)]
        chances = _joined(propensities) if propensities else None
        more = pl.concat(frames) if frames else None
        return _Rows(arms, actions, _joined(rewards), joined_times, chances, rows.bad, more)

    def _check_size(self, rows: int) -> None:
        if rows > MOST_ROWS:
            least = "at least " if self._reader.rows is None or self.where else ""
            raise InvalidInput(
                f"{self.source} has {least}{rows:,} rows; at most {MOST_ROWS:,} can be sorted by time "
                f"({rows * BYTES / 1e9:.0f} GB of memory): split the file, or use bootstrap replay, which needs no times"
            )


class _Rows(NamedTuple):
    arms: tuple[str, ...]
    actions: Codes
    rewards: Floats
    times: pl.Series | None
    propensities: Floats | None
    bad: BadRows
    features: pl.DataFrame | None


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays, and free the parts."""
    array = np.concatenate(parts)
    parts.clear()
    return array


def _order(times: pl.Series) -> Ints | slice:
    """Return the positions of the rows sorted by time; rows with equal times keep their order."""
    import polars as pl

    if times.is_sorted():
        return slice(None)
    keys = times.to_physical()
    # NumPy needs half of the memory, but does not support all types of Polars.
    if keys.dtype in (pl.Int64, pl.Int32, pl.UInt64, pl.UInt32, pl.Float64, pl.Float32):
        return np.argsort(keys.to_numpy(), kind="stable")
    frame = pl.DataFrame({"time": times}).with_row_index("row").sort("time", maintain_order=True)
    return frame["row"].to_numpy().astype(np.int64)


def _iso(time: np.datetime64) -> str:
    """Return a time in ISO 8601, without superfluous digits."""
    return str(np.datetime_as_string(time, unit="auto"))


def _gap(filled: Ints, arms: Sequence[str], times: pl.Series) -> str:
    """Describe the first cell of a table that is empty or filled twice; ``filled`` has the numbers of the filled cells."""
    filled.sort()
    cells = times.len() * len(arms)
    # In a complete table the sorted cells are 0, 1, 2, ... The first difference is the gap.
    size = min(filled.size, cells)
    wrong = filled[:size] != np.arange(size)
    first = int(wrong.argmax()) if wrong.any() else size
    repeated = first < filled.size and filled[first] < first
    cell = int(filled[first]) if repeated else first
    arm, time = arms[cell % len(arms)], times.slice(cell // len(arms), 1).to_numpy()[0]
    if isinstance(time, np.datetime64):
        time = _iso(time) + ("Z" if getattr(times.dtype, "time_zone", None) else "")
    if repeated:
        several = np.searchsorted(filled, cell, side="right") - np.searchsorted(filled, cell)
        return f"arm {arm!r} has {several:,} rewards at time {time}, so it is a log, not a table"
    missing = cells - 1 - np.count_nonzero(filled[1:] != filled[:-1])
    return f"arm {arm!r} has no reward at time {time} ({missing:,} of {cells:,} rewards are missing)"
