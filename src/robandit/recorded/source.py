"""Tables of recorded rewards: which columns are what, and what can be asked of them."""

from __future__ import annotations

import difflib
import math
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robandit.errors import FileError, InvalidInput
from robandit.kernel.loops import LARGEST_REWARD
from robandit.kernel.types import Floats, Ints
from robandit.recorded.gather import Codes, Lowest, Sample, Sums
from robandit.recorded.reading import FrameReader, Reader, reader_of
from robandit.recorded.summary import EXTREMES, ArmRecord, BadRows, Recorded
from robandit.recorded.times import Clock, UnclearTime

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Incomplete", "Log", "Records", "Samples", "Table", "open_records"]

SAMPLE = 131_072  # rewards of one arm that a summary keeps
SAMPLES_TOTAL = 1 << 22  # and of all arms: 32 MB of rewards, and three times that while they are picked
MOST_ARMS = 10_000
MOST_ROWS = 60_000_000  # that are held at once, in the order of time: 4 GB
BYTES = 65  # that such a row takes at the peak; benchmarks/recorded.py measures 50 to 62
SHOWN = 5  # bad rows that are shown
BLANKS = 1_000  # rows without anything that are looked up, to tell blank lines from bad rows
SEED = 20_130_101

Progress = Callable[[int, "int | None"], object]


class Samples(dict[str, Floats]):
    """Arm -> its rewards in the order of the file, all of them or a uniform random sample without replacement.

    Attributes
    ----------
    counts
        How many rewards of each arm there are.
    whole
        Whether all of them are here.
    bad
        The rows that were left out.
    """

    def __init__(self, rewards: Mapping[str, Floats], counts: Mapping[str, int], bad: BadRows) -> None:
        """See the attributes."""
        super().__init__(rewards)
        self.counts = dict(counts)
        self.whole = all(rewards[arm].size == n for arm, n in counts.items())
        self.bad = bad


@dataclass(frozen=True, eq=False)
class Table:
    """A reward of every arm at every time: `rewards[t, arm]`, in the order of time."""

    times: NDArray[Any]
    arms: tuple[str, ...]
    rewards: Floats
    bad: BadRows = field(default_factory=BadRows)


@dataclass(frozen=True)
class Incomplete:
    """There is no such table; the reason, in words."""

    reason: str


@dataclass(frozen=True, eq=False)
class Log:
    """What was played, in the order of time: `arms[actions[t]]` paid `rewards[t]` and was chosen with `propensities[t]`."""

    arms: tuple[str, ...]
    actions: Ints
    rewards: Floats
    propensities: Floats | None
    bad: BadRows = field(default_factory=BadRows)


