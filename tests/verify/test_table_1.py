"""The check of Table 1: exponents by hand, a control that is exact, and policies that do not learn under other names."""

import dataclasses
from functools import partial

import numpy as np
import pytest

import robandit as rb
from helpers.amount import amount
from robandit.intervals import Interval
from robandit.policies import EpsilonGreedy, Uniform
from robandit.theory import klinf, rate
from robandit.verify.statement import Effort, checked, worst
from robandit.verify.table_1 import (
    BASE,
    GAPS,
    HEAVY,
    LIGHTER,
    SCALES,
    STATEMENT,
    Exponent,
    Sweep,
    _bound,
    _exponent,
    _learning,
    _rate,
    _row,
    _sweeps,
    run,
    table_rows,
)

pytestmark = pytest.mark.xdist_group("table 1")  # one process plays the table

QUICK = Effort(quick=True, threads=2)
# A row of each kind: a rate that says nothing (6), misprints (9, 10), a known horizon (10). `make test-long` plays all 13.
ROWS = amount((6, 8, 9, 10, 11, 13), tuple(range(1, 14)))


class Coin(Uniform):
    """Uniform play with the facts of HTINF."""

    about = dataclasses.replace(rb.HTINF.about, knows=())


class Tenth(EpsilonGreedy):
    """Linear regret, 5 % of T, with the facts of HTINF."""

    about = dataclasses.replace(rb.HTINF.about, knows=())


def by_claim(ran, word):
    return next(f for f in ran.findings if word in f.claim)


@pytest.fixture(scope="module")
def quick():
    rows = [policy for policy in table_rows() if policy.facts.row in ROWS]
    return checked(dataclasses.replace(STATEMENT, run=partial(run, rows=rows)), QUICK)


def test_what_can_be_decided_holds_and_limits_stay_open(quick):
    ran = quick.ran
    assert not quick.failed
    decided = [f for f in ran.findings if not f.asymptotic]
    assert len(decided) == 4
    assert worst(f.verdict for f in decided) == "holds"
    assert by_claim(ran, f"each of {len(ROWS) - 1} rows").verdict == "holds"  # one row's rate says nothing for two arms
    assert by_claim(ran, "uniform play has").verdict == "holds"
    for name, item in (("AdaTINF", "22"), ("OptTINF", "21")):
        finding = by_claim(ran, f"{name}: the worst case")
        assert finding.misprints == (item,)
        assert finding.measured == pytest.approx(1.0, abs=0.02)
    rows = [f for f in ran.findings if f.asymptotic]
    assert len(rows) == len(ROWS)
    assert (
        quick.verdict == worst(f.verdict for f in rows) == "inconclusive"
    )  # T = 200,000 is not the limit, and it says so
    count = sum(f.verdict == "inconclusive" for f in rows)
    assert quick.headline.startswith(
        f"{count} of {len(ROWS)} rows are not shown to be within their rates at T = 200,000;"
    )
    drawn = ran.rows
    assert len(drawn) == 3 * len(ROWS)
    assert {row["series"] for row in drawn} == {"T", "1/gap", "u"}
    assert all(row["low"] <= row["x"] <= row["high"] for row in drawn if "x" in row)


def test_the_rates_exponents_are_those_of_the_formula(quick):
    by_case = {row["case"]: row for row in quick.ran.rows}
    assert by_case["HTINF: 1/gap"]["limit"] == pytest.approx(1.0 / HEAVY.eps, abs=1e-6)
    assert by_case["HTINF: u"]["limit"] == pytest.approx(1.0 / HEAVY.eps, abs=1e-6)
    assert by_case["HTINF: T"]["limit"] == pytest.approx(np.log(np.log(2e5) / np.log(2e4)) / np.log(10.0), abs=1e-3)
    assert by_case["AdaTINF: 1/gap"]["limit"] == 0.0


@pytest.mark.parametrize("pretender", amount([Tenth()], [Coin(), Tenth()]), ids=lambda policy: type(policy).__name__)
def test_linear_regret_is_told_from_log_t(pretender):
    ran = run(QUICK, rows=[pretender])
    finding = by_claim(ran, "each of 1 rows")
    assert finding.verdict == "fails"
    assert finding.must
    assert finding.measured == pytest.approx(1.0, abs=0.05)
    row = by_claim(ran, f"{pretender.label}: no exponent")
    assert row.verdict == "inconclusive"
    assert "T: 1" in row.note or "T: 0.99" in row.note
    assert ("close to uniform play" in row.note) == isinstance(pretender, Coin)
    assert by_claim(ran, "uniform play has").verdict == "holds"


