"""The regret bounds of AdaKL-UCB's theorem, against the page's formulas written out, and against runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import robandit as rb
from helpers.cases import cases
from robandit.errors import InvalidInput, NotApplicable
from robandit.laws import Bernoulli, Constant, Gaussian
from robandit.problems import Problem, gaussian, negated_pareto, pareto
from robandit.theory import adakl_instance, adakl_worst_case, rate, regret_bound, repaired_instance, repaired_worst_case
from robandit.theory.adakl_bounds import BASE, EXTRA, SPREAD, TAIL, width_constant

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "adakl-theorem.md"
PROVED = rb.AdaKLProved()
DOUBLE = rb.AdaKLProved(pulls="double")
BOTH = (adakl_instance, adakl_worst_case)

# Losses of 8 with probability 1/4, of 4 with 3/4, of 10 with 1/2: means -2, -3, -5; E X^2 of the worse arms 12 and 50.
RARE = Problem([Bernoulli(0.25) * -8.0, Bernoulli(0.75) * -4.0, Bernoulli(0.5) * -10.0])
GAPS = (1, 3)
C = (1.0 + math.sqrt(2.0)) ** 2


def page(horizon: int, eps: str, g: int) -> tuple[float, float]:
    """Return both bounds of RARE from the page's formulas, with 40 digits; no code of the library is used."""
    with mpmath.workdps(40):
        e = mpmath.mpf(eps)
        p, q = 1 + e, e / (1 + e)
        rounds = (horizon + g - 1) // g
        log = mpmath.log(rounds)
        u = [mpmath.mpf(3) / 4 * 4**p, mpmath.mpf(1) / 2 * 10**p]
        b = mpmath.mpf("2.7") * mpmath.mpf("3.2") ** q + mpmath.mpf("9.6") ** q
        leading = [6 * b ** (1 / q) * (m / gap) ** (1 / e) * log for m, gap in zip(u, GAPS, strict=True)]
        extra = mpmath.mpf(5) / 4 * g * sum(GAPS)
        worst = b * max(u) ** (1 / p) * (2 * 2 * 3 * log) ** q * (g * rounds) ** (1 / p)
        return float(sum(leading) + extra), float(worst + extra)


@cases(("policy", "g"), [(PROVED, 1), (DOUBLE, 2)])
@cases("eps", ["1", "0.5", "0.2"])
@cases("horizon", [2, 3, 2003, 10**6])
def test_against_the_formulas_of_the_page(policy: rb.AdaKLProved, g: int, eps: str, horizon: int) -> None:
    instance, worst = page(horizon, eps, g)
    result = regret_bound(policy, RARE, horizon, eps=float(eps))
    assert result.instance == pytest.approx(instance, rel=1e-12)
    assert result.worst_case == pytest.approx(worst, rel=1e-12)
    assert [bound.status for bound in result.bounds] == ["derived", "derived"]
    assert all("ours" in bound.source for bound in result.bounds)
    assert result.met is True
    assert result.assumption == "truncated non-positivity of the best arm"


def test_the_page_has_the_constants_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"B   = {SPREAD:g} * {BASE:g}^q + {TAIL:g}^q " in text
    assert f"M <= (u n'/({BASE:g} L))^(1/p)" in text
    assert f"P(|X| > M | M) <= {TAIL:g} L/n'" in text
    assert EXTRA == 5 / 4
    assert "regret <= sum_i gap_i (2 A_i + 5 g/4)" in text


def test_hand_computed_at_eps_1() -> None:
    # T = 1000, one pull per round: 6 * 62.8578 * 6.90776 * (12/1 + 50/3) + 5/4 * 4
    assert adakl_instance(RARE, 1000, 1.0) == pytest.approx(6 * 62.857838 * 6.907755 * (12 + 50 / 3) + 5, rel=1e-6)