def open_records(
    path: Any,
    *,
    arm: str | None = None,
    reward: str | None = None,
    time: str | None = None,
    propensity: str | None = None,
    negate: bool = False,
    skip_bad: bool = False,
    delimiter: str | None = None,
    spooling: Callable[[int], object] | None = None,
) -> Records:
    """Open a table with one recorded reward per row. Only its beginning is read yet.

    Parameters
    ----------
    path
        A CSV (also packed with gzip or zstd), Parquet or JSON lines file, "-" for the standard input, or a polars or pandas
        DataFrame. A polars LazyFrame is run anew for every pass.
    arm, reward
        The names of these columns; "arm" and "reward" unless given.
    time, propensity
        The same; without a name, "time" and "propensity" are used if there are such columns. Times in text are numbers, or dates
        and times of ISO 8601.
    negate
        Turn costs into rewards: a recorded x counts as -x.
    skip_bad
        Leave rows out that have no reward to learn from, and count them. Otherwise they are refused.
    delimiter
        What separates the fields of a CSV, if not a comma (in .tsv files a tab); ";", tab and "|" are found out.
    spooling
        Called with the number of bytes so far while the standard input is copied to disk.

    Examples
    --------
    >>> import polars as pl
    >>> records = open_records(pl.DataFrame({"arm": ["a", "b", "a"], "cost": [1, 2, 4]}), reward="cost", negate=True)
    >>> [(arm.arm, arm.n, arm.mean) for arm in records.summary().arms]
    [('a', 2, -2.5), ('b', 1, -2.0)]
    """
    wanted = {"arm": arm, "reward": reward, "time": time, "propensity": propensity}
    columns = (arm or "arm", reward or "reward")
    if not isinstance(path, (str, os.PathLike)):
        reader = _frame(path)
        return Records(reader, _roles(reader, wanted), negate, skip_bad)
    source, where = str(path), Path(path)
    if source != "-" and (where.is_file() or where.is_dir() or not where.exists()):
        reader = reader_of(where, source, delimiter, columns)
        return Records(reader, _roles(reader, wanted), negate, skip_bad)
    if source == "-":
        source = "the standard input"
        spool = _spooled(sys.stdin.buffer, source, spooling)
    else:  # a pipe, which can be read only once
        try:
            with where.open("rb") as pipe:
                spool = _spooled(pipe, source, spooling)
        except OSError as error:
            raise FileError(f"{source} cannot be read: {error.strerror}") from error
    try:
        reader = reader_of(Path(spool), source, delimiter, columns)
        records = Records(reader, _roles(reader, wanted), negate, skip_bad)
    except BaseException:
        _remove(spool)
        raise
    weakref.finalize(records, _remove, spool)
    return records