def test_all_thirteen_rows_have_rates_and_problems():
    rows = table_rows()
    assert [policy.facts.row for policy in rows] == list(range(1, 14))
    for policy in rows:
        for sweep in _sweeps(policy, [1000, 10_000, 100_000]):
            rates = [_rate(policy, *case) for case in sweep.cases]
            assert np.isfinite(rates).all()
            assert min(rates) > 0.0
            assert len(set(sweep.x)) == 3


def test_the_moments_that_policies_know():
    truncated, medians, catoni, *_ = table_rows()
    for gap in GAPS:  # the same over the gaps, and valid for each
        assert _bound(truncated, HEAVY, gap, SCALES[0]) == HEAVY.problem(*BASE).u(HEAVY.eps)
        assert HEAVY.problem(gap, SCALES[0]).u(HEAVY.eps) <= HEAVY.problem(*BASE).u(HEAVY.eps)
    for scale in SCALES:
        assert _bound(truncated, HEAVY, GAPS[-1], scale) == HEAVY.problem(GAPS[-1], scale).u(HEAVY.eps)
        assert _bound(medians, HEAVY, GAPS[-1], scale) == HEAVY.problem(GAPS[-1], scale).v(HEAVY.eps)
        assert _bound(catoni, LIGHTER, GAPS[-1], scale) == pytest.approx(5.0 * scale**2)  # dof / (dof - 2)
    assert HEAVY.problem(*BASE).assumption().holds
    assert HEAVY.problem(*BASE).tail_index > 1.0 + HEAVY.eps


def test_klinf_counts_pulls_and_regret_counts_gaps():
    policy = table_rows()[4]
    problem = HEAVY.problem(1.0, 0.5)
    distance = klinf(problem.laws[1], 0.0, eps=HEAVY.eps, u=HEAVY.problem(*BASE).u(HEAVY.eps))
    assert _rate(policy, 1.0, 0.5, 1000) == pytest.approx(np.log(1000) / distance)
    distance = klinf(HEAVY.problem(*BASE).laws[1], 0.0, eps=HEAVY.eps, u=HEAVY.problem(*BASE).u(HEAVY.eps))
    assert _rate(policy, *BASE, 1000) == pytest.approx(2.0 * np.log(1000) / distance)


def test_exponents_of_made_up_regret():
    marks = [1000, 10_000, 100_000]
    policy = rb.AdaRUCB()
    noise = np.random.default_rng(0).uniform(0.9, 1.1, 50)
    for sweep, power in zip(_sweeps(policy, marks), (0.3, 1.5, 0.7), strict=True):
        regret = {(policy, *case): noise * 0.1 * x**power for case, x in zip(sweep.cases, sweep.x, strict=True)}
        finding = _exponent(policy, sweep, regret, 0.99)
        assert finding.measured is not None
        assert finding.measured.measured == pytest.approx(power, abs=1e-9)
        exact = rate(policy)
        rates = [exact(m, 2, _bound(policy, HEAVY, g, s), HEAVY.eps, [g]) for g, s, m in sweep.cases]
        assert finding.printed == pytest.approx(np.polyfit(np.log(sweep.x), np.log(rates), 1)[0], abs=1e-6)
    uniform = {(policy, *case): np.full(5, 0.51 * case[0] * case[2] / 2.0) for case in sweep.cases}
    assert _exponent(policy, sweep, uniform, 0.99).measured is None  # u: still close to uniform play
    in_t = Sweep("T", np.array(marks, dtype=float), [(*BASE, mark) for mark in marks])
    still = _exponent(policy, in_t, {(policy, *case): np.full(5, case[2]) for case in in_t.cases}, 0.99)
    assert still.measured.measured == pytest.approx(1.0)


def test_the_worst_row_and_the_largest_excess_count():
    def exponents(power, printed=0.1):
        return (Exponent("T", Interval(power, power - 0.01, power + 0.01), printed), Exponent("1/gap", None, 1.0))

    good, bad = rb.AdaRUCB(), rb.HTINF()
    (finding,) = _learning({good: exponents(0.1), bad: exponents(0.9)})
    assert finding.verdict == "fails"
    assert "HTINF" in finding.note
    assert _learning({good: exponents(0.1)})[0].verdict == "holds"
    assert _learning({good: exponents(0.9, printed=4.0)}) == []  # a rate beyond T says nothing
    assert _row(good, exponents(0.05)).verdict == "holds"
    assert _row(good, exponents(0.3)).verdict == "inconclusive"
    assert _row(good, exponents(0.3)).measured == pytest.approx(0.2)
    assert "not measured" in _row(good, exponents(0.3)).note


def test_the_statement():
    assert STATEMENT.key == "table-1"
    assert STATEMENT.run is run