def test_the_constants_follow() -> None:
    """The arithmetic of Lemmas C, E and F and of the last sum."""
    x, k, rare = 5 / 6, 1.39, 1 / 62
    assert C * math.log(C / 3.2) - C + 3.2 > x
    assert C * math.log(C / 9.6) - C + 9.6 > x
    assert C * math.log(C / 61) - C + 61 > 41
    late = [tau for tau in range(2, 2000) if tau - 1 > 186 * math.log(tau)]
    assert late == list(range(1341, 2000))
    tau = np.arange(1341, 10**6, dtype=float)
    union = 1 + (1 + np.log(tau + 1)) / (3 * np.log(tau))
    assert np.all(np.diff(union) < 0)
    assert 1.379 < union[0] < k
    sigma = math.sqrt(2 * x) + math.sqrt(2 * k) + k * math.sqrt(rare)
    largest = x / 3 + math.sqrt(k * x) + k * math.sqrt(x / 2 * rare) + k
    assert (sigma, largest) == (pytest.approx(3.1349, abs=1e-4), pytest.approx(2.8580, abs=1e-4))
    assert sigma / math.sqrt(3.2) + largest / 3.2 + 0.002 < 2.7
    assert math.sqrt(9.6) * ((1340 / 1339) ** 0.5 - 1) < 0.002
    assert 62 * 3 * math.log(1341) > 1339
    eps = np.linspace(1e-3, 1.0, 1000)
    q = eps / (1 + eps)
    b = np.array([width_constant(e) for e in eps])
    assert np.all(np.diff(b) > 0)
    assert 7.92 < b[-1] < 7.93
    assert np.all(np.diff(np.log(b) / q) < 0)
    assert 62.8 < b[-1] ** 2 < 62.9
    tau = np.arange(1341, 10**7, dtype=float)
    failing = float(np.sum((tau - 1) * (4 * tau**-2.5 + tau**-3)))
    assert failing + 8 / math.sqrt(10**7) < 0.2201 < 0.25


@cases("eps", [0.1, 0.4, 0.7, 1.0])
@cases("zeros", [0.0, 0.5, 0.99])
def test_forced_exploration_is_never_the_larger_term(eps: float, zeros: float) -> None:
    """Lemma E: gap/P(X != 0) <= (u/gap)^(1/eps), with equality if the non-zero rewards are constant and the best mean is 0."""
    law = Bernoulli(1.0 - zeros) * -3.0
    problem = Problem([Constant(0.0), law])
    gap, u = float(problem.gaps[1]), law.absolute_moment(1.0 + eps)
    assert gap / law.nonzero_probability == pytest.approx((u / gap) ** (1.0 / eps), rel=1e-9)
    for other in (RARE, negated_pareto([-1.0, -2.0], 2.5)):
        for i in np.flatnonzero(other.gaps):
            moment = other.laws[i].absolute_moment(1.0 + eps)
            assert other.gaps[i] / other.laws[i].nonzero_probability <= (moment / other.gaps[i]) ** (1.0 / eps)


@pytest.mark.parametrize("bound", BOTH)
@pytest.mark.parametrize("pulls", ["single", "double"])
def test_grows_with_the_horizon(bound: Any, pulls: str) -> None:
    values = [bound(RARE, horizon, 0.7, pulls) for horizon in (2, 10, 100, 1000, 10**4, 10**6, 10**9)]
    assert np.all(np.diff(values) > 0.0)


def test_smaller_gaps_cost_more_at_the_same_u() -> None:
    # mean^2 + sd^2 = 16 throughout
    problems = [Problem([Constant(0.0), Gaussian(-g, math.sqrt(16.0 - g * g))]) for g in (2.0, 1.0, 0.5, 0.1)]
    assert np.all(np.diff([adakl_instance(problem, 10**5, 1.0) for problem in problems]) > 0.0)


