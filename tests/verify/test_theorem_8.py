"""The check of Theorem 8: it holds for AdaR-UCB, and fails for a policy or a bound that is wrong."""

import math

import pytest

from helpers.cases import cases
from robandit import Uniform
from robandit.policies import Oracle
from robandit.policies.base import Policy
from robandit.theory.adar_bounds import repaired_worst_case
from robandit.verify import theorem_8
from robandit.verify.statement import Effort, checked
from robandit.verify.theorem_8 import FAMILIES, Family

QUICK = Effort(quick=True)


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


@pytest.mark.parametrize(("policy", "lost"), [(Uniform(), 0.5), (Oracle(arm=1), 1.0)], ids=lambda p: str(p))
def test_linear_regret_breaks_the_bound_in_the_shipped_cases(policy: Policy, lost: float) -> None:
    """88 sqrt(2 * 3 log H * H) is below H from H = 700,000 on: what uniform play loses with a gap of 1."""
    ran = theorem_8.run(QUICK, policy=policy, families=FAMILIES[:1])
    assert ran.findings[0].verdict == "fails"
    case = theorem_8.wide_cases()[0]
    assert ran.findings[0].measured == pytest.approx(
        lost * 2_000_000 / repaired_worst_case(case.problem, 2_000_000, 1.0), rel=0.01
    )
    assert ran.findings[3].verdict == "fails"  # neither has an index


def test_if_no_policy_could_break_the_bound_it_is_inconclusive() -> None:
    ran = theorem_8.run(QUICK, families=FAMILIES[:1], wide=())
    assert "largest gap in 0 of" in ran.ran
    assert ran.findings[0].verdict == "inconclusive"


def test_the_shipped_cases_have_some_that_can_be_broken() -> None:
    for case in theorem_8.wide_cases():
        assert case.problem.assumption().holds
        assert repaired_worst_case(case.problem, 2_000_000, 1.0) < 0.45 * 2_000_000 * case.problem.gaps.max()


def test_a_bound_that_is_too_small_is_broken() -> None:
    ran = theorem_8.run(QUICK, bound=lambda *args: repaired_worst_case(*args) / 1000.0, families=FAMILIES[:1], wide=())
    assert ran.findings[0].verdict == "fails"


@cases("family", FAMILIES)
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
