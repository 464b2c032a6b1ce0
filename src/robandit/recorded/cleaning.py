"""Read a table once: return good rows as arrays, and count and explain bad rows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robandit.errors import InvalidInput
from robandit.kernel.loops import LARGEST_REWARD, SMALLEST_REWARD, playable
from robandit.kernel.types import Floats, Ints
from robandit.recorded.columns import numbers_of, times_of
from robandit.recorded.gather import Codes, grown
from robandit.recorded.notes import plain_name
from robandit.recorded.summary import BadRows
from robandit.recorded.times import Clock, UnclearTime
from robandit.recorded.where import Filtered
from robandit.validation import function
from robandit.wording import listed

if TYPE_CHECKING:
    import polars as pl

    from robandit.recorded.records import Records

MOST_ARMS = 10_000
EXAMPLES = 5  # bad rows that a message shows
BLANKS = 1_000  # empty rows that are looked up in the file, because blank lines are not bad rows
SEED = 20_130_101

Progress = Callable[[int, "int | None"], object]


class Batch(NamedTuple):
    """The good rows of a batch. The rows with the lowest priorities form the sample."""

    codes: Codes
    rewards: Floats
    priorities: NDArray[np.uint64]
    times: pl.Series | None
    propensities: Floats | None
    features: pl.DataFrame | None


class Pass:
    """An iterator over the batches of a table. At the end it raises for bad rows, or counts them in `bad`.

    `arms` lists the arms so far in order of appearance, `n` counts their good rows, and `clock` reads the times.
    """

    def __init__(
        self, records: Records, roles: Sequence[str], progress: Progress | None, features: Sequence[str] = ()
    ) -> None:
        """Prepare the pass without reading.

        ``roles`` are the columns to read in addition to the arm and the reward, and ``features`` the names of others.
        """
        self.arms: list[str] = []
        self.n: Ints = np.zeros(0, dtype=np.int64)
        self.bad = BadRows()
        skipping = records.skipping_clock
        self.clock = skipping or Clock()
        self._skips_times = skipping is not None
        self._records = records
        self._reader = records._reader
        self._source = records.source
        self._columns = listed([repr(name) for name in records.columns], 20)
        if self._skips_times:  # in every pass, so that all count the same rows
            roles = [*roles, "time"]
        self._roles = {role: name for role, name in records._roles.items() if role in ("arm", "reward", *roles)}
        self._where = records.where
        if self._where is not None:
            self._roles |= self._where.roles()
        self._features = {f"feature {i}": name for i, name in enumerate(features)}
        self._roles |= self._features
        self._fitting = self._dropped = 0
        self.filtered: Filtered | None = None
        self._progress = function(progress, "progress", "a function that takes two numbers")
        self._examples: list[tuple[int, tuple[str, str]]] = []
        self._empty: list[int] = []  # rows that may be blank lines
        self._count = 0
        self._plain: dict[str, str] = {}  # plain names -> the first spelling, if names are joined
        self._spellings: dict[str, str] = {}  # names -> the first spelling
        self._spelled: Counter[str] = Counter()  # names -> their good rows
        self._negative: list[int] = []  # the first rows with negative costs
        self.negative: Ints = np.zeros(0, dtype=np.int64)
        self.negative_rows: list[int] = []

    def __iter__(self) -> Iterator[Batch]:
        # Each row takes the next number of this stream as its priority, so the sample does not depend on the batches.
        stream = np.random.SFC64(SEED)
        done = 0
        for frame in self._reader.batches(self._roles):
            rows: Ints = np.arange(done, done + frame.height)
            priorities = stream.random_raw(frame.height)
            done += frame.height
            if self._where is not None:
                fits = self._where.fits(frame).to_numpy()
                self._dropped += int(np.count_nonzero(~fits & ~_empty(frame)))  # blank lines are not dropped rows
                frame, rows, priorities = frame.filter(fits), rows[fits], priorities[fits]
            self._fitting += frame.height
            batch = self._clean(frame, rows, priorities)
            self.n = grown(self.n, len(self.arms)) + np.bincount(batch.codes, minlength=len(self.arms))
            if batch.codes.size:
                yield batch
            if self._progress is not None:
                self._progress(done, self._reader.rows)
        self._finish()

    def _clean(self, frame: pl.DataFrame, rows: Ints, priorities: NDArray[np.uint64]) -> Batch:
        codes = self._codes(frame["arm"])
        numbers = numbers_of(frame, "reward")
        times = times_of(frame) if "time" in self._roles else None
        propensities = numbers_of(frame, "propensity") if "propensity" in self._roles else None
        good = playable(numbers) & codes.is_not_null().to_numpy()
        if times is not None:
            times = self.clock.read(times) if self._skips_times else times
            good &= times.is_not_null().to_numpy()
        if propensities is not None:
            good &= (propensities > 0.0) & (propensities <= 1.0)
        rewards = numbers + 0.0  # no negative zeros
        actions = codes.fill_null(0).to_numpy().astype(np.uint16)
        if not good.all():
            self._note(frame, np.flatnonzero(~good), rows, numbers, propensities)
            frame = frame.filter(good)
            actions, rewards, priorities = actions[good], rewards[good], priorities[good]
            times = None if times is None else times.filter(good)
            propensities = None if propensities is None else propensities[good]
        if self._records.join_names:
            self._spelled.update(dict(frame["arm"].value_counts().iter_rows()))
        if times is not None and not self._skips_times:
            times = self._read_times(times, rows[good])
        if self._records.minimize:
            negative = rewards < 0.0
            self.negative = grown(self.negative, len(self.arms))
            self.negative += np.bincount(actions[negative], minlength=len(self.arms))
            self._negative += rows[good][negative][: EXAMPLES - len(self._negative)].tolist()
        features = frame.select(list(self._features)).rename(self._features) if self._features else None
        return Batch(actions, rewards, priorities, times, propensities, features)

    def _read_times(self, times: pl.Series, rows: Ints) -> pl.Series:
        """Return the times of good rows as values that sort by time."""
        try:
            return self.clock.read(times)
        except UnclearTime as error:
            way_out = "ame another column with time= (--time), or use bootstrap replay, which needs no times"
            if self._records.skip_bad:
                column = f"no time in the column {self._records.time!r} can be read"
                raise InvalidInput(f"{self._source}: {column}: {error}. N{way_out}") from None
            row = int(rows[error.position])
            number = self._reader.locate([row]).get(row, (row + 1, False))[0]
            raise InvalidInput(
                f"{self._source}, {self._reader.unit} {number:,}: {error}, so the rows cannot be sorted. Write all times as "
                f"numbers or all in ISO 8601, skip such rows with skip_bad=True (--skip-bad), n{way_out}"
            ) from None

    def _codes(self, arms: pl.Series) -> pl.Series:
        """Return the numbers of the arms, null where the arm is missing; new arms get the next numbers."""
        import polars as pl

        if self._records.join_names:
            arms = self._joined(arms)
        codes = arms.cast(pl.Enum(self.arms), strict=False).to_physical()
        if codes.null_count() > arms.null_count():
            new = arms.filter(codes.is_null()).drop_nulls().unique(maintain_order=True)
            self.arms += [name for name in new.to_list() if name]
            if len(self.arms) > MOST_ARMS:
                raise InvalidInput(
                    f"the column {self._roles['arm']!r} of {self._source} has more than {MOST_ARMS:,} different arms "
                    f"({listed([*map(repr, self.arms)])}), so it is probably not the arm; the columns are {self._columns}: "
                    "name the right one with arm= (--arm)"
                )
            codes = arms.cast(pl.Enum(self.arms), strict=False).to_physical()
        return codes

    def _joined(self, arms: pl.Series) -> pl.Series:
        """Return the names with one spelling of each arm, the first one. `_finish` replaces it by the most frequent one."""
        for name in arms.drop_nulls().unique(maintain_order=True).to_list():
            if name and name not in self._spellings:
                self._spellings[name] = self._plain.setdefault(plain_name(name), name)
        return arms.replace(self._spellings)

    def _note(self, frame: pl.DataFrame, wrong: Ints, rows: Ints, rewards: Floats, chances: Floats | None) -> None:
        """Count bad rows, and store the first few of them and the rows that may be blank lines."""
        blank = wrong[_empty(frame)[wrong]][: BLANKS - len(self._empty)]
        self._empty += rows[blank].tolist()
        bad = np.setdiff1d(wrong, blank, assume_unique=True)
        self._count += bad.size
        for row in bad[: EXAMPLES - len(self._examples)].tolist():
            chance = 1.0 if chances is None else float(chances[row])
            self._examples.append(
                (int(rows[row]), self._fault(frame.row(row, named=True), float(rewards[row]), chance))
            )

    def _fault(self, row: Mapping[str, Any], reward: float, chance: float) -> tuple[str, str]:
        """Return the fault of a row, and a hint that a message gives only once."""
        import polars as pl

        if not row["arm"]:
            return "the arm is missing", ""
        if not math.isfinite(reward):
            return _not_a_number("reward", row, reward)
        if abs(reward) > LARGEST_REWARD:
            hint = ", too large to square; scale all rewards down"
            return f"the reward {reward:g} is beyond +-{LARGEST_REWARD:g}", hint
        if not playable(reward):
            hint = ", too small to square; scale all rewards up, or write 0"
            written = str(row.get("reward text") or f"{reward:g}").strip()[:40]
            return f"the reward {written} is smaller than {SMALLEST_REWARD:g}", hint
        if "time" in row and (row["time"] is None or row["time"] != row["time"] or not str(row["time"]).strip()):
            return "the time is missing", ""
        if self._skips_times and self.clock.read(pl.Series([row["time"]])).is_null().item():
            return self.clock.fault(row["time"])
        if not math.isfinite(chance):
            return _not_a_number("propensity", row, chance)
        if not 0.0 < chance <= 1.0:
            return f"the propensity {chance:g} must be > 0 and <= 1", ""
        return "the row cannot be read", ""

    def _finish(self) -> None:
        usual: dict[str, str] = {}  # first spellings -> the most frequent ones
        for name, first in self._spellings.items():
            if self._spelled[name] > self._spelled[usual.setdefault(first, name)]:
                usual[first] = name
        self.arms = [usual.get(arm, arm) for arm in self.arms]
        suspects = sorted({*self._empty, *self._negative, *(row for row, _ in self._examples)})
        numbers = self._reader.locate(suspects) if suspects else {}
        self.negative_rows = [numbers.get(row, (row + 1, False))[0] for row in self._negative]
        blank = {row for row in self._empty if numbers.get(row, (0, False))[1]}
        empty = [(row, ("the arm and the reward are missing", "")) for row in self._empty if row not in blank]
        rows = self._fitting - len(blank)
        if self._where is not None:
            self.filtered = Filtered(self._where.text, rows, self._dropped)
            if self._dropped and not rows:
                where = f"where (--where) {self._where.text[:200]!r}"
                raise InvalidInput(f"{self._source}: no row fits {where}, of {self._dropped:,}")
        count = self._count + len(empty)
        examples = []
        hints = {""}
        for row, (fault, hint) in sorted([*self._examples, *empty])[:EXAMPLES]:
            number = numbers.get(row, (row + 1, False))[0]
            examples.append((number, fault if hint in hints else fault + hint))
            hints.add(hint)
        lost = sorted(name for name, n in zip(self.arms, self.n.tolist(), strict=True) if not n)
        self.bad = BadRows(count, tuple(examples), self._reader.unit, tuple(lost))
        if not rows:
            raise InvalidInput(f"{self._source} has the columns {self._columns} but no rows: it must have at least one")
        needs = "Each row needs an arm and a finite number as its reward"
        if not self.n.any():
            raise InvalidInput(
                f"{self._source} has no good row: {self.bad}. {needs}. The columns "
                f"are {self._columns}; name others with arm= (--arm) and reward= (--reward)"
            )
        if count and not self._records.skip_bad:
            raise InvalidInput(
                f"{self._source} has {self.bad} (of {rows:,}). {needs}: correct "
                "them, or skip them with skip_bad=True (--skip-bad)"
            )


def _empty(frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Return whether each row has neither an arm nor a reward."""
    reward = frame["reward text"] if "reward text" in frame else frame["reward"]
    return (frame["arm"].is_null() & reward.is_null()).to_numpy()


def _not_a_number(role: str, row: Mapping[str, Any], number: float) -> tuple[str, str]:
    value = row.get(f"{role} text", row[role])
    text = "" if value is None else str(value).strip()
    if not text:
        return f"the {role} is missing", ""
    if math.isinf(number):
        return f"the {role} {text[:40]} is infinite", ""
    if text.lower().lstrip("+-") == "nan":
        return f"the {role} is NaN", ""
    return f"the {role} {text[:40]!r} is not a number", _hint(text)


def _hint(text: str) -> str:
    if re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})*,\d+", text) or re.fullmatch(r"[+-]?\d+,\d+", text):
        return " (write decimals with a point, and no thousands separators)"
    if re.fullmatch(r"[+-]?\d{1,3}([,'_ ]\d{3})+(\.\d*)?", text):
        return " (write it without thousands separators)"
    if re.match(r"[+-]?\d", text):
        return " (write the number without a unit)"
    return ""
