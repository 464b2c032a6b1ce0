"""Proposition 9's check holds, and does not for a solver or a guard that is not what the claim says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers.amount import amount, long_only
from helpers.cases import cases
from robandit.errors import NoThresholdError
from robandit.estimators import trimming_threshold
from robandit.estimators.formulas.threshold import C
from robandit.verify.proposition_9 import KINDS, STATEMENT, _around, _first_request, _sample, _values, run
from robandit.verify.statement import Effort, checked, find_statements

QUICK = Effort(quick=True)
SOLVES, SINGLE, REFUSES, SIGN, FIRST, NOUGHT, ROUND_1 = range(7)


def failing(**broken: Any) -> set[int]:
    """The numbers of the claims that fail."""
    return {k for k, f in enumerate(run(QUICK, **broken).findings) if f.verdict == "fails"}


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert {item for f in outcome.ran.findings for item in f.misprints} == {"1", "2", "2c", "4"}
    assert find_statements(["prop-9"], [STATEMENT]) == (STATEMENT,)


@pytest.mark.parametrize("factor", amount([1.0 + 1e-9], [1.0 + 1e-9, 1.0 - 1e-9]))
def test_a_solver_that_is_slightly_off_fails(factor: float) -> None:
    assert SOLVES in failing(solve=lambda x, delta, c=C: factor * trimming_threshold(x, delta, c=c))


@long_only
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_solver_that_is_off_does_not_find_where_F_crosses(factor: float) -> None:
    assert {SOLVES, SINGLE} <= failing(solve=lambda x, delta, c=C: factor * trimming_threshold(x, delta, c=c))


def test_a_solver_that_never_raises_fails() -> None:
    def eager(x: np.ndarray, delta: float, c: float = C) -> Any:
        try:
            return trimming_threshold(x, delta, c=c)
        except NoThresholdError:
            return 1.0

    assert failing(solve=eager) == {REFUSES}


def test_with_the_right_guard_the_first_root_exists() -> None:
    assert failing(guard=C) == {FIRST, NOUGHT}


@cases("run_", range(10))
def test_first_requests(run_: int) -> None:
    assert _first_request(-4.0, run_, QUICK).tau == 2
    four, right = _first_request(4.0, run_, QUICK), _first_request(C, run_, QUICK)
    assert not four.exists
    assert right.exists
    assert four.tau < right.tau
    assert four.index <= 1e-15 < right.index


def test_the_guard_of_one_arm_by_hand() -> None:
    """One arm without zeros has m = tau - 1 in round tau, and 43 > 12 log 44 = 45.4 fails, 46 > 12 log 47 = 46.2, 47 > 46.5."""
    assert _first_request(4.0, 0, QUICK).tau == 48


def test_samples_have_ties_zeros_and_both_signs() -> None:
    rng = np.random.default_rng(0)
    drawn = [_sample(rng, kind, 200) for kind in KINDS for _ in range(50)]
    assert {len(x) for x in drawn} <= set(range(1, 201))
    assert any((x == 0.0).any() for x in drawn)
    assert any(len(np.unique(np.abs(x))) < len(x) for x in drawn)
    sizes = np.concatenate([np.abs(x[x != 0.0]) for x in drawn])
    assert sizes.max() / sizes.min() > 1e16


def test_points_lie_beside_every_corner() -> None:
    points = _around(np.array([1.0, 3.0, 3.0]), 50.0)
    for corner in (1.0, 3.0):
        assert ((points > corner) & (points < corner * (1.0 + 2e-9))).any()
        assert ((points < corner) & (points > corner * (1.0 - 2e-9))).any()
    assert points.min() < 0.01
    assert points.max() > 5e3
    assert _values(np.array([1.0, 3.0]), np.array([0.5, 2.0, 6.0])) == pytest.approx([2.0, 1.25, 1.0 / 36.0 + 0.25])
