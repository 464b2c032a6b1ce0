"""Damaged files: an error of ours or an answer, and never anything else."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robandit.errors import RobanditError
from robandit.recorded.source import open_records

FRAME = pl.DataFrame(
    {"arm": [f'a"{i % 3}\n' for i in range(40)], "reward": [i * 0.75 - 3 for i in range(40)], "time": range(40)}
)


def contents() -> dict[str, bytes]:
    def parquet(**options: object) -> bytes:
        file = io.BytesIO()
        FRAME.write_parquet(file, **options)  # type: ignore[arg-type]
        return file.getvalue()

    csv = FRAME.write_csv().encode()
    return {
        "a.csv": csv,
        "a.jsonl": FRAME.write_ndjson().encode(),
        "a.csv.gz": gzip.compress(csv),
        "a.parquet": parquet(),
        "plain.parquet": parquet(compression="uncompressed"),
    }


CONTENTS = contents()


def read(name: str, content: bytes, skip_bad: bool = False) -> int | None:
    """The number of rows, or None if the file is refused."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            records = open_records(path, skip_bad=skip_bad)
            rows = records.summary().rows
            records.log()
            records.table()
        except RobanditError:
            return None
        return rows


@pytest.mark.parametrize("name", CONTENTS)
def test_the_files_are_good(name: str) -> None:
    assert read(name, CONTENTS[name]) == 40


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["a.csv", "a.jsonl", "a.parquet", "a.csv.gz", "a"]), st.booleans())
def test_any_bytes(content: bytes, name: str, skip_bad: bool) -> None:
    read(name, content, skip_bad)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_after_a_header(content: bytes, skip_bad: bool) -> None:
    read("a.csv", b"arm,reward\n" + content, skip_bad)
    read("a.jsonl", b'{"arm": "a", "reward": 1}\n' + content, skip_bad)
    read("a.csv", gzip.compress(b"arm,reward\n") + content, skip_bad)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(CONTENTS)), st.floats(0.0, 1.0, exclude_max=True))
def test_truncated_files(name: str, part: float) -> None:
    whole = CONTENTS[name]
    rows = read(name, whole[: int(len(whole) * part)])
    # A text may end after any line; what is packed or has an index must be whole.
    assert rows is None or (rows <= 40 and name in ("a.csv", "a.jsonl"))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(CONTENTS)),
    st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_changed_bytes(name: str, changes: list[tuple[float, int]]) -> None:
    content = bytearray(CONTENTS[name])
    for where, byte in changes:
        content[min(int(where * len(content)), len(content) - 1)] = byte
    read(name, bytes(content), skip_bad=True)
