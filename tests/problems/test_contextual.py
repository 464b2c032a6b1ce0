"""Problems with contexts: their rows, and that regret is against the best arm for each x."""

import copy
import pickle

import numpy as np
import pytest

import robandit as rb
from helpers.invalid import raises
from robandit.errors import InvalidInput, NotApplicable
from robandit.laws import Gaussian, LogNormal, Pareto
from robandit.problems import Problem, contextual, linear
from robandit.suites import contextual as suite

REGIONS = {"region": rb.Category(["eu", "us"])}
TABLE = contextual(
    [{"region": "eu"}, {"region": "us"}] * 2,
    [[1.0, 2.0], [5.0, 3.0], [2.0, 3.0], [4.0, 2.0]],
    REGIONS,
    minimize=True,
)


def test_rows_are_linear_in_x_and_noise_has_the_given_law():
    problem = linear(
        3, 4, -Pareto(3.0), coefficients=[[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0], [5.0, 0.0, 0.0, 0.0]]
    )
    rows = problem.rows(20_000, 7)
    theta = np.array(dict(problem.options)["coefficients"])
    np.testing.assert_allclose(rows.means, rows.x @ theta.T)
    assert (rows.x[:, 0] == 1.0).all()
    assert np.abs(np.cov(rows.x[:, 1:].T) - np.eye(3)).max() < 0.05
    noise = rows.rewards - rows.means
    assert abs(noise.mean()) < 5 * 0.87 / np.sqrt(60_000)  # five standard errors
    assert noise.max() == pytest.approx(-1.0 + 1.5, abs=1e-3)  # -Pareto(3) is at most -1, and its mean is -1.5
    costs = linear(2, 3, LogNormal(0.0, 1.0), kind="costs", contexts="uniform").rows(20_000, 1)
    assert (costs.means < 0.0).all()
    assert (costs.rewards / costs.means).mean() == pytest.approx(1.0, abs=0.05)


def test_every_kind_of_context_has_its_range():
    for kind, low, high in (("uniform", 0.0, 1.0), ("symmetric", -1.0, 1.0), ("binary", 0.0, 1.0), ("cells", 0.0, 1.0)):
        x = linear(2, 4, contexts=kind).rows(3000, 2).x[:, 1:]
        assert x.min() >= low
        assert x.max() <= high
        assert x.mean() == pytest.approx({"symmetric": 0.0, "cells": 1 / 3}.get(kind, 0.5), abs=0.03)
        if kind == "cells":
            assert (x.sum(axis=1) == 1.0).all()
    shared = linear(3, 4, shared=True)
    assert shared.rows(10, 0).x.shape == (10, 12)


