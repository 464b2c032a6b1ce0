"""Replays in run folders: resumed, on any number of threads, with long records written once, and with notes."""

import dataclasses
import json
import math
import shutil

import numpy as np
import pytest

import robandit as rb
from helpers.small_plan import contents
from robandit.cli.terminal.leaderboard import remarks
from robandit.errors import CorruptFile, InvalidInput
from robandit.experiments import plan as plan_module
from robandit.experiments.plan import Played, Unit, planned
from robandit.experiments.results import Failure
from robandit.experiments.runner import run
from robandit.experiments.statistics import Findings
from robandit.experiments.store import Store
from robandit.problems import InOrder, Logged, recorded_problem

ROWS = 6000


def rewards():
    return np.random.default_rng(0).standard_t(2.0, (ROWS, 2)) - [0.0, 0.2]


PROBLEMS = {
    "in order": InOrder(rewards(), ["a", "b"]),
    "logged": Logged(
        np.arange(2 * ROWS) % 2, rewards().reshape(-1), ["a", "b"], np.tile([0.2, 0.8, 0.5, 0.4], ROWS // 2)
    ),
    "bootstrap": recorded_problem({"a": rewards()[:, 0], "b": rewards()[:, 1]}),
}


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(plan_module, "PULLS", 400)

    def plan(replications=6, problems=PROBLEMS, **given):
        played = [Played(name, problem, 200) for name, problem in problems.items()]
        return planned(played, [rb.UCB1(), rb.Uniform()], replications=replications, seed=4, **given)

    return plan


def test_resumed_or_not_on_any_number_of_threads_the_bytes_are_the_same(made, tmp_path):
    run(made(), tmp_path / "at once", threads=1)
    steps = tmp_path / "in steps"
    run(made(replications=2), steps, threads=2)
    outcome = run(made(), steps, threads=2)
    assert outcome.before == 6
    assert contents(steps, "parts") == contents(tmp_path / "at once", "parts")
    for place in (steps, tmp_path / "at once"):
        Store.open(place).write_results()
    assert contents(steps, "results") == contents(tmp_path / "at once", "results")
    assert Store.open(steps).plan == made()
    alone = rb.simulate(rb.UCB1(), PROBLEMS["in order"], 200, 6, seed=4)
    assert Store.open(steps).results().measured[0].regret.tobytes() == alone.regret[0].tobytes()


def test_a_long_record_is_in_the_folder_once(made, tmp_path):
    run(made(), tmp_path)
    for part in (tmp_path / "parts").iterdir():
        assert part.stat().st_size < 20_000
    whole = sum(16 * ROWS * 4 / 3 for _ in PROBLEMS) + (8 + 4) * 2 * ROWS * 4 / 3  # and actions and propensities
    assert (tmp_path / "run.json").stat().st_size < whole + 10_000
    ledger, unit = Store.open(tmp_path).ledger, made().units[0]
    ledger.fail(Failure(unit, 1, "why"))
    assert (tmp_path / "failures" / f"{unit.key}.json").stat().st_size < 2_000


def test_a_part_alone_needs_its_problem_and_no_other(made, tmp_path):
    run(made(problems={"in order": PROBLEMS["in order"]}), tmp_path)
    part = next((tmp_path / "parts").iterdir())
    with pytest.raises(InvalidInput, match="is a part of a run and does not hold its problem"):
        rb.Result.from_parquet(part)
    assert rb.Result.from_parquet(part, PROBLEMS["in order"]).problem is PROBLEMS["in order"]
    with pytest.raises(CorruptFile, match=r"was measured on another problem"):
        rb.Result.from_parquet(part, PROBLEMS["bootstrap"])


def test_a_part_of_another_record_is_rejected_by_name(made, tmp_path):
    other = InOrder(rewards()[::-1], ["a", "b"])
    for name, problem in (("one", PROBLEMS["in order"]), ("two", other)):
        run(made(problems={"p": problem}), tmp_path / name)
    mine, its = (sorted((tmp_path / name / "parts").iterdir()) for name in ("one", "two"))
    shutil.copy(its[0], mine[0])
    with pytest.raises(
        CorruptFile, match=rf"{mine[0].name} was measured on another problem.*; delete it and run again"
    ):
        Store.open(tmp_path / "one").results()
    with pytest.raises(InvalidInput, match=r"one was made with another plan \(it differs in p\); name another"):
        run(made(problems={"p": other}), tmp_path / "one")
    few = InOrder(rewards()[:200], ["a", "b"])  # not packed, but no line of base64 is shown
    with pytest.raises(InvalidInput, match=r"one was made with another plan \(it differs in p\); name another"):
        run(made(problems={"p": few}), tmp_path / "one")


def test_results_of_their_own_are_whole(tmp_path):
    for name, problem in PROBLEMS.items():
        result = rb.simulate(rb.UCB1(), problem, 50, 2, seed=1)
        result.to_parquet(tmp_path / f"{name}.parquet")
        again = rb.Result.from_parquet(tmp_path / f"{name}.parquet")
        assert again.problem == problem
        assert again.regret.tobytes() == result.regret.tobytes()


def test_keys_of_other_problems_are_hashes_of_all_of_them(made):
    """Keys do not change, so that units in folders of earlier versions count as done."""
    costs = rb.problems.negated_pareto(means=[-1.0, -2.0], tail=1.5)
    unit = made(problems={"costs": costs}).units[0]
    assert unit.describe()["problem"] == costs.to_dict()
    keys = {unit.key for unit in made().units}
    moved = dict(PROBLEMS) | {"in order": InOrder(rewards() + 1.0, ["a", "b"])}
    others = {unit.key for unit in made(problems=moved).units}
    assert len(keys) == 18
    assert len(keys & others) == 12, "units of another record are others"


def test_too_long_a_horizon_is_rejected_when_the_plan_is_made():
    with pytest.raises(InvalidInput, match=f"horizon = {ROWS + 1} must be at most {ROWS}, the rows of the record"):
        planned([Played("p", PROBLEMS["in order"], ROWS + 1)], [rb.UCB1()], replications=1, seed=0)


# --- notes -----------------------------------------------------------------------------------------------------------


def test_notes_are_kept_replaced_and_no_part_of_the_plans_identity(made, tmp_path):
    problems = {"in order": PROBLEMS["in order"]}
    store = run(made(problems=problems, notes=["the best arm is not resolved", "é"]), tmp_path).store
    assert store.plan.notes == Store.open(tmp_path).plan.notes == ("the best arm is not resolved", "é")
    assert remarks(Findings(store.results()))[:2] == ["the best arm is not resolved", "é"]
    again = run(made(problems=problems, notes=["other"]), tmp_path)
    assert (again.done, again.store.plan.notes) == (0, ("other",))
    assert run(made(problems=problems), tmp_path).store.plan.notes == ()
    assert "notes" not in json.loads((tmp_path / "run.json").read_bytes())


def test_cautions_are_a_key_of_their_own(made, tmp_path):
    problems = {"in order": PROBLEMS["in order"]}
    plan = made(problems=problems, notes=["! x"], cautions=["arms changed"])
    assert (plan.notes, plan.cautions) == (("! x",), ("arms changed",)), "a note stays a note, whatever it begins with"
    run(plan, tmp_path)
    stored = Store.open(tmp_path).plan
    assert (stored.notes, stored.cautions) == (plan.notes, plan.cautions)
    assert "cautions" in json.loads((tmp_path / "run.json").read_bytes())
    assert run(made(problems=problems), tmp_path).store.plan.cautions == ()


def test_a_unit_does_not_depend_on_notes(made):
    noted = made(notes=["something"])
    assert [unit.key for unit in noted.units] == [unit.key for unit in made().units]
    assert all(dataclasses.is_dataclass(unit) and isinstance(unit, Unit) for unit in noted.units)
    assert math.isclose(sum(unit.pulls for unit in noted.units), 6 * 6 * 200)
