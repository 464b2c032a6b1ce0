"""Problems that change, compared with a slow and obvious simulation."""

import copy
import itertools
import json
import math
import pickle

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import assert_invalid, raises
from helpers.own_policies import STATES, Recorder
from robandit.errors import InvalidInput, NotApplicable
from robandit.experiments.notation import problem_from
from robandit.laws import Gaussian, Mixture, Pareto
from robandit.problems import Changing, InOrder, Problem, changing, gaussian, negated_pareto
from robandit.problems.changing import KINDS

COSTS = negated_pareto(means=[-1.5, -1.0, -2.0], tail=1.5)


def recorded(problem, horizon, replication=0):
    """The regret after each pull, and the arms and rewards that a policy received."""
    STATES.clear()
    policy = Recorder(random=1)
    result = rb.simulate(policy, problem, horizon, 1, 0, first=replication, checkpoints=range(1, horizon + 1))
    arms, rewards = STATES[-1].seen[: STATES[-1].count[0]].T
    np.testing.assert_array_equal(result.pulls[0, 0], np.bincount(arms.astype(int), minlength=problem.arms))
    return result.regret[0, 0], arms.astype(int), rewards


def slow_regret(problem, arms):
    """Dynamic regret after each pull, from the means at its time."""
    regret, total = [], 0.0
    for t, arm in enumerate(arms):
        place = t if problem.period is None else t % problem.period
        now = [piece for start, piece in problem.pieces if start <= place][-1]
        means = [law.mean for law in now.laws]
        total += max(means) - means[arm]
        regret.append(total)
    return regret


@pytest.mark.parametrize("kind", KINDS)
def test_regret_is_that_of_a_slow_simulation(kind):
    problem = changing(kind, COSTS, at=60)
    regret, arms, _ = recorded(problem, 400, replication=2)
    np.testing.assert_allclose(regret, slow_regret(problem, arms), rtol=1e-12)
    assert math.isclose(problem.uniform_regret(400), sum(problem.at(t).gaps.mean() for t in range(400)), rel_tol=1e-12)


def test_always_the_best_arm_has_no_regret():
    problem = Changing([(0, gaussian([0.1, 0.7])), (10, gaussian([0.1, -0.7])), (11, gaussian([0.1, 0.3]))], period=17)
    assert slow_regret(problem, [1] * 10 + [0] + [1] * 6 + [1] * 10 + [0] + [1] * 6) == [0.0] * 34
    for arm in (0, 1):
        result = rb.simulate(rb.Oracle(arm=arm), problem, 50, 1, seed=0, checkpoints=range(1, 51))
        np.testing.assert_allclose(result.regret[0, 0], slow_regret(problem, [arm] * 50), rtol=1e-12)


def test_rewards_come_from_the_law_of_the_time():
    """Constant laws, so that each reward tells its piece."""
    pieces = [(start, Problem([rb.laws.Constant(start + 0.25), rb.laws.Constant(start + 0.5)])) for start in (0, 7, 20)]
    problem = Changing(pieces, period=31)
    _, arms, rewards = recorded(problem, 90)
    begun = [max(start for start in (0, 7, 20) if start <= t % 31) for t in range(90)]
    np.testing.assert_array_equal(rewards, np.array(begun) + np.array([0.25, 0.5])[arms])


def test_a_change_without_difference_changes_nothing():
    same = Changing([(0, COSTS), (13, COSTS), (77, COSTS)], period=200)
    policies = [rb.UCB1(), rb.EpsilonGreedy()]
    plain, pieced = (rb.simulate(policies, p, 700, 3, seed=5) for p in (COSTS, same))
    np.testing.assert_array_equal(plain.pulls, pieced.pulls)
    np.testing.assert_allclose(plain.regret, pieced.regret, rtol=1e-12)


