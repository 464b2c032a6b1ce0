"""The check of Theorem 7: it holds for AdaR-UCB, and fails for a policy or a bound that is wrong."""

import math

import numpy as np
import pytest

from robandit import AdaRUCB, Uniform
from robandit.intervals import mean_interval
from robandit.laws import Constant, Gaussian
from robandit.problems import Problem
from robandit.theory.adar_bounds import repaired_instance
from robandit.verify import theorem_7
from robandit.verify.regret import Case, growth, over, play, standard_cases, worst_of
from robandit.verify.statement import Effort, checked

QUICK = Effort(quick=True)
# Always -1 against about 0: the gap is as large as u allows, so the bound is as far below linear regret as it can be.
EASY = Case("large gap", Problem([Gaussian(0.0, 0.01), Constant(-1.0)]), 1.0)


def test_it_holds_and_the_printed_bound_does_not() -> None:
    outcome = checked(theorem_7.STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    repaired, printed, coefficient, exponent, *arithmetic = outcome.ran.findings
    assert repaired.verdict == "holds"
    assert 0.01 < repaired.measured < 0.2
    assert printed.low > 1.0  # so the printed constants are refuted
    assert printed.measured < 1.6  # (10/sqrt c + sqrt 2)^2 * 6 / 120 = 1.55 in the limit
    assert coefficient.verdict == "holds"
    assert exponent.verdict != "fails"
    assert {m for f in arithmetic for m in f.misprints} == {"12", "13", "14"}
    assert len(outcome.ran.rows) == 2 * len(standard_cases())
    assert outcome.to_dict()["verdict"] == "holds"


def test_uniform_play_breaks_the_bound() -> None:
    ran = theorem_7.run(QUICK, policy=Uniform(), cases=[EASY])
    # T/2 = 200,000 against 2 (ceil(3 log(T/2) 22^2) + 214 + 6)
    assert ran.findings[0].verdict == "fails"
    assert ran.findings[0].measured == pytest.approx(200_000 / repaired_instance(EASY.problem, 400_000, 1.0), rel=0.01)


def test_a_bound_that_is_too_small_is_broken() -> None:
    ran = theorem_7.run(QUICK, bound=lambda *args: repaired_instance(*args) / 1000.0, cases=[EASY])
    assert ran.findings[0].verdict == "fails"
    coefficient = next(f for f in ran.findings if "log T" in f.claim)
    assert coefficient.low > 1.0
    assert coefficient.verdict == "inconclusive"  # a rate is not refuted by a finite run


def test_every_case_is_in_the_class() -> None:
    for case in standard_cases():
        assert case.problem.assumption().holds, case.name
        assert math.isfinite(case.problem.u(case.eps)), case.name
    assert {case.problem.arms for case in standard_cases()} == {2, 3, 4, 10}
    assert min(law.nonzero_probability for case in standard_cases() for law in case.problem.laws) < 0.3


@pytest.mark.parametrize("eps", [0.1, 0.3, 0.5, 1.0])
def test_the_factor_of_item_12(eps: float) -> None:
    assert theorem_7._claimed_over_gap(eps) == pytest.approx(20.0 ** (1.0 / (1.0 + eps)), rel=1e-12)


def test_growth_finds_the_coefficient() -> None:
    marks = [10, 100, 1000, 10_000]
    rows = np.array([[3.0 + 2.0 * math.log(t) for t in marks], [1.0 - 5.0 * math.log(t) for t in marks]])
    assert growth(marks, rows) == pytest.approx([2.0, -5.0], rel=1e-12)


def test_over_and_worst_of() -> None:
    regret = np.array([[10.0, 30.0], [20.0, 50.0]])
    finding = over(lambda problem, horizon, eps: horizon * eps, EASY, [100, 200], regret, 0.9)
    assert [m.horizon for m in finding] == [100, 200]
    assert [m.ratio.measured for m in finding] == pytest.approx([0.15, 0.2])
    assert finding[0].ratio.high == pytest.approx(mean_interval(regret[:, 0], 0.9).high / 100.0)
    assert worst_of(finding) is finding[1]


def test_play_is_seeded_by_effort_and_key() -> None:
    def once(seed: int, *key: int) -> np.ndarray:
        return play(AdaRUCB(), standard_cases()[2].problem, [500, 1000], 3, Effort(seed=seed), key)

    assert once(0, 7, 1).shape == (3, 2)
    assert np.array_equal(once(0, 7, 1), once(0, 7, 1))
    assert not np.array_equal(once(0, 7, 1), once(0, 7, 2))
    assert not np.array_equal(once(0, 7, 1), once(1, 7, 1))
