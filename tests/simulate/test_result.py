"""The result of a simulation: summaries, and the Parquet file."""

import errno
import json
import math
import os
import sys
from importlib import import_module

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers.own_policies import Greedy
from robandit.errors import CorruptFile, FileError, InvalidInput, NewerFile

# `robandit.simulate` is the function, so the module is taken from here.
module = import_module("robandit.simulate.result")


def losses():
    return rb.problems.negated_pareto(means=[-1.0, -1.5, -2.25], tail=1.8)


def same(a, b):
    return a.regret.tobytes() == b.regret.tobytes() and a.pulls.tobytes() == b.pulls.tobytes()


@pytest.fixture(scope="module")
def result():
    return rb.simulate([rb.UCB1(), Greedy(eps=0.1)], losses(), 300, 12, seed=5)


def test_summary_against_numpy(result):
    summary = result.summary()
    assert summary["policy"].to_list() == ["UCB1", "Greedy(eps=0.1)"]
    for i, row in enumerate(summary.iter_rows(named=True)):
        final = np.sort(result.regret[i, :, -1])
        assert row["mean"] == pytest.approx(final.sum() / 12)
        assert row["median"] == pytest.approx((final[5] + final[6]) / 2)
        assert row["q05"] == pytest.approx(final[0] + 0.55 * (final[1] - final[0]))  # place 0.05 * 11
        assert row["q95"] == pytest.approx(final[10] + 0.45 * (final[11] - final[10]))
        assert row["worst"] == final[11]
        assert final[0] <= row["mean_low"] <= row["mean"] <= row["mean_high"] <= final[11]
        # The bootstrap interval agrees with the normal interval up to half of its width.
        width = 2 * 1.96 * final.std() / math.sqrt(12)
        assert row["mean_high"] - row["mean_low"] == pytest.approx(width, rel=0.2)
    assert result.summary().equals(summary), "the bootstrap is seeded"


def test_one_replication_has_no_interval():
    summary = rb.simulate(rb.UCB1(), losses(), 40, 1, seed=0).summary()
    row = summary.row(0, named=True)
    assert math.isnan(row["mean_low"])
    assert math.isnan(row["mean_high"])
    assert row["mean"] == row["median"] == row["q05"] == row["q95"] == row["worst"]


def test_curves(result):
    curves = result.curves()
    assert curves.columns == ["policy", "t", "mean", "median", "q05", "q95", "worst"]
    assert len(curves) == 2 * len(result.checkpoints)
    second = curves.filter(pl.col("policy") == "Greedy(eps=0.1)")
    assert second["t"].to_list() == result.checkpoints.tolist()
    np.testing.assert_allclose(second["mean"], result.regret[1].sum(axis=0) / 12)
    np.testing.assert_allclose(second["worst"], result.regret[1].max(axis=0))
    np.testing.assert_allclose(second["median"], np.sort(result.regret[1], axis=0)[5:7].mean(axis=0))


def test_repr_and_times(result):
    assert repr(result) == "<Result: UCB1, Greedy(eps=0.1); horizon 300, 12 replications, seed 5>"
    assert (result.seconds >= 0).all()


# --- files ----------------------------------------------------------------------------------------------------------


def test_parquet_round_trip(result, tmp_path):
    huge = rb.simulate(rb.UCB1(scale=0.1), losses(), 9, 3, seed=2**127 + 1)
    for number, before in enumerate([result, huge]):
        path = tmp_path / f"{number}.parquet"
        before.to_parquet(path)
        after = rb.Result.from_parquet(str(path))
        assert same(before, after)
        assert after.regret.shape == before.regret.shape
        assert (after.policies, after.problem, after.horizon, after.seed) == (
            before.policies,
            before.problem,
            before.horizon,
            before.seed,
        )
        assert after.checkpoints.tolist() == before.checkpoints.tolist()
        assert after.summary().equals(before.summary())
        assert np.isnan(after.seconds).all()
        assert json.loads(pl.read_parquet_metadata(path)["robandit"])["version"] == 2
        assert len(pl.read_parquet(path)) == before.regret.shape[0] * before.regret.shape[1]


def test_damaged_parquet_is_rejected_by_name(result, tmp_path):
    path, bad = tmp_path / "r.parquet", tmp_path / "bad.parquet"
    result.to_parquet(path)
    good = path.read_bytes()
    for length in {0, 1, 4, 100, len(good) // 2, len(good) - 1}:
        bad.write_bytes(good[:length])
        with pytest.raises(CorruptFile, match=r"bad\.parquet"):
            rb.Result.from_parquet(bad)
    for place in range(0, len(good), max(1, len(good) // 400)):
        flipped = bytearray(good)
        flipped[place] ^= 1 << place % 8
        bad.write_bytes(flipped)
        with pytest.raises(CorruptFile, match="checksum"):
            rb.Result.from_parquet(bad)
    bad.write_bytes(b"garbage" * 100)
    with pytest.raises(CorruptFile, match="not a result"):
        rb.Result.from_parquet(bad)
    pl.DataFrame({"policy": [0], "replication": [0]}).write_parquet(bad)
    with pytest.raises(CorruptFile, match="not a result"):
        rb.Result.from_parquet(bad)


def test_a_newer_parquet_is_rejected_by_name(result, tmp_path, monkeypatch):
    path = tmp_path / "r.parquet"
    monkeypatch.setattr(module, "FORMAT_VERSION", 3)
    result.to_parquet(path)
    monkeypatch.setattr(module, "FORMAT_VERSION", 2)
    with pytest.raises(NewerFile, match=r"format 3.*up to 2.*upgrade"):
        rb.Result.from_parquet(path)


def test_a_parquet_with_a_policy_that_is_not_imported(result, tmp_path, monkeypatch):
    path = tmp_path / "r.parquet"
    result.to_parquet(path)
    registry = sys.modules["robandit.policies.base"]._registry
    monkeypatch.delitem(registry, Greedy.tag())
    with pytest.raises(InvalidInput, match=r"Greedy.*Import its module first"):
        rb.Result.from_parquet(path)


def test_a_parquet_that_is_not_there(result, tmp_path):
    with pytest.raises(FileError, match="No such file"):
        rb.Result.from_parquet(tmp_path / "none.parquet")
    with pytest.raises(FileError, match="cannot be read"):
        rb.Result.from_parquet(tmp_path)
    with pytest.raises(FileError, match="No such file"):
        result.to_parquet(tmp_path / "no folder" / "r.parquet")


def test_a_full_disk_leaves_the_old_parquet(result, tmp_path, monkeypatch):
    path = tmp_path / "r.parquet"
    result.to_parquet(path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left"):
        rb.simulate(rb.UCB1(), losses(), 30, 2, seed=1).to_parquet(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["r.parquet"]