class Records:
    """A table with one recorded reward per row; see `open_records`.

    Attributes
    ----------
    source
        Where the rewards come from, for people.
    columns
        The names of all columns of the table.
    negated
        Whether a recorded x counts as -x.
    arm, reward, time, propensity
        The names of the columns that are used; None for a column that there is not.
    """

    def __init__(self, reader: Reader, roles: Mapping[str, str], negate: bool, skip_bad: bool) -> None:
        """See `open_records`."""
        self._reader = reader
        self._roles = dict(roles)
        self.source = reader.source
        self.columns = reader.columns
        self.negated = negate
        self.skip_bad = skip_bad
        self.arm = roles["arm"]
        self.reward = roles["reward"]
        self.time = roles.get("time")
        self.propensity = roles.get("propensity")

    def __repr__(self) -> str:
        """Where from, and which columns; `summary` reads the rows."""
        sign = "minus " if self.negated else ""
        return f"<Records: {self.source}, arm {self.arm!r}, reward {sign}{self.reward!r}>"

    def summary(self, progress: Progress | None = None) -> Recorded:
        """Read all rows once, in bounded memory, and keep per arm the counts, the mean, a sample and the extremes.

        The sample is uniform without replacement, of at most 131,072 rewards per arm and 4,194,304 of all arms. The same table
        gives the same sample.

        Parameters
        ----------
        progress
            Called with the rows done and the rows in all (None where that is not known).
        """
        reading = _Reading(self, (), progress)
        chosen = Sample(SAMPLE, SAMPLES_TOTAL)
        low, high = Lowest(EXTREMES), Lowest(EXTREMES)
        sums = Sums()
        for batch in reading:
            arms = len(reading.arms)
            sums.add(batch.codes, batch.rewards, arms)
            chosen.add(batch.codes, batch.priorities, batch.rewards, arms)
            low.add(batch.codes, batch.rewards, batch.rewards, arms)
            high.add(batch.codes, -batch.rewards, batch.rewards, arms)
        names = reading.arms
        records = []
        columns = zip(
            names,
            sums.n.tolist(),
            sums.zeros.tolist(),
            sums.means(),
            chosen.take(len(names)),
            low.take(len(names)),
            high.take(len(names)),
            strict=True,
        )
        for name, n, zeros, mean, sample, smallest, largest in columns:
            if not n:  # all its rows were bad
                continue
            smallest.sort()
            largest[::-1].sort()
            records.append(
                ArmRecord(
                    arm=name,
                    n=n,
                    zeros=zeros,
                    mean=math.fsum(sample.tolist()) / n if sample.size == n else mean,
                    least=float(smallest[0]),
                    greatest=float(largest[0]),
                    sample=sample,
                    whole=sample.size == n,
                    smallest=smallest,
                    largest=largest,
                )
            )
        records.sort(key=lambda record: record.arm)
        return Recorded(tuple(records), int(sums.n.sum()), reading.bad, self.source, self.negated)

    def samples(self, most: int = 1 << 20, progress: Progress | None = None) -> Samples:
        """The rewards of every arm, or a uniform random sample of at most `most` of each (16,777,216 of all arms)."""
        reading = _Reading(self, (), progress)
        chosen = Sample(most, 1 << 24)
        sums = Sums()
        for batch in reading:
            sums.add(batch.codes, batch.rewards, len(reading.arms))
            chosen.add(batch.codes, batch.priorities, batch.rewards, len(reading.arms))
        taken = dict(zip(reading.arms, chosen.take(len(reading.arms)), strict=True))
        counts = {arm: n for arm, n in sorted(zip(reading.arms, sums.n.tolist(), strict=True)) if n}
        return Samples({arm: taken[arm] for arm in counts}, counts, reading.bad)

    def log(self, progress: Progress | None = None) -> Log:
        """All rows in the order of time; rows of the same time, and all rows without a time column, in that of the file."""
        rows = self._held(("time", "propensity"), progress)
        times, rows = rows.times, rows._replace(times=None)
        order = slice(None) if times is None else _order(times)
        del times
        return Log(
            rows.arms,
            rows.actions[order].astype(np.int64),
            rows.rewards[order],
            None if rows.propensities is None else rows.propensities[order],
            rows.bad,
        )

    def table(self, progress: Progress | None = None) -> Table | Incomplete:
        """The reward of every arm at every time, or why there is none: an arm has no reward at a time, or several."""
        if self.time is None:
            return Incomplete(f"{self.source} has no time column: name it with time= (--time)")
        rows = self._held(("time",), progress)
        assert rows.times is not None
        times, rows = rows.times, rows._replace(times=None)
        order = _order(times)
        times = times if isinstance(order, slice) else times.gather(order)
        moment = times.rle_id().to_numpy()
        times = times.gather(np.flatnonzero(np.diff(moment, prepend=moment[:1] + 1)))
        cells = times.len() * len(rows.arms)
        place = moment.astype(np.int64)
        del moment
        place *= len(rows.arms)
        place += rows.actions[order]
        if place.size == cells:
            rewards = np.full(cells, np.nan)
            rewards[place] = rows.rewards[order]
            if not np.isnan(rewards).any():
                return Table(times.to_numpy(), rows.arms, rewards.reshape(times.len(), len(rows.arms)), rows.bad)
        del order
        return Incomplete(_gap(place, rows.arms, times))

    def _held(self, roles: Sequence[str], progress: Progress | None) -> _Rows:
        """All rows in memory, in the order of the file; arms in the order of their names."""
        if self._reader.rows is not None:
            self._check_size(self._reader.rows)
        reading = _Reading(self, roles, progress)
        codes: list[Codes] = []
        rewards: list[Floats] = []
        times: list[pl.Series] = []
        chances: list[Floats] = []
        held = 0
        for batch in reading:
            codes.append(batch.codes)
            rewards.append(batch.rewards)
            if batch.times is not None:
                times.append(batch.times)
            if batch.propensities is not None:
                chances.append(batch.propensities)
            held += batch.codes.size
            self._check_size(held)
        names = reading.arms
        order = [arm for arm in sorted(range(len(names)), key=names.__getitem__) if reading.n[arm]]
        rank = np.zeros(len(names), dtype=np.uint16)
        rank[order] = np.arange(len(order))
        moments = reading.clock.joined(times) if times else None
        times.clear()
        return _Rows(
            tuple(names[arm] for arm in order),
            rank[_joined(codes)],
            _joined(rewards),
            moments,
            _joined(chances) if chances else None,
            reading.bad,
        )

    def _check_size(self, rows: int) -> None:
        if rows > MOST_ROWS:
            raise InvalidInput(
                f"{self.source} has {'at least ' if self._reader.rows is None else ''}{rows:,} rows, which would take "
                f"{rows * BYTES / 1e9:.0f} GB of memory in the order of time; at most {MOST_ROWS:,} are held: cut the file, or use "
                "what needs no order (bootstrap replay)"
            )


