"""Files of Robandit 0.1 are read and continued with the same numbers, or refused by name if their policy is gone.

``golden/make_0_1.py`` made them, with the release itself.
"""

import json
import platform
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import robandit as rb
from helpers.typed import typed
from robandit.errors import InvalidInput
from robandit.experiments import Store, run
from robandit.experiments.store import FORMAT_VERSION
from robandit.policies.former import identity

ARCHIVE = zipfile.ZipFile(Path(__file__).parent / "golden" / "release-0.1.zip")
EXPECTED = json.loads(ARCHIVE.read("expected.json"))
ARMS = ("eu", 7, ("us", None, 0.5))
GONE = r"is gone since Robandit 0\.3: Robandit 0\.2\.0 still reads and plays it\. Today take "


def is_gone(policy):
    """Return whether 0.1 could play a policy that today's version cannot."""
    return policy.get("center") == "median"


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


def without_gone(folder):
    """Take the policies that are gone out of a run folder of format 1, which has no checksum; return their labels."""
    path = Path(folder) / "run.json"
    data = json.loads(path.read_text())
    gone = [cell["label"] for cell in data["cells"] if is_gone(cell["policy"])]
    data["cells"] = [cell for cell in data["cells"] if not is_gone(cell["policy"])]
    path.write_text(json.dumps(data))
    return gone


def numbers(store):
    """Everything that was measured."""
    return {(m.cell.label, m.cell.played.name): (m.regret.tolist(), m.pulls.tolist()) for m in store.results().measured}


@pytest.mark.parametrize("name", [name for name, each in EXPECTED["bandits"].items() if is_gone(each["policy"])])
def test_a_bandit_whose_policy_is_gone_is_refused_by_name(name):
    with pytest.raises(InvalidInput, match=rf"{name[3:]}\(.*{GONE}") as caught:
        rb.Bandit.from_bytes(ARCHIVE.read(f"bandits/{name}"), compile="never")
    assert caught.value.value == EXPECTED["bandits"][name]["policy"]


def decided_by_the_old_rule(bandit):
    """Return the next decision as an event of 0.2, whose rule does not count decisions in flight, unlike that of `decide`."""
    events = []
    rb.Bandit.from_bytes(bandit.to_bytes(), log=events.append, compile="never").decide()
    return {name: value for name, value in events[0].to_dict().items() if name != "rule"}


@pytest.mark.parametrize("name", [name for name, each in EXPECTED["bandits"].items() if not is_gone(each["policy"])])
def test_a_bandit_of_every_policy_decides_as_version_0_1(name):
    expected = EXPECTED["bandits"][name]
    bandit = rb.Bandit.from_bytes(ARCHIVE.read(f"bandits/{name}"), compile="never")
    assert identity(bandit.policy.to_dict()) == expected["policy"]
    assert bandit.arms == ARMS
    ((number, arm),) = ((decision.id, ARMS.index(decision.arm)) for decision in bandit.open)
    assert [number, arm] == expected["open"]
    bandit = rb.Bandit.from_bytes(bandit.to_bytes(), compile="never")  # in today's format
    for reward, arm in zip(EXPECTED["told"], expected["chosen"], strict=True):
        decided = decided_by_the_old_rule(bandit)
        assert ARMS.index(decided["arm"]) == arm
        bandit.apply(decided)
        bandit.reward(decided["id"], reward - arm)
    bandit.reward(number, -1.0)
    assert bandit.open == ()
    found = [[row[column] for column in expected["columns"]] for row in bandit.estimates()]
    if EXACT:
        assert [[repr(value) for value in row] for row in found] == expected["estimates"]
    wanted = [[float(number) for number in row] for row in expected["estimates"]]
    np.testing.assert_allclose(np.array(found, dtype=float), wanted, rtol=1e-12)


