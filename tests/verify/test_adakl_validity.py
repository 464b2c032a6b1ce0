"""The check of Lemma B holds, and does not where something is broken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.amount import long_only
from robandit.laws import Law, Pareto, StudentT
from robandit.verify.adakl_validity import STATEMENT, grid_cost, run
from robandit.verify.drawn_samples import roots
from robandit.verify.lemma_2 import RARE_GAIN, RARE_ZERO
from robandit.verify.statement import Effort, Finding, checked

QUICK = Effort(quick=True)
STUDENT: dict[str, Law] = {"Student t 1.5": StudentT(dof=1.5)}


def validity(**broken: object) -> Finding:
    """The first claim: the index is valid under the assumption."""
    return run(QUICK, **{"laws": STUDENT, **broken}).findings[0]  # type: ignore[arg-type]


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert [f.verdict for f in outcome.ran.findings[:3]] == ["holds"] * 3


def test_without_its_exponent_it_fails() -> None:
    assert validity(exponent=lambda level, n: 1e-9).verdict == "fails"


def test_with_a_twentieth_of_the_exponent_it_fails() -> None:
    assert validity(exponent=lambda level, n: 0.05 * level / n).verdict == "fails"


def test_rare_zeros_need_the_level() -> None:
    """No 0 in 64 values of -1: the index is -1 + 2 M (1 - e^(-a)) or so, and the mean is -127/128."""
    laws: dict[str, Law] = {"rare zero": RARE_ZERO}
    assert validity(laws=laws).verdict == "holds"
    assert validity(laws=laws, exponent=lambda level, n: 1e-3 / n).verdict == "fails"


@pytest.mark.parametrize("missing", [math.nan, math.inf])
def test_a_missing_threshold_counts_as_a_failure(missing: float) -> None:
    assert validity(thresholds=lambda other, level: np.full(len(other), missing)).verdict == "fails"


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_it_holds_for_every_independent_threshold(factor: float) -> None:
    assert validity(thresholds=lambda other, level: factor * roots(other, level)).verdict == "holds"


def test_a_law_that_violates_the_assumption_makes_it_fail() -> None:
    assert validity(laws={"Pareto 1.1": Pareto(tail=1.1)}).verdict == "fails"
    assert validity(laws={"rare gain": RARE_GAIN}).verdict == "fails"


def test_a_coarse_grid_costs_more() -> None:
    assert grid_cost(QUICK) < 1.0 < grid_cost(QUICK, coarser=5)


@long_only
def test_the_same_seed_gives_the_same_numbers() -> None:
    first, other = (run(Effort(quick=True, seed=seed), laws=STUDENT).findings[3].measured for seed in (0, 1))
    assert run(QUICK, laws=STUDENT).findings[3].measured == first != other
