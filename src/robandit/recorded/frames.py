"""Readers of tables with typed columns: polars and pandas frames, and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robandit.errors import InvalidInput
from robandit.recorded.columns import NUMERIC, number_expressions
from robandit.recorded.reader import FIRST_ROWS, Reader, batches_of, reading_errors

if TYPE_CHECKING:
    import polars as pl


class FrameReader(Reader):
    """A reader of a lazy frame, which is run again for every pass."""

    def __init__(self, frame: pl.LazyFrame, source: str, rows: int | None) -> None:
        self._frame, self.source, self.rows = frame, source, rows
        with reading_errors(self.source):
            self._schema = frame.collect_schema()
        self.columns = tuple(self._schema.names())

    def batches(self, roles: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        selected = [each for role, name in roles.items() for each in self._expressions(role, name)]
        yield from batches_of(self._frame.select(selected), self.source)

    def first_rows(self) -> pl.DataFrame:
        with reading_errors(self.source):
            return self._frame.head(FIRST_ROWS).collect()

    def _expressions(self, role: str, name: str) -> list[pl.Expr]:
        import polars as pl

        dtype = self._schema[name]
        column = pl.col(name)
        subject = f"the column {name!r} of {self.source} holds {dtype}"
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise InvalidInput(f"{subject}: it must hold {'one name' if role == 'arm' else 'one value'} per row")
        if dtype in (pl.String, pl.Categorical, pl.Enum):
            column = column.cast(pl.String)
            return number_expressions(column, role) if role in NUMERIC else [column.alias(role)]
        if role == "arm":
            return [(column.fill_nan(None) if dtype.is_float() else column).cast(pl.String).alias(role)]
        if role not in NUMERIC:
            return [column.alias(role)]
        if dtype.is_temporal():
            raise InvalidInput(
                f"{subject}: it must hold numbers; convert times to a number of seconds first, in polars with "
                "dt.total_microseconds() / 1e6"
            )
        return [column.cast(pl.Float64).alias(role)]


def read_parquet(path: Path, source: str) -> FrameReader:
    """Return a reader of a Parquet file."""
    import polars as pl

    with reading_errors(source):
        frame = pl.scan_parquet(path, glob=False)
        rows = int(frame.select(pl.len()).collect().item())
    return FrameReader(frame, source, rows)


def read_frame(frame: Any) -> FrameReader:
    """Return a reader of a polars or pandas frame in memory."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return FrameReader(frame.lazy(), "the data frame", frame.height)
    if isinstance(frame, pl.LazyFrame):
        return FrameReader(frame, "the lazy frame", None)
    if hasattr(frame, "columns") and hasattr(frame, "iloc"):
        names = [str(name) for name in frame.columns]
        columns = [_pandas_column(name, frame.iloc[:, names.index(name)]) for name in dict.fromkeys(names)]
        reader = FrameReader(pl.LazyFrame(columns), "the data frame", len(frame))
        reader.repeated = tuple({name for name in names if names.count(name) > 1})
        return reader
    rule = "the name of a file, '-', or a polars or pandas DataFrame"
    raise InvalidInput(f"path has the type {type(frame).__name__}: it must be {rule}", parameter="path", rule=rule)


def _pandas_column(name: str, column: Any) -> pl.Series:
    """Return numbers and times unchanged, and other values as text. Does not need pyarrow, which may not be installed."""
    import polars as pl

    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert(None)
    if getattr(column.dtype, "kind", "O") in "biufMm" and hasattr(column.dtype, "str"):  # NumPy's own types
        return pl.Series(name, column.to_numpy())
    missing = column.isna().to_numpy()
    texts = [None if absent else str(value) for value, absent in zip(column.tolist(), missing, strict=True)]
    return pl.Series(name, texts, dtype=pl.String)