def test_a_change_is_felt():
    """UCB1 with Gaussian rewards follows a fall of the best arm; regret against the old means would not show it."""
    problem = changing("fall", gaussian([1.0, 0.5], sd=0.1), at=100)
    result = rb.simulate(rb.UCB1(scale=0.2), problem, 2000, 4, seed=1)
    assert (result.pulls[0, :, 1] > 1500).all()
    assert (result.regret[0, :, -1] < 100).all()
    never = rb.simulate(rb.Oracle(arm=0), problem, 2000, 1, seed=1)
    assert never.regret[0, 0, -1] == 1900 * 0.25


def test_kinds():
    means = {kind: changing(kind, COSTS, at=10).at(10).means.round(12).tolist() for kind in KINDS[:5]}
    assert means == {
        "swap": [-1.5, -2.0, -1.0],
        "rise": [-1.5, -1.0, -0.5],
        "fall": [-1.5, -3.0, -2.0],
        "tail": [-1.5, -1.9, -2.0],
        "load": [-3.0, -2.0, -4.0],
    }
    assert changing("tail", COSTS).at(10_000).laws[1] == Mixture(
        (-Pareto(1.5, 1 / 3), -Pareto(1.5, 1 / 3) - 0.9 / 0.03), (0.97, 0.03)
    )


def test_kinds_of_means_with_both_signs():
    base = gaussian([0.0, 1.0, -1.0])
    assert changing("rise", base).at(10_000).means.tolist() == [0.0, 1.0, 2.0]
    assert changing("fall", base).at(10_000).means.tolist() == [0.0, -2.0, -1.0]
    assert changing("tail", base).at(10_000).best_arm == 0
    slow = changing("slow", base)
    assert slow.at(2500).means[0] == 1.0
    assert {slow.at(t).best_arm for t in range(0, 10_000, 100)} == {0, 1}


def test_several_changes():
    problem = changing("several", COSTS, at=100, changes=5, seed=1)
    assert problem.changes == (100, 200, 300, 400, 500)
    best = [piece.best_arm for _, piece in problem.pieces]
    assert all(a != b for a, b in itertools.pairwise(best))
    assert all(set(piece.laws) == set(COSTS.laws) for _, piece in problem.pieces)
    assert problem != changing("several", COSTS, at=100, changes=5, seed=2)
    with pytest.raises(InvalidInput, match="same mean"):
        changing("several", gaussian([0.0, 0.0]))


def test_slow_is_periodic():
    problem = changing("slow", COSTS, at=1000)
    assert problem.period == 1000
    assert len(problem.pieces) == 100
    assert problem.at(1250) is problem.at(250)
    np.testing.assert_allclose(problem.at(250).means[0], 1.5 * -1.5)
    assert len(changing("slow", COSTS, at=7).pieces) == 7