def test_replications_have_their_own_rows_and_the_same_seed_the_same():
    problem = linear(3, 3)
    first, again, other = (problem.rows_of(5, r, 100) for r in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert (first.means != other.means).all()
    results = [rb.simulate(rb.LinUCB(), problem, 300, 3, seed=5, threads=threads) for threads in (1, 2)]
    assert results[0].regret.tobytes() == results[1].regret.tobytes()
    assert results[0].pulls.sum() == 900


def test_regret_is_against_the_best_arm_for_each_x():
    problem, horizon = linear(3, 3, Gaussian(0.0, 0.1)), 200
    times = range(1, horizon + 1)
    result = rb.simulate([rb.LinUCB(), rb.Oracle(arm=1)], problem, horizon, 2, seed=3, checkpoints=times)
    for r in range(2):
        rows = problem.rows_of(3, r, horizon)
        always = np.cumsum(rows.means.max(axis=1) - rows.means[:, 1])
        np.testing.assert_allclose(result.regret[1, r], always)
    bandit = rb.Bandit(range(3), rb.LinUCB(), features={f"f{i}": rb.Number(center=0.0, scale=1.0) for i in (1, 2)})
    rows, regret = problem.rows_of(3, 0, horizon), 0.0
    for t in range(horizon):
        context = {"f1": rows.x[t, 1], "f2": rows.x[t, 2]}
        arm = bandit.select(context=context)
        bandit.update(arm, rows.rewards[t, arm], context=context)
        regret += rows.means[t].max() - rows.means[t, arm]
        assert regret == pytest.approx(result.regret[0, 0, t])


def test_late_rewards():
    problem = linear(3, 3)
    late = rb.simulate([rb.LinUCB(), rb.LinTS()], problem, 400, 4, seed=1, delay=50).regret[:, :, -1].mean(axis=1)
    soon = rb.simulate([rb.LinUCB(), rb.LinTS()], problem, 400, 4, seed=1, delay=0).regret[:, :, -1].mean(axis=1)
    now = rb.simulate([rb.LinUCB(), rb.LinTS()], problem, 400, 4, seed=1).regret[:, :, -1].mean(axis=1)
    assert soon.tolist() == now.tolist()
    assert (late > now).all()


def test_a_table():
    assert (TABLE.columns, TABLE.arms, TABLE.minimize, TABLE.best_arm) == (3, 2, True, 1)
    rows = TABLE.rows(1000, 3)
    eu = rows.x[:, 1] == 1.0
    assert np.unique(rows.means[eu], axis=0).tolist() == [[-1.5, -2.5]]
    assert np.unique(rows.means[~eu], axis=0).tolist() == [[-4.5, -2.5]]
    assert set(rows.rewards[eu, 0].tolist()) == {-1.0, -2.0}
    assert TABLE.uniform_regret(100) == pytest.approx(75.0)
    result = rb.simulate([rb.PerCell(), rb.AdaClipTS(), rb.AdaKLUCB()], TABLE, 400, 4, seed=0)
    cells, clip, blind = result.regret[:, :, -1].mean(axis=1)
    assert max(cells, clip) < 0.5 * blind
    scaled = contextual([{"n": float(i)} for i in range(9)], np.eye(9)[:, :2], {"n": rb.Number()})
    assert np.sort(scaled.x[:, 1]).tolist() == pytest.approx(((np.arange(9) - 4.0) / (4.0 / 1.349)).tolist())


@pytest.mark.parametrize("problem", [TABLE, linear(2, 3, [Gaussian(1.0, 1.0), Pareto(2.0)], kind="revenue")], ids=repr)
def test_problems_survive_json_and_copies(problem):
    for again in (Problem.from_dict(problem.to_dict()), pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert again.to_dict() == problem.to_dict()
        assert all((a == b).all() for a, b in zip(again.rows(50, 1), problem.rows(50, 1), strict=True))
        assert again.fingerprint == problem.fingerprint


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: linear(1), "arms"),
        (lambda: linear(columns=99), "columns"),
        (lambda: linear(noise=3.0), "noise"),
        (lambda: linear(noise=[Gaussian(0.0, 1.0)]), "noise"),
        (lambda: linear(kind="costs"), "noise"),
        (lambda: linear(kind="cost"), "kind"),
        (lambda: linear(contexts="text"), "contexts"),
        (lambda: linear(coefficients=[[1.0]]), "coefficients"),
        (lambda: linear(scale=0.0), "scale"),
        (lambda: contextual([[1.0]], [[1.0]]), "rewards"),
        (lambda: contextual([1.0], [[1.0, 2.0]]), "contexts"),
        (lambda: contextual([[1.0]], [[1.0, 2.0]], means=[[1.0]]), "means"),
    ],
)
def test_wrong_problems_are_refused(call, parameter):
    with raises(InvalidInput, parameter=parameter):
        call()


def test_other_objectives_are_refused():
    for objective in ("p90", "within:1.0"):
        with raises(NotApplicable):
            rb.simulate(rb.LinUCB(), TABLE, 10, 1, objective=objective, delay=3)


def test_the_suite():
    tasks = suite().tasks
    assert len({task.name for task in tasks}) == len(tasks) == 36
    for task in tasks:
        rows = task.problem.rows(64, 1)
        assert rows.means.shape == rows.rewards.shape == (64, task.problem.arms)
        assert task.uniform > 0.0
