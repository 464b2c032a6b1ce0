"""Theorem 6's check holds, and does not where something is broken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.amount import long_only
from robandit.estimators.adaptive import theorem_6
from robandit.verify.drawn_samples import roots
from robandit.verify.statement import Effort, checked
from robandit.verify.theorem_6 import STATEMENT, run

QUICK = Effort(quick=True)


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert {item for f in outcome.ran.findings for item in f.misprints} == {"6"}
    _, constant, both, sharp, plain = outcome.ran.findings
    assert constant.measured == pytest.approx(1.0 / 3.0 + 1.0 + 3.0 * math.sqrt(2.0))  # eps = 1
    assert both.measured == pytest.approx(5.6 * math.sqrt(2.0))
    assert 0.0 < sharp.low < sharp.high < 1.0
    assert plain.verdict == "holds"
    assert plain.low < (1.0 - (639 / 640) ** 64) / 0.04 < plain.high


@long_only
def test_a_bound_a_tenth_as_wide_fails() -> None:
    narrow = run(QUICK, width=lambda level, n, eps, u: 0.1 * theorem_6(level, n, eps, u))
    assert narrow.findings[0].verdict == "fails"
    # The errors are the same, so that they are ten times as large in units of the bound.
    assert narrow.findings[3].measured == pytest.approx(10.0 * run(QUICK).findings[3].measured)


def test_a_threshold_that_trims_all_fails() -> None:
    def tiny(other: np.ndarray, level: float) -> np.ndarray:
        return 1e-3 * roots(other, level)

    assert run(QUICK, thresholds=tiny).findings[0].verdict == "fails"


@pytest.mark.parametrize("missing", [math.nan, math.inf])
def test_a_missing_threshold_counts_as_a_failure(missing: float) -> None:
    never = run(QUICK, thresholds=lambda other, level: np.full(len(other), missing))
    assert never.findings[0].verdict == "fails"
    assert never.findings[0].measured > 2.0  # in every sample, 1/(4 delta), except the few without a threshold


def test_the_mean_that_is_not_trimmed_fails() -> None:
    plain = run(QUICK, thresholds=lambda other, level: np.full(len(other), 1e300)).findings
    assert plain[0].verdict == "fails"
    assert plain[0].measured == plain[-1].measured