@pytest.mark.parametrize("kind", KINDS)
def test_json_and_copies(kind):
    problem = changing(kind, COSTS, at=10)
    again = Problem.from_dict(json.loads(json.dumps(problem.to_dict())))
    for other in (again, copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
        assert other == problem
        assert hash(other) == hash(problem)
        assert other.fingerprint == problem.fingerprint
        assert type(other) is Changing
    assert problem != COSTS
    assert problem != changing(kind, COSTS, at=11)
    assert problem.fingerprint != COSTS.fingerprint


def test_facts_hold_for_all_pieces():
    problem = Changing([(0, gaussian([0.0, 1.0])), (5, Problem([-Pareto(1.5), Gaussian(-9.0, 1.0)]))])
    assert problem.tail_index == 1.5
    assert not problem.independent
    assert problem.u(0.25) == problem.pieces[1][1].u(0.25)
    assert problem.v(1e-3) == max(piece.v(1e-3) for _, piece in problem.pieces)
    assert not problem.assumption().holds  # in the first piece
    assert Changing([(0, COSTS), (4, gaussian([0.0, 1.0, 2.0]))]).assumption() == gaussian([0.0, 1.0, 2.0]).assumption()
    assert rb.RobustUCB(estimator="truncated").informed_by(problem).u >= problem.pieces[0][1].u(0.45)


def test_no_bound_is_claimed():
    assert rb.theory.regret_bound(rb.Uniform(), COSTS, 100).instance == 50.0
    with pytest.raises(NotApplicable, match="depend on the time"):
        rb.theory.regret_bound(rb.Uniform(), changing("swap", COSTS), 100)


def test_notation_and_suite():
    text = "changing(kind='rise', problem='negated_pareto(means=[-1.5, -1.0, -2.0], tail=1.5)', at=50)"
    assert problem_from(text) == changing("rise", COSTS, at=50)
    assert problem_from("changing/fall-pareto") == changing("fall", COSTS)
    names = [task.name for task in rb.suites.changing().tasks]
    assert len(names) == 16
    assert all(f"{kind}-lognormal" in names for kind in KINDS)


def test_repr():
    assert repr(changing("slow", COSTS)) == "<Changing: 100 pieces of 3 arms, period=10000>"
    problem = changing("swap", gaussian([0.0, 1.0]), at=5)
    assert eval(repr(problem), vars(rb.problems) | vars(rb.laws)) == problem


BROKEN = [
    ([], "pieces"),
    ([(1, COSTS)], "pieces[0][0]"),
    ([(0, COSTS), (0, COSTS)], "pieces[1][0]"),
    ([(0, COSTS), (5.5, COSTS)], "pieces[1][0]"),
    ([(0, COSTS), (5, gaussian([0.0, 1.0]))], "pieces[1][1]"),
    ([(0, InOrder([[1.0, 2.0]]))], "pieces[0]"),
    ([0], "pieces[0]"),
]


@pytest.mark.parametrize(("pieces", "name"), BROKEN)
def test_invalid_pieces(pieces, name):
    with pytest.raises(InvalidInput) as caught:
        Changing(pieces)
    assert caught.value.parameter == name


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize(
    ("kind", "means", "reason"),
    [
        ("swap", [1.0, 1.0], "all arms have the same mean"),
        ("several", [1.0, 1.0, 1.0], "all arms have the same mean"),
        ("tail", [0.0, 0.0], "tie at mean 0"),
    ],
)
def test_changes_that_change_nothing_are_rejected(kind, means, reason, minimize):
    with pytest.raises(InvalidInput, match=f"would change nothing.*{reason}"):
        changing(kind, Problem([Gaussian(mean, 1.0) for mean in means], minimize=minimize))


def test_ties_that_a_change_breaks_are_accepted():
    assert changing("tail", gaussian([2.0, 2.0])).at(10_000).best_arm == 1
    assert changing("swap", gaussian([2.0, 2.0, 1.0])).at(10_000).best_arms == (1, 2)


def test_invalid_arguments():
    assert_invalid(lambda: changing("jump", COSTS), "kind", "swap")
    assert_invalid(lambda: changing("swap", changing("swap", COSTS)), "problem", "made of laws")
    assert_invalid(lambda: changing("swap", COSTS, at=0), "at", "1")
    assert_invalid(lambda: changing("several", COSTS, changes=0), "changes", "1")
    assert_invalid(lambda: Changing([(0, COSTS), (9, COSTS)], period=9), "period", "10")
    with pytest.raises(InvalidInput, match="changing, problems and period"):
        Problem.from_dict({"changing": []})


def test_a_run_must_reach_the_first_change():
    problem = rb.problems.changing("swap", rb.problems.gaussian(means=[0.0, -1.0]), at=500)
    rb.simulate(rb.UCB1(), problem, 501, replications=1, seed=0, progress=False)
    with raises(InvalidInput, parameter="horizon", rule="above 500, the pulls before the first change"):
        rb.simulate(rb.UCB1(), problem, 500, replications=1, seed=0, progress=False)
