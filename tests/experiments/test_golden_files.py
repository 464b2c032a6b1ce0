"""Result files and run folders of every format that was ever written still load, with the same numbers.

``result.format1.parquet`` was written before a result knew the number of its first replication. To add a format, write its files
with the release that introduces it, never to make a failing test pass.
"""

import shutil
import sys
from pathlib import Path

import pytest

import robandit as rb
from robandit.errors import CorruptFile
from robandit.experiments import Store
from robandit.experiments.store import FORMAT_VERSION

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("result.format*.parquet")), ids=lambda p: p.name)
def test_results_load(path):
    result = rb.Result.from_parquet(path)
    assert [policy.name for policy in result.policies] == ["UCB1", "epsilon-greedy"]
    assert result.problem == rb.problems.gaussian(means=[0.0, -0.5])
    assert (result.horizon, result.seed, result.first, result.checkpoints.tolist()) == (100, 5, 0, [10, 100])
    assert result.regret[:, :, -1].tolist() == [[5.5, 5.5, 8.5], [3.0, 4.0, 6.0]]
    assert result.pulls[0].tolist() == [[89, 11], [89, 11], [83, 17]]


def test_there_are_golden_files_of_todays_formats():
    assert (GOLDEN / f"result.format{sys.modules['robandit.simulate.result'].FORMAT_VERSION}.parquet").exists()
    assert (GOLDEN / f"run.format{FORMAT_VERSION}").is_dir()


def test_a_run_folder_loads_and_is_complete():
    store = Store.open(GOLDEN / "run.format1")
    results = store.results()
    assert results.complete
    assert {m.cell.label: m.final.tolist() for m in results.measured} == {
        "UCB1": [5.5, 5.5, 8.5],
        "HTINF": [29.5, 25.5, 22.5],
        "Kurtosis UCB": [25.0, 25.0, 25.0],
    }
    assert store.about["command"] == "robandit run golden.toml"
    assert store.about["name"] == "golden"


def test_a_damaged_one_fails_by_name(tmp_path):
    shutil.copytree(GOLDEN / "run.format1", tmp_path / "run")
    part = sorted((tmp_path / "run" / "parts").iterdir())[0]
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(CorruptFile, match=part.name):
        Store.open(tmp_path / "run").results()
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(CorruptFile, match=r"run\.json"):
        Store.open(tmp_path / "run")
