"""Unusual parameters are rejected by name, and extreme ones that are allowed give numbers."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from helpers.cases import cases
from helpers.invalid import raises
from robandit import estimators as est
from robandit.errors import InvalidInput, NoThresholdError

X = np.random.default_rng(0).normal(size=2000)
NUMBERS = {
    "delta": [
        lambda d: est.trimming_threshold(X, d),
        lambda d: est.adaptive_trimmed_mean(X, delta=d),
        lambda d: est.truncated_mean(X, eps=1, u=1, delta=d),
        lambda d: est.median_of_means(X, delta=d),
        lambda d: est.median_of_means_blocks(9, d),
        lambda d: est.median_of_means_width(9, eps=1, v=1, delta=d),
        lambda d: est.catoni_mean(X, v=1, delta=d),
        lambda d: est.infinite_variance_catoni(X, eps=1, v=1, delta=d),
        lambda d: est.lepskii_catoni(X, eps=1, delta=d),
        lambda d: est.p_robust_mean(X, p=2, c=1, u=1, delta=d),
        lambda d: est.sample_mean(X, v=1, delta=d),
    ],
    "eps": [
        lambda e: est.truncated_mean(X, eps=e, u=1, delta=0.1),
        lambda e: est.median_of_means(X, eps=e, v=1, delta=0.1),
        lambda e: est.median_of_means_width(9, eps=e, v=1, delta=0.1),
        lambda e: est.infinite_variance_catoni(X, eps=e, v=1, delta=0.1),
        lambda e: est.lepskii_catoni(X, eps=e, delta=0.1),
        lambda e: est.adaptive_trimmed_mean(X, delta=0.1, eps=e, u=1),
    ],
    "p": [est.b_p, lambda p: est.p_robust_mean(X, p=p, c=1)],
    "c": [lambda c: est.trimming_threshold(X, 0.1, c=c), lambda c: est.p_robust_mean(X, p=2, c=c)],
    "u": [
        lambda u: est.truncated_mean(X, eps=1, u=u, delta=0.1),
        lambda u: est.adaptive_trimmed_mean(X, delta=0.1, eps=1, u=u),
        lambda u: est.p_robust_mean(X, p=2, c=1, u=u, delta=0.1),
    ],
    "v": [
        lambda v: est.catoni_mean(X, v=v, delta=0.1),
        lambda v: est.sample_mean(X, v=v, delta=0.1),
        lambda v: est.median_of_means(X, eps=1, v=v, delta=0.1),
        lambda v: est.infinite_variance_catoni(X, eps=1, v=v, delta=0.1),
    ],
    "alpha": [lambda a: est.catoni_root(X, a)],
    "tau0": [lambda t: est.infinite_variance_catoni(X, eps=1, v=1, delta=0.1, tau0=t)],
    "range_factor": [lambda f: est.lepskii_catoni(X, eps=1, delta=0.1, range_factor=f)],
    "ratio": [lambda f: est.lepskii_catoni(X, eps=1, delta=0.1, ratio=f)],
    "n": [lambda n: est.median_of_means_blocks(n, 0.1), lambda n: est.median_of_means_width(n, eps=1, v=1, delta=0.1)],
    "threshold": [lambda t: est.trimmed_mean(X, threshold=t), lambda t: est.trimmed_variance(X, threshold=t)],
}
UNUSUAL = [10**400, -(10**400), 10**5000, True, np.True_, np.array([0.5, 0.7]), np.array(["a"]), "1", [0.5, 0.6], 1j]


@cases("name", NUMBERS)
@cases("number", range(len(UNUSUAL)))
def test_unusual_numbers(name, number):
    for call in NUMBERS[name]:
        with raises(InvalidInput, parameter=name) as caught:
            call(UNUSUAL[number])
        assert len(str(caught.value)) < 250


POSITIVE = "a finite number > 0", [0, -1, math.inf, math.nan]
OUTSIDE = {
    "delta": ("a probability strictly between 0 and 1", [0, 1, -0.1, 2, math.nan]),
    "eps": ("a number with 0 < eps <= 1", [0, -0.5, 1.01, math.nan]),
    "p": ("a finite number > 1 and <= 2", [1, 0.5, 2.1, math.nan]),
} | dict.fromkeys(("c", "u", "v", "alpha", "tau0"), POSITIVE)


@cases("name", OUTSIDE)
def test_numbers_outside_of_the_rule(name):
    rule, numbers = OUTSIDE[name]
    for call in NUMBERS[name]:
        for number in numbers:
            with raises(InvalidInput, parameter=name, rule=rule) as caught:
                call(number)
            assert repr(number) in str(caught.value)


@pytest.mark.parametrize("n", [0, -3, 2.5, 8.0, math.nan, None, 2**63])
def test_sizes(n):
    for call in NUMBERS["n"]:
        with raises(InvalidInput, parameter="n", rule="an integer from 1 to 2^63 - 1"):
            call(n)


def test_choices_that_are_arrays():
    for bonus in (np.array(["paper", "tight"]), ["paper"], 1, None):
        with raises(InvalidInput, parameter="bonus", rule="one of 'paper', 'tight'"):
            est.catoni_mean(X, v=1, delta=0.1, bonus=bonus)


def test_an_eps_for_which_1_plus_eps_is_1():
    for call in NUMBERS["eps"]:
        for eps in (1e-320, 2.0**-53):
            with raises(InvalidInput, parameter="eps", rule="at least 1.11022e-16") as caught:
                call(eps)
            assert (caught.value.parameter, caught.value.value) == ("eps", eps)


def test_the_smallest_deltas():
    tiny = 1e-320
    level = math.log(2) - math.log(tiny)
    assert est.median_of_means_blocks(10**6, tiny) == math.floor(1 + 8 * level)
    assert est.median_of_means_blocks(100, tiny) == 50
    assert est.catoni_mean(np.tile(X, 2), v=1, delta=tiny).n == 4000
    assert math.isfinite(est.truncated_mean(X, eps=1, u=1, delta=tiny).upper)
    assert math.isfinite(est.p_robust_mean(X, p=2, c=1, u=1, delta=tiny).upper)
    assert math.isfinite(est.infinite_variance_catoni(np.tile(X, 2), eps=1, v=1, delta=tiny).upper)
    assert math.isfinite(est.lepskii_catoni(np.tile(X, 2), eps=1, delta=tiny).upper)
    assert est.trimming_threshold(np.tile(X, 3), tiny) > 0


def test_a_tau0_for_which_no_sample_is_large_enough():
    with pytest.raises(InvalidInput, match=r"needs more than 1\.7e\+308 \(tau0 = 1/eps needs"):
        est.infinite_variance_catoni(X, eps=0.1, v=1, delta=0.1, tau0=1e-40)
    with pytest.raises(InvalidInput, match="needs more than"):
        est.infinite_variance_catoni(X, eps=1e-15, v=1, delta=0.1, tau0=1e-3)


def test_a_scale_far_too_small_for_the_moment():
    assert est.p_robust_mean(X, p=2, c=1e-10, u=1e300, delta=0.1).upper == math.inf


def test_the_grid_of_moments_is_bounded():
    with pytest.raises(InvalidInput, match=r"ratio = 1\.000000001 and .*pass a ratio of at least ") as caught:
        est.lepskii_catoni(X, eps=1, delta=0.1, ratio=1 + 1e-9)
    enough = float(str(caught.value).rsplit(" ", 1)[1])
    assert est.lepskii_catoni(X[:100], eps=1, delta=0.1, ratio=enough).n == 100


def test_the_grid_of_moments_is_made_of_doubles():
    wide = est.lepskii_catoni(X, eps=1, delta=0.1, range_factor=1e300)
    assert wide.value == pytest.approx(0.0, abs=0.2)
    with pytest.raises(InvalidInput, match="outside the range of doubles: divide the sample"):
        est.lepskii_catoni(X * 1e307, eps=1, delta=0.1)
    with pytest.raises(InvalidInput, match="outside the range of doubles"):
        est.lepskii_catoni(X, eps=1, delta=0.1, range_factor=1e308)


def test_too_few_values_for_lemma_2_give_a_value_without_bounds():
    e = est.median_of_means([1.0, 2.0, 6.0], delta=0.1, eps=1, v=1)
    assert (e.delta, e.lower, e.upper) == (None, -math.inf, math.inf)
    assert repr(e) == (
        "<Estimate 3: nothing: a value without bounds (Lemma 2 needs n >= 48 at this delta, and there are 3 values)>"
    )


@cases("c", [3.0, (1 + math.sqrt(2)) ** 2])
@cases("nonzero", [1, 5, 13, 40, 1500])
def test_the_delta_that_a_message_names_works(nonzero, c):
    x = np.zeros(4000)
    x[:nonzero] = 1.0
    least = math.exp(-nonzero / c)
    with pytest.raises(NoThresholdError, match="a delta of at least ") as caught:
        est.trimming_threshold(x, max(least / 2, 1e-300), c=c)
    named = float(re.findall("a delta of at least (.*)$", str(caught.value))[0])
    assert least < named < least * 1.02
    assert est.trimming_threshold(x, named, c=c) > 0.0


def test_the_delta_named_is_the_callers():
    x = -np.ones(40)  # 20 in X'
    with pytest.raises(NoThresholdError, match="or a delta of at least ") as caught:
        est.adaptive_trimmed_mean(x, delta=0.05)
    named = float(str(caught.value).rsplit(" ", 1)[1])
    assert est.adaptive_trimmed_mean(x, delta=named).threshold > 0.0
    with pytest.raises(NoThresholdError, match=r"pass at least 14 non-zero values$"):
        est.trimming_threshold(np.zeros(50), 0.1)  # no delta will do


def test_batches_name_the_sample():
    batch = np.random.default_rng(0).normal(size=(3, 50))
    with pytest.raises(NoThresholdError, match="sample 0 of the batch has 50 non-zero values of 50"):
        est.trimming_threshold(batch, 1e-9)
    batch[2, 7] = math.nan
    for call in (
        lambda x: est.catoni_root(x, 1.0),
        lambda x: est.sample_mean(x),
        lambda x: est.trimming_threshold(x, 0.1),
        lambda x: est.median_of_means(x, delta=0.1),
    ):
        with pytest.raises(InvalidInput, match=r"sample 2 of the batch holds nan \(position 7\)"):
            call(batch)


def test_shares_of_batches_are_arrays():
    batch = np.random.default_rng(0).normal(size=(2, 3, 200))
    for e in (
        est.sample_mean(batch),
        est.catoni_mean(batch, v=1, delta=0.1),
        est.median_of_means(batch, delta=0.1),
    ):
        np.testing.assert_array_equal(e.share_trimmed, np.zeros((2, 3)))
    assert est.sample_mean(batch[0, 0]).share_trimmed == 0.0


def test_a_scale_that_overflows_is_named():
    with raises(InvalidInput, parameter="c", rule="small enough that c n^(1/p) does not overflow"):
        est.p_robust_mean(X, p=1.5, c=1e308)  # was NaN in [NaN, NaN]
    with pytest.raises(NoThresholdError, match="a smaller c"):
        est.trimming_threshold(X, 0.05, c=1e308)


def test_switches_and_axes_are_not_numbers():
    with raises(InvalidInput, parameter="common_threshold", rule="one of True, False"):
        est.truncated_mean(X, eps=1, u=1, delta=0.1, common_threshold="no")
    with raises(InvalidInput, parameter="axis", rule="an integer from -1 to 0"):
        est.sample_mean(X, axis=False)
