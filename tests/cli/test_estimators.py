"""`robandit estimators FILE`: every estimator of a column, from every kind of file."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from robandit import estimators as est
from robandit.cli import application
from robandit.cli.estimators import estimators
from robandit.diagnostics.means import SEED, every_mean
from robandit.errors import InvalidInput
from robandit.laws import Pareto
from robandit.recorded import open_records

LATENCY = Pareto(tail=2.5).sample(600, seed=0)
KNOWN = {"eps": 0.5, "u": 5.0, "v": 3.0}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def printed(capsys, *args, **options) -> str:
    estimators(*args, **options)
    return capsys.readouterr().out


def test_every_estimator_has_a_row():
    functions = {name for name in est.__all__ if name.endswith(("_mean", "_means", "_catoni"))} - {"trimmed_mean"}
    rows = every_mean(LATENCY)
    assert functions == {row.name for row in rows if not row.name.startswith("-")}
    assert all(np.isfinite(row.value) or row.note.startswith("needs --") for row in rows)
    assert all(np.isfinite(row.low) or np.isfinite(row.high) or row.note for row in rows)


def test_the_table_says_when_its_intervals_hold(tmp_path, capsys):
    pl.DataFrame({"x": LATENCY}).write_csv(tmp_path / "x.csv")
    text = " ".join(printed(capsys, str(tmp_path / "x.csv"), column="x").split())
    assert "Each interval alone holds with probability 95 %, if the assumption in its note holds." in text


def test_rows_are_the_estimates():
    x = np.random.default_rng(SEED).permutation(LATENCY)
    rows = {row.name: row for row in every_mean(LATENCY, delta=0.1, **KNOWN)}
    for name, options in {
        "median_of_means": {"eps": 0.5, "v": 3.0},
        "truncated_mean": {"eps": 0.5, "u": 5.0},
        "infinite_variance_catoni": {"eps": 0.5, "v": 3.0},
        "lepskii_catoni": {"eps": 0.5},
        "p_robust_mean": {"p": 1.5, "c": 5.0 ** (1 / 1.5), "u": 5.0},
    }.items():
        estimate = getattr(est, name)(x, delta=0.1, **options)
        assert (rows[name].value, rows[name].low, rows[name].high) == (estimate.value, *estimate.confidence_interval)
        assert rows[name].note == estimate.assumed
    two_sided = est.adaptive_trimmed_mean(x, delta=0.1, eps=0.5, u=5.0)
    assert (rows["- two-sided"].low, rows["- two-sided"].high) == two_sided.confidence_interval
    negated = est.adaptive_trimmed_mean(-x, delta=0.1, bonus="likelihood")
    assert rows["- likelihood, of -x"].low == -negated.upper
    assert rows["- likelihood, of -x"].value == -negated.value
    assert rows["adaptive_trimmed_mean"].high == np.inf
    assert "contradict its assumption" in rows["adaptive_trimmed_mean"].note
    assert rows["catoni_mean"].note == "needs --v with eps = 1"
    assert {r.name: r for r in every_mean(LATENCY, v=3.0)}["catoni_mean"].note == "variance <= 3 (Lemma 3)"


@pytest.mark.parametrize("options", [{"delta": 1.5}, {"eps": 2.0}, {"u": -1.0}, {"v": 0.0}])
def test_invalid_options_are_named(options):
    with pytest.raises(InvalidInput, match=rf"^{next(iter(options))} = "):
        every_mean(LATENCY, **options)


def test_every_format(tmp_path, capsys, monkeypatch):
    frame = pl.DataFrame({"server": ["a", "b"] * 300, "latency": LATENCY})
    frame.write_csv(tmp_path / "waits.csv")
    frame.write_parquet(tmp_path / "waits.parquet")
    frame.select("latency").write_csv(tmp_path / "alone.csv")
    lines = "\n".join(json.dumps({"latency": value}) for value in LATENCY.tolist())
    (tmp_path / "waits.jsonl").write_text(lines)
    answers = [
        printed(capsys, str(tmp_path / name), column="latency", **KNOWN)
        for name in ("waits.csv", "waits.parquet", "alone.csv", "waits.jsonl")
    ]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines.encode())))
    answers.append(printed(capsys, "-", column="latency", **KNOWN))
    assert answers[0].startswith("latency: 600 values")
    assert f"{float(est.sample_mean(LATENCY)):.5g}" in answers[0]
    assert len(set(answers)) == 1
    arms = printed(capsys, str(tmp_path / "waits.csv"), column="latency", arm="server")
    assert "a: 300 values" in arms
    assert "b: 300 values" in arms


def test_a_condition(tmp_path, capsys):
    file = tmp_path / "waits.csv"
    file.write_text("latency,ok\n1,true\n2,true\n300,false\n3,true\n")
    text = printed(capsys, str(file), column="latency", where="ok = true")
    assert "latency: 3 values" in text
    assert "--where 'ok = true' keeps 3 rows and drops 1." in text


def test_bad_rows(tmp_path, capsys):
    file = tmp_path / "bad.csv"
    file.write_text("latency\n1\n\nx\n2\nnan\n3\n")
    with pytest.raises(
        InvalidInput, match=r"2 bad rows: line 4: the value 'x' is not a number; line 6: the value is NaN"
    ):
        estimators(str(file), column="latency")
    text = printed(capsys, str(file), column="latency", skip_bad=True)
    assert "latency: 3 values" in text
    assert "Skipped 2 bad rows: line 4" in text
    file.write_text("latency,other\n1,2\n,3\n")
    message = r"line 3: the value is missing .* Each row needs a finite number in 'latency': correct"
    with pytest.raises(InvalidInput, match=message):
        estimators(str(file), column="latency")
    with pytest.raises(InvalidInput, match=r"no column 'lat' .*did you mean 'latency'.*: .* \(--column\)$"):
        estimators(str(file), column="lat")
    file.write_text("latency\nx\n")
    with pytest.raises(InvalidInput, match=r"no good row: .* the value 'x' .*; name another with --column$"):
        estimators(str(file), column="latency")
    file.write_text("server,latency\na,x\n")
    with pytest.raises(InvalidInput, match=r"as its value\..*; name others with arm= \(--arm\) and --column$"):
        estimators(str(file), column="latency", arm="server")


def test_one_arm_excludes_a_column_of_arms():
    frame = pl.DataFrame({"time": [2, 1], "latency": [5.0, 7.0]})
    assert open_records(frame, reward="latency", one_arm="all").log().rewards.tolist() == [7.0, 5.0]
    with pytest.raises(InvalidInput, match="arm = 'server' and one_arm = 'all': give one"):
        open_records(frame, arm="server", one_arm="all")


def test_the_command(tmp_path, capsys):
    file = tmp_path / "waits.csv"
    file.write_text("latency\n1\n2\n3\n")
    run = {"exit_on_error": False, "print_error": False, "result_action": "return_value"}
    application()(["estimators", str(file), "--column", "latency"], **run)
    assert "latency: 3 values" in capsys.readouterr().out
    with pytest.raises(InvalidInput, match="no file is given"):
        application()(["estimators"], **run)
