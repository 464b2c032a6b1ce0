"""Result files and run folders of every format that was ever written still load, with the same numbers.

``result.format1.parquet`` was written before a result knew the number of its first replication. To add a format, write its files
with the release that introduces it, never to make a failing test pass.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

import robandit as rb
from robandit.errors import CorruptFile
from robandit.experiments import Store, run
from robandit.experiments.own_code import import_modules
from robandit.experiments.store import FORMAT_VERSION

GOLDEN = Path(__file__).parents[1] / "golden"
OWN = [16.5, 13.5, 12.0]


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


@pytest.mark.parametrize("version", [1, 2])
def test_a_run_folder_loads_and_is_complete(version):
    import_modules(["golden_policy"], GOLDEN)
    store = Store.open(GOLDEN / f"run.format{version}")
    results = store.results()
    assert results.complete
    own = {"LastBest(initial=0.5)": OWN} if version > 1 else {}
    assert store.changed_modules() == []
    assert [module.name for module in store.modules] == ["golden_policy"] * (version > 1)
    assert {m.cell.label: m.final.tolist() for m in results.measured} == own | {
        "UCB1": [5.5, 5.5, 8.5],
        "HTINF": [29.5, 25.5, 22.5],
        "Kurtosis UCB": [25.0, 25.0, 25.0],
    }
    assert store.about["command"] == "robandit run golden.toml"
    assert store.about["name"] == "golden"


@pytest.mark.parametrize("version", [1, 2])
def test_a_run_folder_continues_in_todays_format(version, tmp_path):
    import_modules(["golden_policy"], GOLDEN)
    shutil.copytree(GOLDEN / f"run.format{version}", tmp_path / "run")
    before = Store.open(tmp_path / "run")
    outcome = run(before.plan, tmp_path / "run", threads=1)
    assert (outcome.done, outcome.before) == (0, len(before.plan.units))
    data = json.loads((tmp_path / "run" / "run.json").read_text())
    assert data["format"] == FORMAT_VERSION
    assert len(data["checksum"]) == 64


def test_a_damaged_one_fails_by_name(tmp_path):
    shutil.copytree(GOLDEN / "run.format1", tmp_path / "run")
    part = sorted((tmp_path / "run" / "parts").iterdir())[0]
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(CorruptFile, match=part.name):
        Store.open(tmp_path / "run").results()
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(CorruptFile, match=r"run\.json"):
        Store.open(tmp_path / "run")