class _Batch(NamedTuple):
    codes: Codes
    rewards: Floats
    priorities: NDArray[np.uint64]
    times: pl.Series | None
    propensities: Floats | None


class _Rows(NamedTuple):
    arms: tuple[str, ...]
    actions: Codes
    rewards: Floats
    times: pl.Series | None
    propensities: Floats | None
    bad: BadRows


class _Reading:
    """One pass through the table. At its end bad rows are refused, or counted in `bad`."""

    def __init__(self, records: Records, roles: Sequence[str], progress: Progress | None) -> None:
        self.arms: list[str] = []
        self.n: Ints = np.zeros(0, dtype=np.int64)  # good rows of each
        self.bad = BadRows()
        self._records = records
        self._reader = records._reader
        self._wanted = {r: c for r, c in records._roles.items() if r in ("arm", "reward", *roles)}
        self._progress = progress
        self.clock = Clock()
        self._first: list[tuple[int, tuple[str, str]]] = []
        self._blank: list[int] = []
        self._count = 0

    def __iter__(self) -> Iterator[_Batch]:
        # Every row has the next number of this stream as its priority, wherever batches end.
        stream = np.random.SFC64(SEED)
        done = 0
        for frame in self._reader.batches(self._wanted):
            batch = self._cleaned(frame, done, stream.random_raw(frame.height))
            done += frame.height
            self.n = np.pad(self.n, (0, len(self.arms) - self.n.size)) + np.bincount(
                batch.codes, minlength=len(self.arms)
            )
            if batch.codes.size:
                yield batch
            if self._progress is not None:
                self._progress(done, self._reader.rows)
        self._finish(done)

    def _cleaned(self, frame: pl.DataFrame, before: int, priorities: NDArray[np.uint64]) -> _Batch:
        codes = self._codes(frame["arm"])
        numbers = _numbers(frame, "reward")
        fine = np.abs(numbers) <= LARGEST_REWARD
        whose = codes.is_not_null().to_numpy()
        named = codes.fill_null(0).to_numpy().astype(np.uint16)
        times = frame["time"] if "time" in self._wanted else None
        chances = _numbers(frame, "propensity") if "propensity" in self._wanted else None
        ok = fine & whose
        if times is not None:
            times = _without_blanks(times)
            ok &= times.is_not_null().to_numpy()
        if chances is not None:
            ok &= (chances > 0.0) & (chances <= 1.0)
        rewards = 0.0 - numbers if self._records.negated else numbers + 0.0  # a zero has no sign
        if ok.all():
            times = None if times is None else self._clocked(times, before, None)
            return _Batch(named, rewards, priorities, times, chances)
        wrong = np.flatnonzero(~ok)
        self._note(frame, wrong, before, numbers, chances)
        return _Batch(
            named[ok],
            rewards[ok],
            priorities[ok],
            None if times is None else self._clocked(times.filter(ok), before, ok),
            None if chances is None else chances[ok],
        )

    def _clocked(self, times: pl.Series, before: int, ok: NDArray[np.bool_] | None) -> pl.Series:
        """The times of good rows as values that sort."""
        try:
            return self.clock.read(times)
        except UnclearTime as error:
            row = before + (error.place if ok is None else int(np.flatnonzero(ok)[error.place]))
            number = self._reader.numbers([row]).get(row, (row + 1, False))[0]
            raise InvalidInput(
                f"{self._records.source}, {self._reader.unit} {number:,}: {error.why}. The rows cannot be put in order: write all "
                "times alike, in ISO 8601 or as numbers; or name another column with time= (--time), or leave this one out, or "
                "use what needs no order (bootstrap replay)"
            ) from None

    def _codes(self, arms: pl.Series) -> pl.Series:
        """The arms as numbers; arms that were not seen before get the next ones. Null where there is none."""
        import polars as pl

        codes = arms.cast(pl.Enum(self.arms), strict=False).to_physical()
        if codes.null_count() > arms.null_count():
            new = arms.filter(codes.is_null()).drop_nulls().unique(maintain_order=True)
            self.arms += [name for name in new.to_list() if name]
            if len(self.arms) > MOST_ARMS:
                shown = ", ".join(repr(name) for name in self.arms[:3])
                raise InvalidInput(
                    f"the column {self._records.arm!r} of {self._records.source} has more than {MOST_ARMS:,} different arms "
                    f"({len(self.arms):,} so far: {shown}, ...): it is probably not the arm; the columns are "
                    f"{_listed(self._records.columns)}; name the right one with arm= (--arm)"
                )
            codes = arms.cast(pl.Enum(self.arms), strict=False).to_physical()
        return codes

    def _note(self, frame: pl.DataFrame, wrong: Ints, before: int, rewards: Floats, chances: Floats | None) -> None:
        """Count bad rows; keep the first, and those that may be blank lines."""
        nothing = (
            frame["arm"].is_null() & (frame["reward text"] if "reward text" in frame else frame["reward"]).is_null()
        )
        empty = nothing.to_numpy()[wrong]
        room = BLANKS - len(self._blank)
        blank = wrong[empty][:room]
        self._blank += (blank + before).tolist()
        bad = np.setdiff1d(wrong, blank, assume_unique=True)
        self._count += bad.size
        for row in bad[: SHOWN - len(self._first)].tolist():
            chance = 1.0 if chances is None else float(chances[row])
            self._first.append((row + before, _fault(frame.row(row, named=True), float(rewards[row]), chance)))

    def _finish(self, rows: int) -> None:
        source = self._records.source
        numbers: dict[int, tuple[int, bool]] = {}
        if self._blank or self._first:
            numbers = self._reader.numbers(sorted({*self._blank, *(row for row, _ in self._first)}))
        blank = [row for row in self._blank if numbers.get(row, (0, False))[1]]
        empty = [(row, ("there is neither an arm nor a reward", "")) for row in self._blank if row not in set(blank)]
        first = sorted([*self._first, *empty])[:SHOWN]
        rows -= len(blank)
        count = self._count + len(empty)
        shown = []
        hints = {""}
        for row, (what, hint) in first:
            number = numbers.get(row, (row + 1, False))[0]
            shown.append((number, what if hint in hints else what + hint))
            hints.add(hint)
        gone = tuple(sorted(name for name, n in zip(self.arms, self.n.tolist(), strict=True) if not n))
        self.bad = BadRows(count, tuple(shown), self._reader.unit, gone)
        if not rows:
            raise InvalidInput(
                f"{source} has the columns {_listed(self._records.columns)} but no rows: nothing is recorded"
            )
        if not self.n.any():
            raise InvalidInput(
                f"{source} has no good row: {self.bad}. Every row needs an arm and a finite number as its reward. The columns are "
                f"{_listed(self._records.columns)}; others are named with arm= and reward= (--arm, --reward)"
            )
        if count and not self._records.skip_bad:
            raise InvalidInput(
                f"{source} has {self.bad} (of {rows:,}). Every row needs an arm and a finite number as its reward: correct them, "
                "or leave them out with skip_bad=True (--skip-bad)"
            )


