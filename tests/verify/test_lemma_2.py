"""Lemma 2's check holds, and does not where something is broken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.amount import long_only
from robandit.estimators.adaptive import lemma_2
from robandit.estimators.formulas.threshold import C
from robandit.laws import Law, Pareto, StudentT
from robandit.verify.drawn_samples import roots
from robandit.verify.lemma_2 import FITTING, RARE_GAIN, STATEMENT, Case, _critical_tail, run
from robandit.verify.statement import Effort, Finding, checked
from robandit.verify.theorem_5 import pareto_root

QUICK = Effort(quick=True)
STUDENT: dict[str, Law] = {"Student t 1.5": StudentT(dof=1.5)}


def bound(**broken: object) -> Finding:
    """The first claim: the bound holds under the assumption."""
    return run(QUICK, **{"laws": STUDENT, **broken}).findings[0]  # type: ignore[arg-type]


def test_it_holds() -> None:
    outcome = checked(STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    assert {item for f in outcome.ran.findings for item in f.misprints} == {"5", "7", "8", "20"}
    assert [f.verdict for f in outcome.ran.findings] == ["holds"] * 7
    by_claim = {f.claim.split(":")[0]: f for f in reversed(outcome.ran.findings)}
    assert by_claim["arithmetic"].measured == pytest.approx(28 / 3)


def test_without_its_width_the_bound_fails() -> None:
    assert bound(width=lambda level, n, bonus, sd, threshold: 0.0 * sd).verdict == "fails"


def test_with_only_a_third_of_the_variance_term_it_fails() -> None:
    def narrow(level: float, n: int, bonus: str, sd: np.ndarray, threshold: np.ndarray) -> np.ndarray:
        return lemma_2(level, n, bonus, sd, 0.0 * threshold) / 3.0

    assert bound(width=narrow).verdict == "fails"


def test_without_its_bonus_it_fails_on_the_shipped_laws() -> None:
    def bare(level: float, n: int, bonus: str, sd: np.ndarray, threshold: np.ndarray) -> np.ndarray:
        return lemma_2(level, n, bonus, sd, 0.0 * threshold)

    finding = bound(width=bare, laws=FITTING)
    assert finding.verdict == "fails"
    # no 0 in 64 values: the sample's variance is 0, and its mean -1 below -127/128; delta = 0.01
    assert finding.low < (127 / 128) ** 64 / 0.02 < finding.high
    assert FITTING["rare zero"].truncated_nonpositivity().holds


@pytest.mark.parametrize("missing", [math.nan, math.inf])
def test_a_missing_threshold_counts_as_a_failure(missing: float) -> None:
    assert bound(thresholds=lambda other, level: np.full(len(other), missing)).verdict == "fails"


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_it_holds_for_every_independent_threshold(factor: float) -> None:
    assert bound(thresholds=lambda other, level: factor * roots(other, level)).verdict == "holds"


def test_a_law_that_violates_the_assumption_makes_it_fail() -> None:
    assert bound(laws={"Pareto 1.1": Pareto(tail=1.1)}).verdict == "fails"
    assert bound(laws={"rare gain": RARE_GAIN}).verdict == "fails"


def test_the_skewed_laws_must_break_the_bound() -> None:
    generous = run(QUICK, laws=STUDENT, width=lambda level, n, bonus, sd, threshold: 100.0 + 0.0 * sd)
    assert [f.verdict for f in generous.findings if "without the assumption" in f.claim] == ["fails"]


def test_the_rare_gain() -> None:
    assert RARE_GAIN.mean == pytest.approx(1.0)
    assert not RARE_GAIN.truncated_nonpositivity().holds


@pytest.mark.parametrize("constant", [10.0, 14.0 / 3.0])
def test_the_tail_below_which_pareto_laws_break_the_bound(constant: float) -> None:
    """From the law's own moments at N = 1e12, where only the leading terms are left."""
    level, n = 3.0, 1e12

    def lost(tail: float) -> float:
        m = pareto_root(tail, C * level / n)
        variance = tail / (2.0 - tail) * (m ** (2.0 - tail) - 1.0) - (Pareto(tail=tail).mean) ** 2
        spread = math.sqrt(2.0 * variance * level / n)
        return Pareto(tail=tail).partial_mean(m) - spread - constant * m * level / n

    assert lost(_critical_tail(constant) - 0.01) > 0.0 > lost(_critical_tail(constant) + 0.01)


def test_the_constant_that_is_needed_is_a_quantile() -> None:
    case = Case("", 64, 0.1, {"paper": 3, "tight": 0}, np.arange(100.0))
    assert case.constant(0.9).measured == 80.0
    assert case.over("paper", 0.99).measured == pytest.approx(0.03 / 0.2)


@long_only
def test_the_same_seed_gives_the_same_numbers() -> None:
    first, other = (run(Effort(quick=True, seed=seed), laws=STUDENT).rows for seed in (0, 1))
    assert run(QUICK, laws=STUDENT).rows == first != other
