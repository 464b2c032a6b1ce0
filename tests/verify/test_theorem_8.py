"""The check of Theorem 8: it holds for AdaR-UCB, and fails for a policy or a bound that is wrong."""

import math

import pytest

from robandit import Uniform
from robandit.laws import Constant, Gaussian
from robandit.problems import Problem
from robandit.theory.adar_bounds import repaired_worst_case
from robandit.verify import theorem_8
from robandit.verify.regret import Case
from robandit.verify.statement import Effort, checked
from robandit.verify.theorem_8 import FAMILIES, Family

QUICK = Effort(quick=True)


class LargeGap(Family):
    """One problem at every T, with the largest gap that u allows, and a horizon at which the bound is below linear regret."""

    def cases(self, horizon: int, smallest: int) -> list[Case]:
        return [Case("large gap", Problem([Gaussian(0.0, 0.01), Constant(-1.0)]), 1.0)]


def test_it_holds() -> None:
    outcome = checked(theorem_8.STATEMENT, QUICK)
    assert outcome.verdict == "holds"
    repaired, printed, exponent, odd, covers, larger, forced = outcome.ran.findings
    assert 0.01 < repaired.measured < 0.2
    assert repaired.measured < printed.measured < 1.0
    assert exponent.verdict != "fails"
    assert odd.misprints == ("16",)
    assert covers.measured == pytest.approx(2.0 * math.sqrt(120.0), rel=1e-9)
    assert larger.measured == pytest.approx(88.0 * math.sqrt(1.5), rel=1e-9)
    assert forced.measured == pytest.approx(34.97, abs=0.01)
    assert all(f.verdict == "holds" for f in (odd, covers, larger, forced))


def test_uniform_play_breaks_the_bound() -> None:
    """Only at long horizons: 88 sqrt(2 * 3 log H * H) is below H from H = 700,000 on."""
    family = LargeGap("Student t", 1.0, 2)
    ran = theorem_8.run(QUICK, policy=Uniform(), families=[family], horizons=[1_000_000, 4_000_000])
    assert ran.findings[0].verdict == "fails"
    case = family.cases(0, 0)[0]
    assert ran.findings[0].measured == pytest.approx(
        2_000_000 / repaired_worst_case(case.problem, 4_000_000, 1.0), rel=0.01
    )


def test_a_bound_that_is_too_small_is_broken() -> None:
    ran = theorem_8.run(QUICK, bound=lambda *args: repaired_worst_case(*args) / 1000.0, families=FAMILIES[:1])
    assert ran.findings[0].verdict == "fails"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_case_is_in_the_class(family: Family) -> None:
    cases = family.cases(24_000, 6_000)
    assert len(cases) >= 1
    for case in cases:
        assert case.problem.assumption().holds
        assert math.isfinite(case.problem.u(case.eps))
        assert case.problem.arms == family.arms


def test_gaps_shrink_with_the_horizon_at_the_rate_of_the_bound() -> None:
    family = Family("rare losses", 0.6, 5)
    short, long = (family.cases(t, 6_000)[0].problem.gaps.max() for t in (6_000, 96_000))
    rate = (math.log(48_000) / 96_000 / (math.log(3_000) / 6_000)) ** (0.6 / 1.6)
    assert long / short == pytest.approx(rate, rel=1e-9)
    # 2 (K log(T/2)/T)^q u^(1/p) is the delta, and the largest gap of Theorem 4's family is 2/3 of it
    assert short == pytest.approx(2 / 3 * 2 * (5 * math.log(3000) / 6000) ** 0.375 * 0.01 ** (1 / 1.6), rel=1e-9)


def test_the_smallest_horizon_decides_which_gaps_fit() -> None:
    """A series over T compares the same multiples throughout."""
    family = Family("Student t", 0.3, 2)
    assert len(family.cases(10**6, 10**6)) > len(family.cases(10**6, 6_000)) == len(family.cases(6_000, 6_000))