def _numbers(frame: pl.DataFrame, role: str) -> Floats:
    """A column as floats; NaN where there is no number. Text may have blanks around it, or say true or false."""
    import polars as pl

    values = frame[role]
    if f"{role} text" in frame and values.null_count():
        text = frame[f"{role} text"]
        again = values.is_null() & text.is_not_null()
        if again.any():
            plain = text.filter(again).str.strip_chars().str.to_lowercase()
            truth = plain.replace_strict({"true": 1.0, "false": 0.0}, default=None, return_dtype=pl.Float64)
            parsed = plain.cast(pl.Float64, strict=False).fill_null(truth)
            numbers = values.to_numpy(writable=True)
            numbers[again.to_numpy()] = parsed.to_numpy()
            return numbers
    return values.to_numpy()


def _fault(row: Mapping[str, Any], reward: float, chance: float) -> tuple[str, str]:
    """What is wrong with a row, and a hint that need not be said twice."""
    if not row["arm"]:
        return "there is no arm", ""
    if not math.isfinite(reward):
        return _no_number("reward", row, reward)
    if abs(reward) > LARGEST_REWARD:
        what = f"the reward {reward:g} is beyond +-{LARGEST_REWARD:g}"
        return what, ", too large to be squared; scale all rewards down"
    if "time" in row and (row["time"] is None or row["time"] != row["time"] or not str(row["time"]).strip()):
        return "there is no time", ""
    if not math.isfinite(chance):
        return _no_number("propensity", row, chance)
    return f"the propensity {chance:g} is not above 0 and at most 1", ""


