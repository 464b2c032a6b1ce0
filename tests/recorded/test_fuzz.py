"""Damaged files: an error of ours or an answer, and never anything else."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.fuzzing import NASTY, damaged, more
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
    """The number of rows, or None if the file is rejected."""
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


@more(60)
@given(st.binary(max_size=200), st.sampled_from(["a.csv", "a.jsonl", "a.parquet", "a.csv.gz", "a"]), st.booleans())
def test_any_bytes(content: bytes, name: str, skip_bad: bool) -> None:
    read(name, content, skip_bad)


@more(60)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_after_a_header(content: bytes, skip_bad: bool) -> None:
    read("a.csv", b"arm,reward\n" + content, skip_bad)
    read("a.jsonl", b'{"arm": "a", "reward": 1}\n' + content, skip_bad)
    read("a.csv", gzip.compress(b"arm,reward\n") + content, skip_bad)


@more(80)
@given(st.sampled_from(sorted(CONTENTS)), st.floats(0.0, 1.0, exclude_max=True))
def test_truncated_files(name: str, part: float) -> None:
    whole = CONTENTS[name]
    rows = read(name, whole[: int(len(whole) * part)])
    # A text may end after any line; what is packed or has an index must be whole.
    assert rows is None or (rows <= 40 and name in ("a.csv", "a.jsonl"))


@more(60)
@given(st.data(), st.sampled_from(sorted(CONTENTS)), st.booleans())
def test_damaged_files(data: st.DataObject, name: str, skip_bad: bool) -> None:
    read(name, data.draw(damaged(CONTENTS[name])), skip_bad)


@pytest.mark.parametrize("value", NASTY, ids=lambda value: ascii(value[:8]))
def test_strange_values(value: bytes) -> None:
    for skip_bad in (False, True):
        for text in (b"%s,1\n", b"a,%s\n", b'"%s",1\n', b"%s\n"):
            read("a.csv", b"arm,reward\nb,2\n" + text % value, skip_bad)
        for text in (b'{"arm": %s, "reward": 1}\n', b'{"arm": "a", "reward": %s}\n', b'{"arm": "%s", "reward": 1}\n'):
            read("a.jsonl", b'{"arm": "b", "reward": 2}\n' + text % value, skip_bad)
