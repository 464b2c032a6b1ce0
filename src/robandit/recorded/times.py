"""Convert times in text to values that sort by time, because text would sort in the wrong order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from robandit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

NAMES = r"^(ts|t|when|day|date|hour|time|datetime|timestamp|epoch|created|updated)$|([_ ](at|ts|time|date|day)|timestamp)$|[a-z]At$"
"""Names of columns that hold times, if their values are numbers."""
YEARS = (1678, 2261)  # the complete years that 64-bit nanoseconds can express
ISO = (
    r"^(\d{4}-\d{2})(?:(-\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"(?: ?([Zz]|UTC|([+-])(\d{2})(?::?(\d{2}))?))?)?)?$"
)
OTHER, NUMBER, LOCAL, OFFSET = range(4)
KINDS = ("", "a number", "a date or time without an offset from UTC", "a time with an offset from UTC")


class UnclearTime(InvalidInput):
    """The text at `position` (from 0) is not a time, or not of the same kind as the first time."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


class Clock:
    """A reader of the times of one table, batch by batch.

    All times must be of one kind: numbers, dates or times in ISO 8601 without an offset from UTC, or times with an offset. A month
    means its first day, and a date its midnight.
    """

    def __init__(self, *, skips: bool = False) -> None:
        """Start without a kind, which the first time decides. A clock that ``skips`` reads times of other kinds as null."""
        self._kind: int | None = None
        self._first = ""
        self._skips = skips

    @classmethod
    def skipping(cls, batches: Iterable[pl.Series]) -> Clock | None:
        """Return a clock that skips, whose kind is that of the first time that can be read; None if there is none."""
        import polars as pl

        clock = cls(skips=True)
        for times in batches:
            times = times.drop_nulls()
            if times.dtype != pl.String and times.len():
                return clock
            text = times.cast(pl.String).str.strip_chars()
            readable = text.filter(_kinds(text)[2] != OTHER)
            if readable.len():
                clock.read(readable.head(1))
                return clock
        return None

    def read(self, times: pl.Series) -> pl.Series:
        """Return the times as values that sort; raise `UnclearTime` for text that is not a time. No time may be null.

        A clock that skips returns null for such text instead, and for null.
        """
        import polars as pl

        if times.dtype != pl.String or not times.len():
            return times
        text = times.str.strip_chars()
        numbers, instants, kinds = _kinds(text)
        if self._kind is None:
            self._kind, self._first = int(kinds[0]), str(text[0])
        wrong = (kinds != self._kind) | (kinds == OTHER)
        if wrong.any() and not self._skips:
            position = int(wrong.arg_max() or 0)
            raise UnclearTime(position, "".join(self.fault(str(text[position]))))
        values = numbers if self._kind == NUMBER else instants
        if self._kind == OFFSET:
            values = values.cast(pl.Datetime("ns")).dt.replace_time_zone("UTC")
        return values.set(wrong, None) if wrong.any() else values

    def joined(self, parts: Sequence[pl.Series]) -> pl.Series:
        """Join the times of all batches. Batches with only integers or only dates are converted to the common type."""
        import polars as pl

        common = {NUMBER: pl.Float64(), LOCAL: pl.Datetime("ns")}.get(self._kind or OTHER)
        if common is not None and len({part.dtype for part in parts}) > 1:
            parts = [part.cast(common) for part in parts]
        return pl.concat(parts)

    def fault(self, text: str) -> tuple[str, str]:
        """Return what is wrong with a text, and a hint."""
        import polars as pl

        kind = int(_kinds(pl.Series([text.strip()]))[2][0])
        subject = f"the time {text[:40]!r} is"
        if kind == OTHER:
            examples = f"such as 2013-01-02 or 2013-01-02T09:00+01:00 (years {YEARS[0]} to {YEARS[1]})"
            return f"{subject} neither a number nor a date or time in ISO 8601", f", {examples}"
        return f"{subject} {KINDS[kind]}", f", but the first, {self._first[:40]!r}, is {KINDS[self._kind or NUMBER]}"


def looks_like_time(name: str, values: pl.Series) -> bool:
    """Return whether a column looks like a time: by its type, or because all values are dates, or by its name if they are numbers.

    >>> import polars as pl
    >>> looks_like_time("x", pl.Series(["2013-01-02", "2013-01-03"])), looks_like_time("created_at", pl.Series([5, 7]))
    (True, True)
    >>> looks_like_time("x", pl.Series([5, 7])), looks_like_time("ts", pl.Series(["a", "b"]))
    (False, False)
    """
    import polars as pl

    values = values.drop_nulls()
    if isinstance(values.dtype, (pl.Date, pl.Datetime)):
        return True
    if values.dtype.is_numeric() and values.dtype != pl.Boolean:
        return values.len() > 0 and re.search(NAMES, name, re.IGNORECASE) is not None
    if values.dtype != pl.String or not (values := values.filter(values.str.strip_chars() != "")).len():
        return False
    try:
        read = Clock().read(values)
    except UnclearTime:
        return False
    return read.dtype.is_temporal() or re.search(NAMES, name, re.IGNORECASE) is not None


def _kinds(text: pl.Series) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return each text as a number (integers, if all numbers are) and as an instant, and its kind."""
    import polars as pl

    numbers, floats = text.cast(pl.Int64, strict=False), text.cast(pl.Float64, strict=False)
    numeric = floats.is_finite().fill_null(value=False)
    if (numbers.is_null() & numeric).any():
        numbers = floats
    if numeric.all():
        return numbers, numbers, pl.repeat(NUMBER, text.len(), dtype=pl.Int8, eager=True)
    instants, kinds = _iso(text)
    return numbers, instants, kinds.zip_with(~numeric, pl.Series([NUMBER], dtype=pl.Int8))


def _iso(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the instant and the kind of each text in ISO 8601. If no text has a time of day, the instants are dates."""
    import polars as pl

    fields = ("month", "day", "hour", "minute", "second", "fraction", "offset", "sign", "hours", "minutes")
    groups = text.str.extract_groups(ISO).struct.rename_fields(list(fields)).struct.unnest()
    date = (pl.col("month") + pl.col("day").fill_null("-01")).str.to_date("%Y-%m-%d", strict=False)
    numbers = ("hour", "minute", "second", "hours", "minutes")
    groups = groups.select(
        "offset",
        *(pl.col(name).cast(pl.Int64).fill_null(0) for name in numbers),
        date=date,
        fraction=pl.col("fraction").str.pad_end(9, "0").cast(pl.Int64).fill_null(0),
        west=pl.col("sign") == "-",
        clock=pl.col("hour").is_not_null(),
    )
    hour, minute, second, hours, minutes = map(pl.col, numbers)
    valid = (
        pl.col("date").dt.year().is_between(*YEARS).fill_null(value=False)
        & (pl.max_horizontal(hour, hours) <= 23)
        & (pl.max_horizontal(minute, second, minutes) <= 59)
    )
    east = pl.when("west").then(-1).otherwise(1) * (hours * 60 + minutes)
    seconds = pl.col("date").cast(pl.Int64) * 86_400 + (hour * 60 + minute - east) * 60 + second
    instants = groups.select(
        "date",
        instant=pl.when(valid).then(seconds) * 1_000_000_000 + pl.col("fraction"),
        kind=pl.when(~valid).then(OTHER).when(pl.col("offset").is_null()).then(LOCAL).otherwise(OFFSET).cast(pl.Int8),
    )
    if not groups["clock"].any():
        return instants["date"], instants["kind"]
    return instants["instant"].cast(pl.Datetime("ns")), instants["kind"]
