"""The checks of AdaKL-UCB's theorem: the regret and the pulls hold, and do not if something is broken."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest

from helpers.amount import amount
from robandit import AdaKLProved, Uniform
from robandit.laws import Constant, Discrete
from robandit.problems import Problem
from robandit.theory import adakl_instance
from robandit.verify import OURS, PAPER, adakl_theorem, statements
from robandit.verify.adakl_theorem import cases_of_the_theorem
from robandit.verify.regret import Case
from robandit.verify.statement import Effort, checked

QUICK = Effort(quick=True)
WIDEST = cases_of_the_theorem()[:1]


def test_it_holds() -> None:
    cases = amount(cases_of_the_theorem()[::2], cases_of_the_theorem())
    outcome = checked(replace(adakl_theorem.STATEMENT, run=partial(adakl_theorem.run, cases=cases)), QUICK)
    assert outcome.verdict == "holds"
    assert [f.verdict for f in outcome.ran.findings] == ["holds"] * 4
    instance, _, pulls, _ = outcome.ran.findings
    assert 0.05 < instance.measured < 0.2  # so a bound that is 20 times smaller would be broken
    assert 0.05 < pulls.measured < 0.2
    assert len(outcome.ran.rows) == 2 * len(cases)


def test_uniform_play_breaks_it() -> None:
    ran = adakl_theorem.run(QUICK, policies=[Uniform(), Uniform()], cases=WIDEST)
    assert [f.verdict for f in ran.findings[:3]] == ["fails"] * 3
    most = max(50_001 / adakl_instance(WIDEST[0].problem, 100_001, 1.0, pulls) for pulls in ("single", "double"))
    assert ran.findings[0].measured == pytest.approx(most, rel=1e-3)


def test_smaller_bounds_are_broken() -> None:
    ran = adakl_theorem.run(QUICK, bound=lambda *args: adakl_instance(*args) / 20.0, cases=WIDEST, constant=1.5)
    assert [f.verdict for f in ran.findings[:3]] == ["fails"] * 3


def test_a_best_arm_that_violates_the_assumption_breaks_it() -> None:
    """The best arm pays 2,000 once in 1,000 pulls. Its index trims these gains, so the worse arm is played nearly always."""
    rare = Discrete(values=(-1.0, 2000.0), probabilities=(0.999, 0.001))
    case = Case("rare gain", Problem([rare, Constant(-0.5)]), 1.0)
    assert not case.problem.assumption().holds
    assert adakl_theorem.run(QUICK, cases=[case]).findings[0].verdict == "fails"


def test_every_case_is_in_the_class() -> None:
    for case in cases_of_the_theorem():
        assert case.problem.assumption().holds, case.name
        assert math.isfinite(case.problem.u(case.eps)), case.name


def test_ours_are_marked() -> None:
    by_key = {s.key: s for s in statements()}
    for file in OURS:
        assert by_key[file.replace("_", "-")].ours
        assert by_key[file.replace("_", "-")].name.endswith("(ours)")
    assert sum(s.ours for s in statements()) == len(OURS)
    assert not any("(ours)" in s.name for s in statements() if not s.ours)
    assert len(statements()) == len(PAPER) + len(OURS)


def test_the_policy_is_the_one_of_the_theorem() -> None:
    ran = adakl_theorem.run(QUICK, cases=WIDEST)
    for pulls in ("single", "double"):
        assert AdaKLProved(pulls=pulls).name in ran.ran  # type: ignore[arg-type]