def _no_number(role: str, row: Mapping[str, Any], number: float) -> tuple[str, str]:
    said = row.get(f"{role} text", row[role])
    word = "" if said is None else str(said).strip()
    if not word:
        return f"there is no {role}", ""
    if math.isinf(number):
        return f"the {role} {word[:40]} is infinite", ""
    if word.lower().lstrip("+-") == "nan":
        return f"the {role} is NaN", ""
    return f"the {role} {word[:40]!r} is not a number", _hint(word)


def _hint(word: str) -> str:
    if re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})*,\d+", word) or re.fullmatch(r"[+-]?\d+,\d+", word):
        return " (decimals come after a point, without separators of thousands)"
    if re.fullmatch(r"[+-]?\d{1,3}([,'_ ]\d{3})+(\.\d*)?", word):
        return " (write it without separators of thousands)"
    if re.match(r"[+-]?\d", word):
        return " (write the number alone, without a unit)"
    return ""


def _without_blanks(times: pl.Series) -> pl.Series:
    """Null where there is no time."""
    import polars as pl

    if times.dtype.is_float():
        return times.fill_nan(None)
    if times.dtype == pl.String:
        return times.set(times.str.strip_chars().str.len_bytes() == 0, None)
    return times


def _order(times: pl.Series) -> Ints | slice:
    """The rows in the order of time, rows of the same time as they were."""
    import polars as pl

    if times.is_sorted():
        return slice(None)
    keys = times.to_physical()
    # NumPy needs half of the memory, but does not know all types of Polars.
    if keys.dtype in (pl.Int64, pl.Int32, pl.UInt64, pl.UInt32, pl.Float64, pl.Float32):
        return np.argsort(keys.to_numpy(), kind="stable")
    frame = pl.DataFrame({"time": times}).with_row_index("row").sort("time", maintain_order=True)
    return frame["row"].to_numpy().astype(np.int64)


