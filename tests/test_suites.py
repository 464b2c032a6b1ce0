"""The fixed sets of problems: their range, their documented properties, and that they never change."""

import hashlib
import json

import numpy as np
import pytest

from helpers.invalid import assert_invalid
from robandit import Problem, theory
from robandit.laws.median import law_median
from robandit.suites import NAMES, heavy, named

SUITE = heavy()
OTHERS = {
    f"{name}/{task.name}": task for name in NAMES if name not in ("heavy", "contextual") for task in named(name).tasks
}
TASKS = {task.name: task for task in SUITE.tasks}

# A changed task needs a new version, and then a new line here.
FINGERPRINTS = {
    ("heavy", 1): "397bc776ad04b63f",
    ("light", 1): "5617c65aca314463",
    ("paper", 1): "61aa8a5819fd59e0",
    ("lower-bound", 1): "806a0f922c360f07",
    ("changing", 1): "6505e5f06d85afd1",
    ("delayed", 1): "c5d5df16899e6bd7",
    ("contextual", 1): "c5d00bf3b2606799",
}


def fingerprint(suite):
    content = [[task.name, task.shape, task.horizon, task.problem.to_dict()] for task in suite.tasks]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", NAMES)
def test_a_version_never_changes(name):
    suite = named(name)
    assert suite.name == name
    assert fingerprint(suite) == FINGERPRINTS[suite.name, suite.version]


@pytest.mark.parametrize("name", ["heavier", "", None, ["heavy"], 1])
def test_an_unknown_suite_is_rejected_by_name(name):
    assert_invalid(lambda: named(name), "suite", "one of 'heavy', 'light', 'paper', 'lower-bound'")


@pytest.mark.parametrize("name", OTHERS)
def test_the_tasks_of_the_other_suites(name):
    task = OTHERS[name]
    assert len(task.problem.best_arms) == 1
    assert Problem.from_dict(task.problem.to_dict()) == task.problem
    assert task.about
    best = task.problem.laws[task.problem.best_arm]
    if not name.startswith("lower-bound"):  # rewards that are nearly always 0 have the median 0
        assert best.truncated_nonpositivity(about=law_median(best)).holds == task.centred_assumption
        assert (task.problem.tail_index > 3.0) == name.startswith("light/") or name.endswith("lognormal")


def test_the_lower_bounds_gaps_are_those_of_the_proofs():
    tasks = {task.name: task for task in named("lower-bound").tasks}
    second, third = tasks["theorem-2-first"], tasks["theorem-3-first"]
    u = theory.lower_bound_u_adaptive(second.horizon, eps=1.0, u=1.0, u_alternative=20.0)
    assert second.problem.gaps.max() == pytest.approx(u.delta, rel=1e-3)
    assert tasks["theorem-2-second"].problem.u(1.0) == pytest.approx(20.0)
    assert third.problem.gaps.max() == pytest.approx(theory.lower_bound_eps_adaptive(third.horizon).delta, rel=1e-3)
    for name, task in tasks.items():
        assert task.problem.assumption().holds == name.startswith("theorem-4")


def test_the_range_of_the_suite():
    tasks = SUITE.tasks
    assert len(TASKS) == len(tasks) >= 12
    tails = [task.problem.tail_index for task in tasks]
    assert min(tails) == 1.1
    assert max(tail for tail in tails if tail < np.inf) == 3.0
    assert {1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2} <= set(tails)
    arms = [len(task.problem.laws) for task in tasks]
    assert (min(arms), max(arms)) == (2, 50)
    assert {task.shape for task in tasks} == {"left-skewed", "symmetric", "right-skewed"}
    assert sum(task.infinite_variance for task in tasks) >= 6
    assert all(task.about and task.horizon >= 10_000 for task in tasks)


@pytest.mark.parametrize("name", TASKS)
def test_the_properties_of_a_task(name):
    task = TASKS[name]
    gaps = task.problem.gaps
    assert len(task.problem.best_arms) == 1
    assert task.uniform == pytest.approx(task.horizon * gaps.sum() / len(gaps))
    assert task.uniform > 0.0
    assert Problem.from_dict(task.problem.to_dict()) == task.problem
    variances = [law.variance for law in task.problem.laws]
    assert task.infinite_variance == (not np.isfinite(variances).all())


def median(law):
    """By bisection on the cdf, which for a law with atoms ends at an atom."""
    low, high = -1e9, 1e9
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if law.cdf(middle) >= 0.5 else (middle, high)
    return high if law.symmetric_about is None else law.symmetric_about


@pytest.mark.parametrize("name", TASKS)
def test_the_assumption_about_the_median_is_as_stated(name):
    """By the laws, about the median and points near it, unless the median is an atom or the centre of symmetry."""
    task = TASKS[name]
    law = task.problem.laws[task.problem.best_arm]
    m = median(law)
    off = 1e-3 * abs(m - law.mean)
    below, above = law.cdf(m - 1e-6), law.cdf(m + 1e-6)
    assert below <= 0.5 <= above
    assert law.truncated_nonpositivity(about=m).holds == task.centred_assumption
    if task.shape == "symmetric":
        assert law.symmetric_about == m == law.mean
    elif above - below < 0.01:
        for about in (m - off, m + off):
            assert law.truncated_nonpositivity(about=about).holds == task.centred_assumption
    if task.shape != "symmetric":
        assert (law.mean < m) == (task.shape == "left-skewed")
