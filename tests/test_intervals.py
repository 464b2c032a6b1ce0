"""Intervals: simulations and experiments agree, and each kind covers as often as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import robandit as rb
from robandit import intervals
from robandit.errors import InvalidInput
from robandit.experiments import Played, Results, planned, summary
from robandit.intervals import Interval, bootstrap_intervals, mean_interval, quantile_interval, share


@pytest.mark.parametrize("replications", [1, 2, 7, 30])
def test_simulations_and_experiments_give_the_same_intervals(replications: int) -> None:
    """The same replications, once in one result and once cut into the units of a plan."""
    problem = rb.problems.negated_pareto(means=[-1.0, -1.5, -2.25], tail=1.5)
    policies = [rb.UCB1(), rb.EpsilonGreedy()]
    alone = rb.simulate(policies, problem, 300, replications, seed=5).summary()
    plan = planned([Played("costs", problem, 300)], policies, replications=replications, seed=5)
    experiment = summary(Results.of(plan, [(unit, unit.run(), math.nan) for unit in plan.units]))
    columns = ["policy", "mean", "mean_low", "mean_high", "median", "q95", "worst"]
    assert alone.select(columns).sort("policy").equals(experiment.select(columns).sort("policy"))
    other = rb.simulate(policies, problem, 300, replications, seed=6).summary()
    assert not alone.equals(other)


def test_the_bootstrap_interval_of_the_mean_covers_it() -> None:
    """For 40 exponential values the percentile bootstrap covers in 92 to 93 %: 4.5 sigma below are 81 of 100."""
    samples = list(np.random.default_rng(0).exponential(size=(100, 40)))
    assert 81 <= sum(each.low <= 1.0 <= each.high for each in bootstrap_intervals(samples)) <= 99
    # Control: an interval for another number is seen.
    assert sum(each.low <= 1.5 <= each.high for each in bootstrap_intervals(samples)) < 50


def test_the_other_samples_do_not_matter() -> None:
    a, b, c = np.random.default_rng(1).pareto(2.0, size=(3, 25))
    assert bootstrap_intervals([a, b[:10], c])[2] == bootstrap_intervals([c])[0]


def test_blocks_of_weights_give_the_same_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).pareto(2.0, size=50)
    whole = intervals.resampled_means([values], key=3)
    monkeypatch.setattr(intervals, "WEIGHTS", 1_000)
    np.testing.assert_allclose(intervals.resampled_means([values], key=3), whole, rtol=1e-14)
    assert not np.allclose(intervals.resampled_means([values], key=4), whole)


def test_few_values() -> None:
    none, one, equal = bootstrap_intervals([np.array([]), np.array([3.0]), np.full(9, 0.1)])
    assert all(map(math.isnan, none))
    assert one.measured == 3.0
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert equal == (equal.measured,) * 3
    assert mean_interval(np.array([3.0])) == (3.0, -math.inf, math.inf)
    assert all(map(math.isnan, quantile_interval(np.array([1.0, 2.0]), 0.5)))
    assert quantile_interval(np.arange(6.0), 0.5) == (0.0, 5.0)


def test_student_and_clopper_pearson_against_scipy() -> None:
    values = np.random.default_rng(3).normal(size=20)
    student = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean_interval(values, 0.95) == pytest.approx((values.mean(), student.low, student.high))
    exact = stats.binomtest(7, 30).proportion_ci(0.99, method="exact")
    assert share(7, 30) == pytest.approx((7 / 30, exact.low, exact.high))
    assert share(30, 30).high == 1.0
    assert isinstance(share(1, 2), Interval)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_rejected(successes: int, trials: int) -> None:
    with pytest.raises(InvalidInput, match="0 <= successes <= trials"):
        share(successes, trials)


def test_numbers_that_are_not_finite_are_rejected() -> None:
    with pytest.raises(InvalidInput, match="the measured number is inf"):
        mean_interval(np.array([1.0, math.inf]))
