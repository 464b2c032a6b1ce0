"""The example sets that come with Robandit."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from helpers.invalid import raises
from robandit import recorded
from robandit.errors import InvalidInput
from robandit.recorded import EXAMPLES, example

SHARED = Path(os.environ.get("ROBANDIT_SHARED_DATA") or Path(__file__).parents[2].parent / "shared" / "data")


def test_flights_are_those_of_the_source() -> None:
    path = SHARED / "nycflights_lateness" / "data.parquet"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    theirs = (
        pl.read_parquet(path)
        .group_by("arm")
        .agg(pl.len(), pl.col("reward").mean(), zeros=(pl.col("reward") == 0).sum())
    )
    ours = example("flights").summary()
    assert [(arm.arm, arm.n, arm.zeros) for arm in ours.arms] == sorted(theirs.select("arm", "len", "zeros").rows())
    means = dict(theirs.select("arm", "reward").rows())
    assert all(arm.mean == pytest.approx(-means[arm.arm], rel=1e-12) for arm in ours.arms)


def test_flights() -> None:
    records = example("flights")
    summary = records.summary()
    assert records.columns == ("day", "carrier", "lateness")
    assert summary.rows == 327_317
    assert len(summary.arms) == 15
    assert min(arm.n for arm in summary.arms) >= 300
    assert summary.minimize
    assert all(arm.whole for arm in summary.arms)
    assert min(arm.least for arm in summary.arms) == 0.0


def test_every_example_says_where_it_comes_from() -> None:
    for name in EXAMPLES:
        about = Path(recorded.__file__).with_name(f"{name}.md").read_text()
        assert "**Source.**" in about
        assert "**Licence.**" in about


def test_an_unknown_example() -> None:
    with raises(InvalidInput, parameter="name", rule="one of 'flights'"):
        example("trains")
