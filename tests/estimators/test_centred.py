"""Bounds about the sample median: where they may be used, and where they would fail."""

import math

import numpy as np
import pytest
from scipy import stats

from robandit import estimators
from robandit.errors import InvalidInput, NoThresholdError
from robandit.laws import Gaussian, Pareto, StudentT


@pytest.mark.parametrize("delta", [0.2, 0.05, 0.01])
@pytest.mark.parametrize("law", [Gaussian(mean=50.0, sd=1.0), StudentT(dof=1.2), -Pareto(tail=1.2)], ids=str)
def test_centred_bounds_hold_at_the_smallest_sample_that_is_allowed(law, delta):
    """Measured, not proved: at 3 c L values in X' the share of misses must be consistent with delta."""
    level = math.log(1 / delta)
    n = 2 * math.ceil(3 * (1 + math.sqrt(2)) ** 2 * level)
    trials = 4000
    x = law.sample(trials * n, 11).reshape(trials, n)
    missed = np.sum(
        estimators.adaptive_trimmed_mean(x, delta=delta, bonus="likelihood", center="median").upper < law.mean
    )
    assert missed <= stats.binom.ppf(1 - 1e-6, trials, delta)


def test_centred_bounds_of_smaller_samples_are_rejected(monkeypatch):
    """And rightly so: without the refusal half of them fail. This is the negative control of the test above."""
    x = StudentT(dof=1.5).sample(2000 * 38, 3).reshape(2000, 38)
    with pytest.raises(
        NoThresholdError, match=r"has 38 values: a bound about the median needs at least 106 at delta = 0.05"
    ):
        estimators.adaptive_trimmed_mean(x, delta=0.05, bonus="likelihood", center="median")
    monkeypatch.setattr("robandit.estimators.adaptive.CENTRED", 0.0)
    upper = estimators.adaptive_trimmed_mean(x, delta=0.05, bonus="likelihood", center="median").upper
    assert np.mean(upper >= 0.0) < 0.7


def test_a_spread_that_overflows_is_rejected_by_name():
    x = np.where(np.arange(200) % 3 == 0, -1.7e308, 1.7e308)
    with pytest.raises(InvalidInput, match="a value minus the median exceeds the largest double"):
        estimators.adaptive_trimmed_mean(x, delta=0.1, center="median")
