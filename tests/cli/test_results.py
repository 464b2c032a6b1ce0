from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import robandit as rb
from helpers import made_up
from helpers.invalid import raises
from robandit.cli.results import export, show
from robandit.errors import FileError, InvalidInput
from robandit.experiments.plan import Played, planned
from robandit.experiments.runner import run
from robandit.experiments.statistics import summary, verdict
from robandit.experiments.store import Store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("results") / "run"
    problems = [Played(name, made_up.PROBLEM, horizon) for name, horizon in (("short", 100), ("long", 200))]
    policies = [rb.UCB1(), rb.EpsilonGreedy(), rb.KurtosisUCB()]
    run(planned(problems, policies, replications=6, seed=1), where, threads=1)
    return where


def test_show(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(folder)
    out = capsys.readouterr().out
    assert " ".join(out.split()).startswith(verdict(Store.open(folder).results()))
    for words in ("short: regret after 100 pulls", "long: regret after 200 pulls", "mean rank over 2 problems"):
        assert words in out
    assert "Kurtosis UCB is skipped on short, long: KurtosisUCB needs kappa" in " ".join(out.split())


def test_show_one_problem(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(folder, problem=["long"])
    out = capsys.readouterr().out
    assert "long: regret" in out
    assert "short: regret" not in out
    assert "mean rank" not in out
    with raises(InvalidInput, parameter="--problem", rule="one of 'short', 'long'"):
        show(folder, problem=["long", "middle"])


def test_export(folder: Path, tmp_path: Path) -> None:
    results = Store.open(folder).results()
    frame = summary(results)
    export(folder, out=tmp_path / "summary.csv")
    again = pl.read_csv(tmp_path / "summary.csv", schema=frame.schema)
    # An empty string and no value look the same in CSV.
    text = [column for column, kind in frame.schema.items() if kind == pl.String]
    assert again.with_columns(pl.col(text).fill_null("")).equals(frame)


def test_export_rejects_before_it_reads(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        export(tmp_path / "none", out=tmp_path / "no" / "x.csv")
    with pytest.raises(FileError, match="not a run folder"):
        export(tmp_path, out=tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()
