"""The worst of several cases counts, end by end: an uncertain case does not hide one that certainly fails."""

import numpy as np

import robandit as rb
from robandit.intervals import Interval
from robandit.laws import Constant, Gaussian
from robandit.problems import Problem
from robandit.theory.lower_bounds import lower_bound_eps_adaptive
from robandit.verify import hard_problems, table_1, theorem_4, theorem_7, theorem_8
from robandit.verify.interval_arithmetic import largest, smallest
from robandit.verify.regret import Case, Measured, worst_of
from robandit.verify.statement import Finding

# Each pair crosses: one interval reaches further, the other lies entirely beyond the limit.
HIGH = [Interval(1.0, 0.5, 3.0), Interval(1.5, 1.2, 2.0)]
LOW = [Interval(1.0, 0.2, 3.0), Interval(0.5, 0.4, 0.8)]
CASE = Case("a", Problem([Gaussian(0.0, 0.01), Constant(-1.0)]), 1.0)


def test_the_largest_and_smallest_of_crossing_intervals():
    assert Finding(claim="", **largest(HIGH)._asdict(), most=1.0).verdict == "fails"
    assert Finding(claim="", **smallest(LOW)._asdict(), least=1.0).verdict == "fails"
    for one in HIGH[:1]:  # alone it is open
        assert Finding(claim="", **one._asdict(), most=1.0).verdict == "inconclusive"


def test_mean_regret_over_the_bounds():
    measured = [Measured(CASE, mark, ratio, 2.0) for mark, ratio in zip((10, 20), HIGH, strict=True)]
    assert worst_of(measured).horizon == 20
    for theorem in (theorem_7, theorem_8):
        repaired, _ = theorem._regret_findings(measured, measured)
        assert repaired.verdict == "fails"
        assert "T = 20" in repaired.note


def test_if_no_policy_could_break_the_bound_it_is_inconclusive():
    measured = [Measured(CASE, 10, Interval(0.1, 0.1, 0.1), 0.9)]
    for theorem in (theorem_7, theorem_8):
        assert theorem._regret_findings(measured, measured)[0].verdict == "inconclusive"


def test_growth_of_regret():
    coefficient, power = theorem_7._growth_findings([theorem_7.Growth(CASE, ratio, ratio, 1.0) for ratio in HIGH])
    assert (coefficient.low, coefficient.high) == (1.2, 3.0)
    assert (power.low, power.high) == (1.2 - 1.0, 2.0)
    assert "1.5 and 1" in power.note


def test_the_rows_of_the_table():
    def grows(power: Interval) -> tuple[table_1.Exponent, ...]:
        return (table_1.Exponent("T", power, 0.0),)

    rows = {rb.AdaRUCB(): grows(Interval(0.5, 0.1, 0.9)), rb.HTINF(): grows(Interval(0.7, 0.6, 0.8))}
    (finding,) = table_1._learning(rows)
    assert finding.verdict == "fails"
    assert "HTINF" in finding.note


def test_the_control_of_the_table_can_fail():
    """Three regrets that grow like T^1.1, with next to no spread."""
    marks = [1000, 10_000, 100_000]
    cases = [case for sweep in table_1._sweeps(table_1.CONTROL, marks) for case in sweep.cases]
    for power, verdict in ((1.0, "holds"), (1.1, "fails")):
        noise = 1.0 + 1e-4 * np.random.default_rng(0).normal(size=10)
        regret = {(table_1.CONTROL, g, s, t): g * t**power / 2.0 * noise for g, s, t in cases}
        assert table_1._control(regret, marks, 10).verdict == verdict


def test_the_lower_bounds():
    bound = lower_bound_eps_adaptive(1000)
    runs = [
        hard_problems.OnPair(bound, rb.Uniform(), Interval(*(x * bound.value for x in seen)), np.zeros(2))
        for seen in LOW
    ]
    assert hard_problems.escapes(runs, lambda _: "")[0].verdict == "fails"
    case = theorem_4.Case(1.0, 2, 1000)
    families = [
        theorem_4.OnFamily(case, rb.Uniform(), Interval(*(x * case.bound for x in seen)), np.zeros(2)) for seen in LOW
    ]
    assert theorem_4._over_bound(families, [case.bound] * 2).verdict == "fails"
    rate = case.bound / (2.0 * 1000.0) ** 0.5
    assert theorem_4._over_rate(families, rate).verdict == "fails"
