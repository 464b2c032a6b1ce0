"""Problems with another objective: gaps are those of quantiles or shares."""

import pickle

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import InvalidInput, NotApplicable
from robandit.laws import LogNormal, Pareto
from robandit.problems import Changing, InOrder, Logged, Problem, changing, delayed, recorded_problem, with_objective

COSTS = Problem([Pareto(tail=1.5), Pareto(tail=3.0, scale=2.2)], ["a", "b"], minimize=True)


def test_gaps_are_those_of_quantiles():
    made = with_objective(COSTS, "p95")
    np.testing.assert_allclose(made.quantiles, [0.05 ** (-1 / 1.5), 2.2 * 0.05 ** (-1 / 3)], rtol=1e-6)
    assert (COSTS.best_arm, made.best_arm) == (0, 1)
    assert made.gaps.tolist() == [made.quantiles[0] - made.quantiles[1], 0.0]
    assert made.uniform_regret(10) == pytest.approx(10 * made.gaps.mean())
    assert not made.independent
    rewards = with_objective(Problem([-law for law in COSTS.laws]), "p5")
    np.testing.assert_allclose(rewards.quantiles, -made.quantiles, rtol=1e-9)
    np.testing.assert_allclose(rewards.gaps, made.gaps, rtol=1e-9)


def test_gaps_are_those_of_shares():
    made = with_objective(COSTS, "within:5")
    np.testing.assert_allclose(made.means, [5.0**-1.5, (2.2 / 5.0) ** 3], atol=1e-6)
    assert (made.minimize, made.best_arm, made.names) == (True, 1, ("a", "b"))
    rewards = with_objective(Problem([-law for law in COSTS.laws]), "within:-5")
    np.testing.assert_allclose(rewards.means, made.means, atol=1e-6)


@pytest.mark.parametrize("objective", ["p95", "within:5.0"])
def test_they_survive_json_and_pickle_and_delays(objective):
    for problem in (COSTS, changing("swap", COSTS, at=5), delayed(COSTS, 3)):
        made = with_objective(problem, objective)
        assert Problem.from_dict(made.to_dict()) == made
        assert pickle.loads(pickle.dumps(made)) == made
        assert repr(made)
    late = with_objective(delayed(COSTS, 3), objective)
    assert late.gaps.tolist() == with_objective(COSTS, objective).gaps.tolist()
    assert late.best_arm == 1
    assert with_objective(COSTS, "mean") is COSTS


@pytest.mark.parametrize(
    "problem", [COSTS, changing("swap", COSTS, at=60), delayed(COSTS, 7)], ids=["laws", "swap", "late"]
)
@pytest.mark.parametrize("objective", ["p95", "within:5.0"])
def test_regret_is_the_sum_of_gaps(problem, objective):
    result = rb.simulate(rb.UCB1(), problem, 100, 3, seed=1, objective=objective, progress=False)
    made = with_objective(problem, objective)
    if isinstance(problem, Changing):
        first, second = (with_objective(piece, objective).gaps for _, piece in problem.pieces)
        assert first.tolist() == second[::-1].tolist()
        always = rb.simulate(rb.Oracle(arm=0), problem, 100, 1, seed=1, objective=objective, progress=False)
        assert always.regret[0, 0, -1] == pytest.approx(60 * first[0] + 40 * second[0])
    else:
        np.testing.assert_allclose(result.regret[0, :, -1], result.pulls[0] @ made.gaps)


def test_recorded_rewards():
    samples = {"a": [1.0, 2.0, 9.0, 9.0], "b": [3.0, 3.0, 3.0, 4.0]}
    drawn = recorded_problem(samples, minimize=True)
    assert with_objective(drawn, "p50").quantiles.tolist() == [2.0, 3.0]
    assert with_objective(drawn, "p75").quantiles.tolist() == [9.0, 3.0]
    assert with_objective(drawn, "within:3").means.tolist() == [0.5, 0.25]
    table = InOrder(np.array(list(samples.values())).T, ["a", "b"], minimize=True)
    assert with_objective(table, "within:3").rewards.tolist() == [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    with raises(NotApplicable):
        with_objective(table, "p95")
    log = Logged([0, 1, 0, 1], [1.0, 3.0, 9.0, 4.0], ["a", "b"], minimize=True)
    assert with_objective(log, "within:3").rewards.tolist() == [0.0, 0.0, 1.0, 1.0]
    result = rb.simulate(rb.QuantileUCB(q=0.75), log, 20, 2, seed=1, objective="p75", progress=False)
    np.testing.assert_allclose(result.regret[0, :, -1], result.pulls[0] @ with_objective(log, "p75").gaps)


def test_quantiles_without_a_closed_form():
    mixed = rb.laws.Mixture([Pareto(tail=1.5), Pareto(tail=1.5)], [0.5, 0.5])
    stable = rb.laws.Stable(alpha=2.0, beta=0.0, loc=1.0, scale=1.0)  # normal, with variance 2
    made = with_objective(Problem([mixed, stable, Pareto(tail=1.5)], minimize=True), "p95")
    np.testing.assert_allclose(
        made.quantiles, [0.05 ** (-1 / 1.5), 1.0 + 1.6448536 * 2**0.5, 0.05 ** (-1 / 1.5)], rtol=1e-6
    )


def test_wrong_objectives_are_refused():
    with raises(InvalidInput, parameter="objective"):
        rb.simulate(rb.UCB1(), COSTS, 10, objective="p0")
    with raises(InvalidInput, parameter="problem"):
        with_objective(with_objective(COSTS, "p95"), "p90")
    with raises(InvalidInput):
        Problem.from_dict({"objective": "p95"})
    assert with_objective(Problem([LogNormal(0.0, 1.0)] * 2), "p95").gaps.tolist() == [0.0, 0.0]