def test_every_policy_and_every_law_is_read_and_its_finished_units_are_found(folder):
    with pytest.raises(InvalidInput, match=GONE):
        Store.open("every")
    assert set(without_gone("every")) == {"AdaKL-UCB", "AdaKL-UCB(schedule='proved')", "AdaR-UCB(center='median')"}
    keys = [unit.key for unit in Store.open("every").plan.units]
    assert keys == [key for key in EXPECTED["keys"] if key in set(keys)]
    assert len(keys) > 0.9 * len(EXPECTED["keys"])


def test_a_result_is_read(folder):
    result = rb.Result.from_parquet("result.parquet")
    assert (result.first, result.seed, result.horizon) == (1, 5, 50)
    assert result.pulls.sum() == 2 * 2 * 50
    again = rb.simulate(result.policies, result.problem, 50, 2, seed=5, first=1)
    assert again.pulls.tolist() == result.pulls.tolist()


def test_a_run_is_completed_and_its_folder_gets_todays_format(folder):
    without_gone("run")
    before = Store.open("run")
    assert (before.about["name"], before.about["versions"]["robandit"]) == ("written by 0.1", "0.1.0")
    expected = numbers(before)
    tables = {name: pl.read_parquet(f"run/results/{name}.parquet") for name in ("regret", "pulls")}
    for unit in before.plan.units[:2]:
        before.ledger.part(unit).unlink()
    outcome = run(before.plan, "run", threads=1)
    assert (outcome.done, outcome.before, outcome.failed) == (2, 0, ())
    assert numbers(outcome.store) == expected
    outcome.store.write_results()
    for name, table in tables.items():
        assert pl.read_parquet(f"run/results/{name}.parquet").equals(table.filter(pl.col("policy") != "AdaKL-UCB"))
    assert json.loads(Path("run/run.json").read_text())["format"] == FORMAT_VERSION


def test_commands_read_and_complete_a_run(folder):
    message = typed("results", "show", "run", cwd=folder, code=1)[1]
    assert "AdaKLUCB(schedule='practical') is gone since Robandit 0.3: Robandit 0.2.0 still reads" in " ".join(
        message.split()
    )
    without_gone("run")
    typed("results", "export", "run", "--out", "summary.csv", cwd=folder)
    assert pl.read_csv("summary.csv")["policy"].to_list() == ["UCB1", "epsilon-greedy"]
    before = Store.open("run")
    expected = numbers(before)
    before.ledger.part(before.plan.units[0]).unlink()
    message = typed("run", "spec.toml", "--out", "run", cwd=folder, code=1)[1]  # AdaKLUCB is another policy today
    assert "other policies (none there, AdaKL-UCB here)" in " ".join(message.split())
    spec = Path("spec.toml").read_text()
    Path("spec.toml").write_text(spec.replace(', "AdaKLUCB"', ""))
    assert "1 played" in typed("run", "spec.toml", "--out", "run", "--threads", "1", cwd=folder)[0]
    assert "epsilon-greedy" in Path("run/report.html").read_text(encoding="utf-8")
    assert numbers(Store.open("run")) == expected


def test_a_spec_whose_policy_is_gone_is_refused_by_name(folder):
    for policy in ("AdaKLUCB(schedule='practical')", "AdaRUCB(center='median')"):
        Path("old.toml").write_text(Path("spec.toml").read_text().replace('"AdaKLUCB"', f'"{policy}"'))
        message = typed("run", "old.toml", "--out", "old", cwd=folder, code=1)[1]
        assert f"{policy} is gone since Robandit 0.3: Robandit 0.2.0 still reads" in " ".join(message.split())


def test_a_replay_is_completed(folder):
    expected = numbers(Store.open("replay"))
    assert [problem for _, problem in expected] == ["log, bootstrap", "log, in-order", "log, rejection"]
    for part in Path("replay/parts").iterdir():
        part.unlink()
    modes = ("--mode", "bootstrap", "--mode", "in-order", "--mode", "rejection")
    words = ("--out", "replay", "--policy", "UCB1", "--replications", "3", "--threads", "1")
    assert "3 played" in typed("replay", "log.csv", *words, *modes, cwd=folder)[0]
    assert numbers(Store.open("replay")) == expected
