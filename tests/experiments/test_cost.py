"""The estimated processor time: units that are left, measured speeds, and times on several workers."""

import pytest

import robandit as rb
from helpers.small_plan import small_plan
from robandit.errors import InvalidInput
from robandit.experiments import cost as module
from robandit.experiments.cost import FIRST, CellCost, Cost, cost, measured
from robandit.experiments.plan import Played, planned
from robandit.experiments.runner import run

PROBLEM = rb.problems.negated_pareto(means=[-1.0, -1.5], tail=1.8)


def test_time_on_workers_by_hand():
    cell = small_plan(policies=[rb.UCB1()]).cells[0]
    found = Cost((CellCost(cell, 100.0, 4, 4 * 10**7, 10**7), CellCost(cell, 10.0, 2, 10**7, 5 * 10**6)), done=1)
    assert (found.units, found.pulls, found.seconds) == (6, 5 * 10**7, pytest.approx(4.1))
    assert [found.time_on(n) for n in (1, 2, 100)] == [pytest.approx(t) for t in (4.1, 2.05, 1.0)]


def test_a_run_folder_is_not_paid_for_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "measured", lambda cell, seed, seconds: 10.0)
    plan = small_plan()
    whole = cost(plan)
    assert (whole.units, whole.done) == (len(plan.units), 0)
    assert whole.pulls == sum(unit.pulls for unit in plan.units)
    store = run(plan, tmp_path / "run", threads=1).store
    assert (cost(plan, folder=store.folder).units, cost(plan, folder=store.folder).seconds) == (0, 0.0)
    store.ledger.part(plan.units[0]).unlink()
    left = cost(plan, folder=store.folder)
    assert (left.units, left.pulls, left.done) == (1, plan.units[0].pulls, len(plan.units) - 1)


@pytest.mark.parametrize(
    ("horizon", "seconds", "played"),
    [
        (10**6, 0.08, [(FIRST, 1), (4 * FIRST, 1), (16 * FIRST, 1)]),  # 64,000 pulls would take it beyond 0.08 s
        (10**6, 1e-9, [(FIRST, 1)]),
        (50, 1.0, [(50, 20)]),
    ],
)
def test_games_grow_while_there_is_time(horizon, seconds, played, monkeypatch):
    games = []

    def meter(policy, problem, length, times, seed, **options):
        assert policy.horizon == horizon  # prepared for the full horizon
        games.append((length, times))
        return type("Result", (), {"seconds": [times * length * 1e-6]})

    monkeypatch.setattr(module, "simulate", meter)
    (cell,) = planned([Played("p", PROBLEM, horizon)], [rb.AdaTINF()], replications=2, seed=1).cells
    assert measured(cell, 1, seconds) == pytest.approx(1000.0)
    assert games == played


def test_measuring_here():
    plan = planned([Played("p", PROBLEM, 20_000)], [rb.UCB1(), rb.Uniform()], replications=2, seed=1)
    assert all(1.0 < each.ns_per_pull < 1e5 for each in cost(plan, seconds=0.2).cells)


def test_wrong_values_are_rejected():
    with pytest.raises(InvalidInput, match="seconds = 0 must be a finite number > 0"):
        cost(small_plan(), seconds=0)
    with pytest.raises(InvalidInput, match="workers = 0 must be an integer >= 1"):
        Cost((), 0).time_on(0)