def _gap(place: Ints, arms: Sequence[str], times: pl.Series) -> str:
    """The first cell of a table, by time and arm, that is empty or filled twice; `place` are the cells that are filled."""
    place.sort()
    cells = times.len() * len(arms)
    # In a complete table the sorted places are 0, 1, 2, ...: the first that differs tells.
    size = min(place.size, cells)
    wrong = place[:size] != np.arange(size)
    first = int(wrong.argmax()) if wrong.any() else size
    doubled = first < place.size and place[first] < first
    at = int(place[first]) if doubled else first
    who, when = arms[at % len(arms)], _said(times, at // len(arms))
    if doubled:
        several = np.searchsorted(place, at, side="right") - np.searchsorted(place, at)
        return f"arm {who!r} has {several:,} rewards at time {when}, so it is a log, not a table"
    missing = cells - 1 - np.count_nonzero(place[1:] != place[:-1])
    return f"arm {who!r} has no reward at time {when} ({missing:,} of {cells:,} rewards are missing in all)"


def _said(times: pl.Series, at: int) -> str:
    time = times.slice(at, 1).to_numpy()[0]
    if isinstance(time, np.datetime64):
        zone = getattr(times.dtype, "time_zone", None)
        return str(np.datetime_as_string(time, unit="auto")) + ("Z" if zone else "")
    return str(time)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One array of all; the parts are let go."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _roles(reader: Reader, given: Mapping[str, str | None]) -> dict[str, str]:
    """Role -> column. What was named must be there, and arm and reward in any case."""
    roles: dict[str, str] = {}
    for role, name in given.items():
        column = role if name is None else name
        if column in reader.columns:
            if column in reader.repeated:
                raise InvalidInput(f"{reader.source} has several columns named {column!r}: rename all but one of them")
            roles[role] = column
        elif name is not None or role in ("arm", "reward"):
            near = difflib.get_close_matches(column.lower(), [c.lower() for c in reader.columns], n=1, cutoff=0.6)
            hint = next((f"; did you mean {c!r}?" for c in reader.columns if near and c.lower() == near[0]), ".")
            raise InvalidInput(
                f"{reader.source} has no column {column!r}: its columns are {_listed(reader.columns)}{hint} Name the column of "
                f"the {role} with {role}= (--{role}){_shape_hint(reader.columns)}"
            )
    doubled = [role for role in roles if list(roles.values()).count(roles[role]) > 1]
    if doubled:
        raise InvalidInput(
            f"{' and '.join(doubled)} are both the column {roles[doubled[0]]!r} of {reader.source}: name different columns"
        )
    return roles


def _shape_hint(columns: Sequence[str]) -> str:
    if len(columns) == 1 and (mark := re.search(r"[;\t|, :]", columns[0])):
        return f". There is only one column: if {mark[0]!r} separates the fields, say so with delimiter= (--delimiter)"
    if any(re.fullmatch(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", column) for column in columns):
        return ". The first line must name the columns; this one looks like data"
    return ""


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", and {len(names) - most} more" if len(names) > most else "")


def _frame(frame: Any) -> Reader:
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return FrameReader(frame.lazy(), "the data frame", frame.height)
    if isinstance(frame, pl.LazyFrame):
        return FrameReader(frame, "the lazy frame", None)
    if hasattr(frame, "columns") and hasattr(frame, "iloc"):
        from robandit.recorded.pandas import plain

        reader = FrameReader(plain(frame).lazy(), "the data frame", len(frame))
        names = [str(name) for name in frame.columns]
        reader.repeated = tuple({name for name in names if names.count(name) > 1})
        return reader
    raise InvalidInput(f"path is {type(frame).__name__}: give the name of a file, '-', or a polars or pandas DataFrame")


def _spooled(stream: Any, source: str, spooling: Callable[[int], object] | None) -> str:
    """Copy a stream to a temporary file, because it is read more than once."""
    handle, name = tempfile.mkstemp(prefix="robandit-")
    size = 0
    try:
        with os.fdopen(handle, "wb") as file:
            while block := stream.read(1 << 20):
                file.write(block)
                size += len(block)
                if spooling is not None:
                    spooling(size)
    except BaseException as error:
        _remove(name)
        if isinstance(error, OSError):
            raise FileError(
                f"{source} cannot be copied to {Path(name).parent}: {error.strerror} after {size:,} bytes; make room there, or "
                "set TMPDIR to a folder with room"
            ) from error
        raise
    return name


def _remove(name: str) -> None:
    with suppress(OSError):
        os.unlink(name)
