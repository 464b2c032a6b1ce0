"""Files of Robandit 0.1 are read and continued with the same numbers. ``golden/make_0_1.py`` made them, with the release itself."""

import json
import platform
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers.typed import typed
from robandit.experiments import Store, run
from robandit.experiments.store import FORMAT_VERSION

ARCHIVE = zipfile.ZipFile(Path(__file__).parent / "golden" / "release-0.1.zip")
EXPECTED = json.loads(ARCHIVE.read("expected.json"))
ARMS = ("eu", 7, ("us", None, 0.5))
EXACT = (platform.system(), platform.machine()) == (
    "Linux",
    "x86_64",
)  # elsewhere, logarithms may differ in the last bit


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the archive, in the working directory."""
    for name in ARCHIVE.namelist():
        if not name.startswith("bandits/"):
            ARCHIVE.extract(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers(store):
    """Everything that was measured."""
    return {(m.cell.label, m.cell.played.name): (m.regret.tolist(), m.pulls.tolist()) for m in store.results().measured}


@pytest.mark.parametrize("name", EXPECTED["bandits"])
def test_a_bandit_of_every_policy_decides_as_version_0_1(name):
    expected = EXPECTED["bandits"][name]
    bandit = rb.Bandit.from_bytes(ARCHIVE.read(f"bandits/{name}"), compile="never")
    assert bandit.policy.to_dict() == expected["policy"]
    assert bandit.arms == ARMS
    ((number, arm),) = ((decision.id, ARMS.index(decision.arm)) for decision in bandit.open)
    assert [number, arm] == expected["open"]
    bandit = rb.Bandit.from_bytes(bandit.to_bytes(), compile="never")  # in today's format
    for reward, arm in zip(EXPECTED["told"], expected["chosen"], strict=True):
        decision = bandit.decide()
        assert ARMS.index(decision.arm) == arm
        bandit.reward(decision, reward - arm)
    bandit.reward(number, -1.0)
    assert bandit.open == ()
    found = [[row[column] for column in expected["columns"]] for row in bandit.estimates()]
    if EXACT:
        assert [[repr(value) for value in row] for row in found] == expected["estimates"]
    wanted = [[float(number) for number in row] for row in expected["estimates"]]
    np.testing.assert_allclose(np.array(found, dtype=float), wanted, rtol=1e-12)


def test_every_policy_and_every_law_is_read_and_its_finished_units_are_found(folder):
    plan = Store.open("every").plan
    assert [unit.key for unit in plan.units] == EXPECTED["keys"]


def test_a_result_is_read(folder):
    result = rb.Result.from_parquet("result.parquet")
    assert (result.first, result.seed, result.horizon) == (1, 5, 50)
    assert result.pulls.sum() == 2 * 2 * 50
    again = rb.simulate(result.policies, result.problem, 50, 2, seed=5, first=1)
    assert again.pulls.tolist() == result.pulls.tolist()


def test_a_run_is_completed_and_its_folder_gets_todays_format(folder):
    before = Store.open("run")
    assert (before.about["name"], before.about["versions"]["robandit"]) == ("written by 0.1", "0.1.0")
    expected = numbers(before)
    tables = {name: pl.read_parquet(f"run/results/{name}.parquet") for name in ("regret", "pulls")}
    for unit in before.plan.units[:2]:
        before.ledger.part(unit).unlink()
    outcome = run(before.plan, "run", threads=1)
    assert (outcome.done, outcome.before, outcome.failed) == (2, 1, ())
    assert numbers(outcome.store) == expected
    outcome.store.write_results()
    assert all(pl.read_parquet(f"run/results/{name}.parquet").equals(tables[name]) for name in tables)
    assert json.loads(Path("run/run.json").read_text())["format"] == FORMAT_VERSION


def test_commands_read_and_complete_a_run(folder):
    assert "AdaKL-UCB" in typed("results", "show", "run", cwd=folder)[0]
    typed("results", "export", "run", "--out", "summary.csv", cwd=folder)
    assert pl.read_csv("summary.csv")["policy"].to_list() == ["UCB1", "epsilon-greedy", "AdaKL-UCB"]
    before = Store.open("run")
    expected = numbers(before)
    before.ledger.part(before.plan.units[0]).unlink()
    # AdaKLUCB means another schedule today: the message says so, and the spec can name the old one.
    message = typed("run", "spec.toml", "--out", "run", cwd=folder, code=1)[1]
    assert 'schedule is "practical" there and "adaptive" here' in message
    spec = Path("spec.toml").read_text()
    Path("spec.toml").write_text(spec.replace('"AdaKLUCB"', "'AdaKLUCB(schedule=\"practical\")'"))
    assert "1 played" in typed("run", "spec.toml", "--out", "run", "--threads", "1", cwd=folder)[0]
    assert "AdaKL-UCB" in Path("run/report.html").read_text(encoding="utf-8")
    assert numbers(Store.open("run")) == expected


def test_a_replay_is_completed(folder):
    expected = numbers(Store.open("replay"))
    assert [problem for _, problem in expected] == ["log, bootstrap", "log, in-order", "log, rejection"]
    for part in Path("replay/parts").iterdir():
        part.unlink()
    modes = ("--mode", "bootstrap", "--mode", "in-order", "--mode", "rejection")
    words = ("--out", "replay", "--policy", "UCB1", "--replications", "3", "--threads", "1")
    assert "3 played" in typed("replay", "log.csv", *words, *modes, cwd=folder)[0]
    assert numbers(Store.open("replay")) == expected
