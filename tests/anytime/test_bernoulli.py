"""The e-process for a rate has the reference values, is a test martingale at the limit, and keeps alpha at any time."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from helpers.invalid import assert_invalid
from robandit.anytime.bernoulli import log_e_value

RATE, ALPHA, LOOKS = 0.05, 0.05, 300

REFERENCES = [
    ((1, 1, 0.05), 0.6678293726),
    ((0, 10, 0.05), -0.4228568508),
    ((3, 10, 0.05), 1.7472777234),
    ((4, 4, 0.05), 3.8638216007),
    ((10, 100, 0.05), 1.4660007401),
    ((20, 1000, 0.01), 3.0210289003),
    ((0, 5, 0.5), -1.7917594692),
    ((5, 5, 0.5), 2.3513752572),
    ((6, 6, 0.5), 2.8982769374),
    ((60, 100, 0.5), 0.5788911232),
    ((70, 100, 0.5), 6.750621413),
    ((0, 0, 0.05), 0.0),
]


@pytest.mark.parametrize(("given", "value"), REFERENCES)
def test_the_reference_values(given, value):
    assert log_e_value(*given) == pytest.approx(value, abs=5e-11)


@pytest.mark.parametrize("total", [0, 2.5, 7])
def test_it_is_the_mixture_of_likelihood_ratios(total):
    n, rate, a, b = 9, 0.2, 2.0, 3.0

    def ratio(x):
        return math.exp(total * math.log(x / rate) + (n - total) * math.log((1 - x) / (1 - rate)))

    def prior(x):
        return x ** (a - 1) * (1 - x) ** (b - 1)

    mixed = quad(lambda x: ratio(x) * prior(x), rate, 1)[0] / quad(prior, rate, 1)[0]
    assert log_e_value(total, n, rate, a=a, b=b) == pytest.approx(math.log(mixed), abs=1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.5])
def test_its_mean_is_1_at_the_limit_and_less_below(rate):
    n = 60
    values = np.exp([log_e_value(k, n, rate) for k in range(n + 1)])
    assert binom.pmf(range(n + 1), n, rate) @ values == pytest.approx(1.0, abs=1e-9)
    assert binom.pmf(range(n + 1), n, rate / 2) @ values < 0.9
    assert binom.pmf(range(n + 1), n, min(2 * rate, 0.9)) @ values > 1.1  # the control


def chance_ever(rejects, rate, n):
    """Return the exact probability that a test rejects after any of the first n values."""
    alive, rejected = np.ones(1), 0.0
    for k in range(1, n + 1):
        alive = np.append(alive * (1 - rate), 0.0) + np.append(0.0, alive * rate)
        out = np.array([rejects(total, k) for total in range(k + 1)])
        rejected += alive[out].sum()
        alive[out] = 0.0
    return rejected


def test_its_error_rate_is_at_most_alpha_although_it_is_looked_at_after_every_value():
    assert 0.01 < chance_ever(lambda k, m: log_e_value(k, m, RATE) >= -math.log(ALPHA), RATE, LOOKS) <= ALPHA


def test_a_test_for_one_look_rejects_too_often():  # the negative control
    limits = [binom.isf(ALPHA, m, RATE) for m in range(LOOKS + 1)]
    assert chance_ever(lambda k, m: k > limits[m], RATE, LOOKS) > 3 * ALPHA


def test_values_between_0_and_1_keep_alpha():
    rng = np.random.default_rng(0)
    totals = np.cumsum(rng.beta(0.2, 0.2 * 19, size=(400, 300)), axis=1)  # of the mean 0.05
    ever = [any(log_e_value(row[k], k + 1, 0.05) >= math.log(20) for k in range(0, 300, 5)) for row in totals]
    assert np.mean(ever) <= 0.05


def test_far_below_the_limit_there_is_no_evidence_and_no_error():
    assert log_e_value(0, 100_000, 0.05) < -5
    assert log_e_value(90_000, 100_000, 0.05) > 1e4


def test_impossible_sums_are_refused():
    assert_invalid(lambda: log_e_value(3, 2, 0.05), "total", "a sum of 2 values")
    assert_invalid(lambda: log_e_value(math.nan, 2, 0.05), "total", "a sum of 2 values")
    assert_invalid(lambda: log_e_value(1, 2, 1.0), "rate", "a probability")
