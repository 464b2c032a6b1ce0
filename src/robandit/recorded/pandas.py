"""Frames of pandas, as Polars frames. Without pyarrow, which pandas does not always bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["plain"]


def plain(frame: Any) -> pl.DataFrame:
    """The frame with columns that Polars knows: numbers, times, and text for all else. Of repeated names only the first."""
    import polars as pl

    columns: dict[str, pl.Series] = {}
    for place, name in enumerate(frame.columns):
        if str(name) not in columns:
            columns[str(name)] = _series(str(name), frame.iloc[:, place])
    return pl.DataFrame(list(columns.values()))


def _series(name: str, column: Any) -> pl.Series:
    import polars as pl

    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert(None)
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biufMm" and hasattr(column.dtype, "str"):  # NumPy's own types
        return pl.Series(name, column.to_numpy())
    missing = column.isna().to_numpy()
    texts = [None if gone else str(value) for value, gone in zip(column.tolist(), missing, strict=True)]
    return pl.Series(name, texts, dtype=pl.String)
