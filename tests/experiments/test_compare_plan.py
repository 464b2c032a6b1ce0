"""The plan of `robandit compare`: defaults, options, and what is rejected."""

import numpy as np
import pytest

import robandit as rb
from robandit import suites
from robandit.errors import InvalidInput
from robandit.experiments.compare_plan import EVERY, FIRST_LOOK, compared, named_policies
from robandit.experiments.plan import Played

COINS = "bernoulli(means=[0.5, 0.25])"


def test_compared_by_default():
    plan = compared([], None, [])
    assert [(p.name, p.horizon) for p in plan.problems] == [
        ("negated_pareto(means=[-1.0, -1.5, -2.0], tail=1.5)", 50_000)
    ]
    assert (plan.replications, plan.seed) == (50, 1)
    assert plan.left_out == (), "a policy that is skipped is no first look"
    chosen = [type(cell.policy).__name__ for cell in plan.cells]
    assert {"AdaKLUCB", "AdaRUCB", "UCB1"} <= set(chosen)
    assert len(FIRST_LOOK) == len(chosen), "each entry is one policy"
    assert chosen == [entry.partition("(")[0] for entry in FIRST_LOOK]
    every = compared([], None, EVERY).combinations
    counts = [
        len({type(policy) for policy in policies}) for policies in (named_policies(EVERY), rb.policies.all_policies())
    ]
    algorithms = f"{counts[0]} of {counts[1]} algorithms, some in several variants"
    assert plan.notes == (f"These are {len(chosen)} of {len(every)} policies ({algorithms}). To see all, add --all.",)


def test_a_note_names_policies_of_another_quantile():
    plan = compared([COINS], None, ["QuantileUCB", "QuantileUCB(q=0.95)", "UCB1"], objective="p95")
    assert plan.notes == ("Quantile-UCB(q=0.5) optimises p50, not p95.",)


def test_a_first_look_has_a_policy_of_every_family_that_plays_the_default_problem():
    def family(policy):
        return type(policy).__module__.split(".")[2]

    playing = {family(cell.policy) for cell in compared([], None, EVERY).cells}
    others = {"quantile", "linear"}  # for another objective, and for contexts
    assert {family(cell.policy) for cell in compared([], None, []).cells} == playing - others
    assert "resampling" not in playing


def test_every_policy_that_learns_is_compared_on_request():
    plan = compared([], None, EVERY)
    around = (rb.Floor, rb.Probing, rb.Restarting)
    playable = (p for p in rb.policies.all_policies() if p.uses_rewards and not p.contextual)
    learners = [p.name for p in playable if not isinstance(p, around)]
    assert sorted(each.label for each in plan.combinations) == sorted([*learners, "AdaR-UCB(bonus='tight')"])
    assert plan.notes == ("Quantile-UCB(q=0.5) optimises p50, not mean.",)
    assert compared([], None, ["UCB1"]).notes == ()


def test_compared_as_asked():
    heavy = compared([], "heavy", ["UCB1"], quick=True)
    assert [p.horizon for p in heavy.problems] == [task.horizon // 10 for task in suites.heavy().tasks]
    assert heavy.replications == 20
    both = compared(["heavy/latency", COINS], None, ["UCB1(scale=2.0)"], horizon=7, replications=3, seed=5, quick=True)
    assert both.problems == (
        Played("heavy/latency", next(t.problem for t in suites.heavy().tasks if t.name == "latency"), 7),
        Played(COINS, rb.problems.bernoulli(means=[0.5, 0.25]), 7),
    )
    assert (both.replications, both.seed, both.cells[0].policy) == (3, 5, rb.UCB1(scale=2.0))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"policies": ["UBC1"]}, r"^policy 'UBC1' is not known"),
        ({"policies": ["UCB1", "UCB1"]}, r"UCB1 is given twice"),
        ({"problems": ["x"]}, r"^problem 'x' is not known"),
        ({"suite": "x"}, r"^suite 'x' is not known"),
        ({"horizon": 0}, r"^horizon = 0 must be an integer from 1"),
        ({"replications": 0}, r"^replications = 0 must be an integer from 1"),
        ({"seed": -1}, r"^seed = -1 must be an integer >= 0"),
    ],
)
def test_what_compared_rejects(options, expected):
    with pytest.raises(InvalidInput, match=expected):
        compared(**{"problems": [COINS], "suite": None, "policies": ["UCB1"], **options})


def test_another_objective():
    costs = "pareto(means=[1.0, 1.5], tail=1.5, minimize=True)"
    plan = compared([costs], None, [], objective="p95")
    assert plan.problems[0].name == f"{costs}, p95"
    assert plan.cells[0].policy == rb.QuantileUCB(q=0.95)
    np.testing.assert_allclose(plan.problems[0].problem.gaps, [0.0, 0.5 * 0.05 ** (-1 / 1.5) / 3], rtol=1e-6)
    within = compared([costs], None, ["AdaKLUCB"], objective="within:2")
    assert within.problems[0].name == f"{costs}, within:2.0"
    assert within.problems[0].problem.means.max() < 1.0
    with pytest.raises(InvalidInput, match="objective"):
        compared([costs], None, [], objective="p100")