@pytest.mark.parametrize("bound", BOTH)
@pytest.mark.parametrize("eps", [0.2, 0.5, 1.0])
def test_units(bound: Any, eps: float) -> None:
    scaled = Problem([law * 1000.0 for law in RARE.laws])
    assert bound(scaled, 10_001, eps) == pytest.approx(1000.0 * bound(RARE, 10_001, eps), rel=1e-9)


def test_the_moment_of_the_best_arm_does_not_matter() -> None:
    """The best arm has an infinite E|X|^1.9, and the worse arm a finite one."""
    calm, wild = Constant(-50.0), negated_pareto([-1.0, -2.0], 1.5).laws[0]
    assert math.isfinite(adakl_instance(Problem([wild, calm]), 1000, 0.9))
    with pytest.raises(
        InvalidInput, match=r"eps = 0\.9 must be below 0\.5, .*a worse arm has an infinite E\|X\|\^1\.9"
    ):
        adakl_instance(Problem([wild - 100.0, calm]), 1000, 0.9)


def test_below_the_bounds_of_adar_ucb() -> None:
    for problem, eps in ((RARE, 1.0), (RARE, 0.4), (negated_pareto([-1.0, -1.5], 1.8), 0.7)):
        for horizon in (10**4, 10**7):
            assert adakl_instance(problem, horizon, eps) < repaired_instance(problem, horizon, eps) / 5.0
            assert adakl_worst_case(problem, horizon, eps) < repaired_worst_case(problem, horizon, eps) / 4.0


def test_without_a_worse_arm_there_is_no_regret() -> None:
    problem = Problem([Constant(-1.0), Constant(-1.0)])
    assert adakl_instance(problem, 100, 1.0) == adakl_worst_case(problem, 100, 1.0) == 0.0


def test_a_bound_that_overflows_is_infinite() -> None:
    assert adakl_instance(gaussian([0.0, -1e-9]), 1000, 0.02) == math.inf


@pytest.mark.parametrize("policy", [PROVED, DOUBLE], ids=["single", "double"])
def test_a_run_stays_below_where_uniform_play_does_not(policy: rb.AdaKLProved) -> None:
    """Losses of 1 against about 0: the gap is as large as the moment allows, so the bound is far below linear regret."""
    problem = Problem([Gaussian(0.0, 0.01), Constant(-1.0)])
    horizon = 50_000
    bound = regret_bound(policy, problem, horizon, eps=1.0).instance
    assert bound is not None
    runs = rb.simulate([policy, rb.Uniform()], problem, horizon, replications=5, seed=0, progress=False)
    ours, uniform = runs.regret[:, :, -1].max(axis=1)
    assert 0.0 < ours < bound < uniform


def test_the_default_has_no_theorem() -> None:
    with pytest.raises(NotApplicable, match="AdaKLUCB: no regret bound is proved"):
        regret_bound(rb.AdaKLUCB(), RARE, 1000)


def test_facts_and_rates() -> None:
    assert "adakl-theorem.md" in PROVED.facts.bound
    assert PROVED.facts.instance == "sum (u/gap)^(1/eps) log T"
    at = (1000, 3, 50.0, 1.0, list(GAPS))
    assert rate(PROVED)(*at) == pytest.approx((50 + 50 / 3) * math.log(1000))


def test_the_assumption_is_checked() -> None:
    assert regret_bound(PROVED, pareto([2.0, 1.0], tail=1.5), 1000).met is False


@pytest.mark.parametrize("bound", BOTH)
def test_invalid_arguments(bound: Any) -> None:
    for given, message in (
        (([0.0, -1.0], 100, 1.0), "problem = .*make one with Problem"),
        ((RARE, 1, 1.0), r"horizon = 1 must be an integer from 2 to 2\^53"),
        ((RARE, True, 1.0), "horizon = True"),
        ((RARE, 100, 0.0), r"eps = 0\.0"),
        ((RARE, 100, 1.0, "triple"), "pulls = 'triple'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            bound(*given)
