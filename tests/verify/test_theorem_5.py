"""Theorem 5's check holds, and does not where the threshold is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import bdtrc

from helpers.cases import cases
from robandit.verify.drawn_samples import roots
from robandit.verify.statement import Effort, checked
from robandit.verify.theorem_5 import STATEMENT, pareto_root, run

QUICK = Effort(quick=True)


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert {item for f in outcome.ran.findings for item in f.misprints} == {"2b", "9", "10", "18"}
    assert [f.verdict for f in outcome.ran.findings] == ["holds"] * 6
    sharp = outcome.ran.findings[-1]
    # For the rare loss M is nearly sqrt(u s / (c L)) with eps = 1, so that its ratio is nearly c^(-1/2) = 0.414.
    assert sharp.measured == pytest.approx(math.sqrt(2.0) - 1.0, abs=0.01)


@pytest.mark.parametrize(
    ("wrong", "claims"),
    [
        (lambda other, level, c: 10.0 * roots(other, level, c), {0, 1, 2}),  # the first inequality
        (lambda other, level, c: 0.1 * roots(other, level, c), {0, 2}),  # the second: a small M is below every bound
        (lambda other, level, c: roots(other, level, 0.05 * c), {0, 1, 2}),
        (
            lambda other, level, c: roots(other, level, 5.0 * c),
            {0, 1, 2},
        ),  # of 64 values it is missing though it exists
        (lambda other, level, c: np.full(len(other), math.nan), {0, 1, 2}),
        (lambda other, level, c: np.full(len(other), math.inf), {0, 1, 2}),
    ],
    ids=["ten times too large", "ten times too small", "c too small", "c too large", "never there", "infinite"],
)
def test_a_wrong_threshold_fails(wrong: Callable[..., np.ndarray], claims: set[int]) -> None:
    findings = run(QUICK, thresholds=wrong).findings
    assert {k for k in range(3) if findings[k].verdict == "fails"} == claims


@cases("tail", [1.2, 1.5, 2.5])
@cases("value", [0.5, 0.01, 1e-4])
def test_the_root_with_the_expectation(tail: float, value: float) -> None:
    m = pareto_root(tail, value)
    inside, _ = quad(lambda t: math.exp(2.0 * t) * tail * math.exp(-tail * t), 0.0, math.log(m))
    assert inside / m**2 + m**-tail == pytest.approx(value, rel=1e-8)


@cases("c", [2.8, 4.0, 5.83])
@cases("delta", [0.3, 0.1, 0.01])
def test_chernoffs_bound_on_a_large_threshold(c: float, delta: float) -> None:
    """M is above (u s/L)^(1/(1+eps)) if more than c L of s values are as large as that, each with probability L/s at most."""
    level = math.log(1.0 / delta)
    exponent = c * math.log(c) - c + 1.0
    for n in (50, 100, 10_000):
        assert bdtrc(math.floor(c * level), n, level / n) <= delta**exponent <= delta


def test_the_root_is_0_from_value_1_on() -> None:
    assert pareto_root(1.5, 1.0) == pareto_root(1.5, 3.0) == 0.0
