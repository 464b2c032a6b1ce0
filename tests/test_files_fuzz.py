"""Damaged bandits and results: reading gives a value or an error of Robandit, and nothing else."""

import hashlib
import io
import json
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robandit as rb
from helpers.fuzzing import as_json, damaged, more, read_or_refused, warped
from robandit.files import SEAL, UNSEALED, sealed
from robandit.live.saving import HEADER, MAGIC

GOLDEN = Path(__file__).parent / "golden"
BANDITS = [path.read_bytes() for path in sorted(GOLDEN.glob("*.bandit"))]
RESULTS = [path.read_bytes() for path in sorted(GOLDEN.glob("result.*.parquet"))]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "file"


@more(40)
@given(content=st.sampled_from(BANDITS).flatmap(damaged) | st.binary(max_size=80))
def test_damaged_bandits(path, content):
    path.write_bytes(content)
    assert not read_or_refused(rb.Bandit.load, path) or content in BANDITS


@more(60)
@given(data=st.data(), which=st.integers(0, len(BANDITS) - 1))
def test_bandits_made_by_hand(path, data, which):
    """With the right checksum, so that each field must be checked. (Numbers in arrays are protected only by the checksum.)"""
    content = data.draw(warped(msgspec.msgpack.decode(BANDITS[which][HEADER:])))
    try:
        payload = msgspec.msgpack.encode(content)
    except (TypeError, OverflowError, RecursionError, UnicodeEncodeError, msgspec.MsgspecError):
        return  # no file can hold it
    path.write_bytes(BANDITS[0][: len(MAGIC) + 4] + hashlib.sha256(payload).digest() + payload)
    read_or_refused(rb.Bandit.load, path)


@more(20)
@given(content=st.sampled_from(RESULTS).flatmap(damaged) | st.binary(max_size=80))
def test_damaged_results(path, content):
    path.write_bytes(content)
    assert not read_or_refused(rb.Result.from_parquet, path) or content in RESULTS


def about(content):
    return json.loads(pl.read_parquet_metadata(content)["robandit"])


@more(40)
@given(data=st.data())
def test_results_made_by_hand(path, data):
    frame = pl.read_parquet(RESULTS[-1])
    file = io.BytesIO()
    text = as_json(data.draw(warped(about(RESULTS[-1])))).decode()
    frame.write_parquet(file, metadata={"robandit": text, "seal": UNSEALED.decode()})
    path.write_bytes(sealed(file.getvalue()))
    assert SEAL in path.read_bytes()
    read_or_refused(rb.Result.from_parquet, path)
