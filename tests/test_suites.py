"""The fixed sets of problems: what they span, what they say about themselves, and that they do not change."""

import hashlib
import json

import numpy as np
import pytest

from robandit import Problem
from robandit.suites import heavy

SUITE = heavy()
TASKS = {task.name: task for task in SUITE.tasks}

# A changed task needs a new version, and then a new line here.
FINGERPRINTS = {("heavy", 1): "397bc776ad04b63f"}


def fingerprint(suite):
    said = [[task.name, task.shape, task.horizon, task.problem.to_dict()] for task in suite.tasks]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def test_a_version_never_changes():
    assert fingerprint(SUITE) == FINGERPRINTS[SUITE.name, SUITE.version]


def test_what_the_suite_spans():
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
def test_what_a_task_says(name):
    task = TASKS[name]
    gaps = task.problem.gaps
    assert len(task.problem.best_arms) == 1
    assert task.uniform == pytest.approx(task.horizon * gaps.sum() / len(gaps))
    assert task.uniform > 0.0
    assert Problem.from_dict(task.problem.to_dict()) == task.problem
    variances = [law.variance for law in task.problem.laws]
    assert task.infinite_variance == (not np.isfinite(variances).all())


def median(law):
    """By bisection on the distribution function, which for a law with atoms ends at one."""
    low, high = -1e9, 1e9
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if law.cdf(middle) >= 0.5 else (middle, high)
    return high if law.symmetric_about is None else law.symmetric_about


@pytest.mark.parametrize("name", TASKS)
def test_the_assumption_about_the_median_is_as_stated(name):
    """By the laws themselves; and about points a little off the median, unless the law has an atom or its centre there."""
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
