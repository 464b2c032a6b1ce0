"""Proposition 10's check holds, and does not for another search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import robandit as rb
from helpers.amount import long_only
from robandit.estimators.formulas.threshold import C
from robandit.verify.drawn_samples import clipped, roots
from robandit.verify.proposition_10 import STATEMENT, doubling, run
from robandit.verify.statement import Effort, checked, find_statements

QUICK = Effort(quick=True)
RATIO, STEPS, UNROUNDED, TINY, SMALLEST, LIBRARY = range(6)


def failing(search: Any) -> set[int]:
    """The numbers of the claims that fail."""
    return {k for k, f in enumerate(run(QUICK, search=search).findings) if f.verdict == "fails"}


def by(factor: float) -> Any:
    """A search that multiplies by something else than 2."""

    def search(matrix: np.ndarray, a: float, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        guess, steps = start.copy(), np.zeros(len(matrix), dtype=np.int64)
        while (left := clipped(matrix, guess) > a).any():
            guess[left] *= factor
            steps[left] += 1
        return guess, steps

    return search


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert find_statements(["algorithm-2"], [STATEMENT]) == find_statements(["prop-10"], [STATEMENT]) == (STATEMENT,)
    assert [f.verdict for f in outcome.ran.findings] == ["holds"] * 6
    assert {item for f in outcome.ran.findings for item in f.misprints} == {"27", "28"}


def test_doubling_by_hand() -> None:
    """F of four ones is 4 up to M = 1 and 4/M^2 beyond, so that F = 1 at M = 2."""
    ones = np.ones((3, 4))
    guess, steps = doubling(ones, 1.0, np.array([0.5, 0.3, 7.0]))
    assert guess == pytest.approx([2.0, 2.4, 7.0])
    assert steps.tolist() == [2, 3, 0]


def test_doubling_leaves_its_start_alone() -> None:
    start = np.array([0.5])
    doubling(np.ones((1, 4)), 1.0, start)
    assert start.tolist() == [0.5]


def test_a_start_above_the_root_fails() -> None:
    def above(matrix: np.ndarray, a: float, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return doubling(matrix, a, 10.0 * np.abs(matrix).max(axis=1))

    assert {RATIO, SMALLEST, LIBRARY} <= failing(above)


def test_larger_steps_fail() -> None:
    assert {RATIO, SMALLEST, LIBRARY} <= failing(by(4.0))


@long_only
def test_smaller_steps_are_too_many() -> None:
    assert STEPS in failing(by(1.5))


def test_a_search_that_stops_one_step_early_fails() -> None:
    def early(matrix: np.ndarray, a: float, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        guess, steps = doubling(matrix, a, start)
        return guess / 2.0, steps

    assert {RATIO, SMALLEST, LIBRARY} <= failing(early)


def test_the_policy_with_this_solver_has_this_threshold() -> None:
    rewards = {arm: -1.0 - np.random.default_rng(k).pareto(1.5, 1000) for k, arm in enumerate("ab")}
    pulls = dict.fromkeys("ab", 0)
    bandit = rb.Bandit(["a", "b"], rb.AdaRUCB(solver="doubling"), seed=0)
    for _ in range(600):
        arm = bandit.select()
        bandit.update(arm, float(rewards[arm][pulls[arm]]))
        pulls[arm] += 1
    level = 3.0 * math.log(301.0)
    for row in bandit.estimates():
        arm = row["arm"]
        other = rewards[arm][1 : pulls[arm] : 2].copy()[None]  # each round pulls twice
        expected = doubling(other, C * level, np.abs(other).min(axis=1))[0]
        assert row["threshold"] == expected[0]
        assert 1.0 <= expected[0] / roots(other, level)[0] <= 2.0
