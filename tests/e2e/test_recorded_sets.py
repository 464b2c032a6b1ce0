"""``python benchmarks/recorded_sets.py``: every policy that is told nothing plays, and the shipped example is enough."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

import robandit as rb
from robandit.policies import all_policies

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import recorded_sets

    yield recorded_sets
    for name in ("recorded_sets", "decisions"):
        del sys.modules[name]


def test_every_policy_that_is_told_nothing_plays(sets: ModuleType) -> None:
    from decisions import TOO_SLOW

    told_nothing = {type(policy) for policy in all_policies() if not (policy.facts.knows or policy.contextual)}
    playing = {type(policy) for policy in sets.POLICIES}
    left_out = {type(policy) for policy in TOO_SLOW} | {rb.Uniform, rb.Floor, rb.QuantileUCB}  # a floor only adds draws
    assert told_nothing == (playing & told_nothing) | left_out
    assert not playing & left_out
    page = (FOLDER.parent / "docs" / "results" / "recorded.md").read_text(encoding="utf-8")
    for policy in sets.POLICIES:
        assert f"| {policy.name} |" in page


def test_without_other_sets_the_example_is_played(
    sets: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sets, "HORIZON", 100)
    monkeypatch.setattr(sets, "POLICIES", [rb.AdaKLUCB(), rb.AdaRUCB(), rb.UCB1()])
    monkeypatch.setattr(sys, "argv", ["recorded_sets.py", "2", str(tmp_path)])
    sets.main()
    printed = capsys.readouterr().out
    assert "on 1 set of recorded rewards" in printed
    assert "### flights\n\nK = 15." in printed
    assert "| UCB1 | scale |" in printed


def test_a_set_with_the_rewards_of_the_example_is_not_played_twice(sets: ModuleType) -> None:
    path = sets.SHARED / sets.SHIPPED / "data.parquet"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    rewards = pl.read_parquet(path, columns=["arm", "reward"]).partition_by("arm", as_dict=True)
    example = rb.recorded.example("flights").samples()
    assert {arm for (arm,) in rewards} == set(example)
    for (arm,), rows in rewards.items():
        np.testing.assert_array_equal(np.sort(-rows["reward"].to_numpy()), np.sort(example[arm]))
    assert sets.SHIPPED not in sets.problems(sets.SHARED)


def test_the_page_of_late_rewards(sets: ModuleType) -> None:
    """All policies that are told nothing, and at most 1.03 times the prototype's regret in the same runs."""
    from decisions import UNINFORMED

    page = (FOLDER.parent / "docs" / "results" / "delayed.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    ratios = [float(row[3]) for row in rows[2:8]]
    assert [row[0] for row in rows[2:8]] == ["0", "10", "100", "1,000", "Pareto(1), median 300", "batches of 300"]
    assert max(ratios) <= 1.03
    late = {policy.name: policy.facts.late for policy in UNINFORMED}
    assert {row[0]: row[1] for row in rows[10:]} == late
