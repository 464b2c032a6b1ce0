"""Every rule has an input that breaks it; the message names the value, the rule and the way out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.cases import cases
from helpers.invalid import raises
from robandit import estimators as est
from robandit.errors import InvalidInput, NoThresholdError

X = np.random.default_rng(0).normal(size=200)
EVERY = {
    "trimming_threshold": lambda x, **k: est.trimming_threshold(x, 0.1, **k),
    "trimmed_mean": lambda x, **k: est.trimmed_mean(x, threshold=1.0, **k),
    "trimmed_variance": lambda x, **k: est.trimmed_variance(x, threshold=1.0, **k),
    "adaptive_trimmed_mean": lambda x, **k: est.adaptive_trimmed_mean(x, delta=0.1, **k),
    "truncated_mean": lambda x, **k: est.truncated_mean(x, eps=0.5, u=1.0, delta=0.1, **k),
    "median_of_means": lambda x, **k: est.median_of_means(x, delta=0.1, **k),
    "catoni_mean": lambda x, **k: est.catoni_mean(x, v=1.0, delta=0.1, **k),
    "catoni_root": lambda x, **k: est.catoni_root(x, 1.0, **k),
    "infinite_variance_catoni": lambda x, **k: est.infinite_variance_catoni(x, eps=0.9, v=1.0, delta=0.1, **k),
    "lepskii_catoni": lambda x, **k: est.lepskii_catoni(x, eps=0.9, delta=0.1, **k),
    "p_robust_mean": lambda x, **k: est.p_robust_mean(x, p=1.5, c=1.0, **k),
    "sample_mean": lambda x, **k: est.sample_mean(x, **k),
}


def test_every_estimator_is_in_the_list():
    others = {"ConfidenceInterval", "Estimate", "b_p", "median_of_means_blocks", "median_of_means_width"}
    assert set(est.__all__) - others == set(EVERY)


@cases("name", EVERY)
@cases("bad", [math.nan, math.inf, -math.inf])
@cases("position", [0, 7, 130, 199])
def test_non_finite(name, bad, position):
    x = X.copy()
    x[position] = bad
    with pytest.raises(InvalidInput, match=rf"the sample holds {bad} \(position {position}\): leave it out"):
        EVERY[name](x)


@cases("name", EVERY)
def test_several_infinities_do_not_hide_each_other(name):
    x = X.copy()
    x[[3, 90]] = math.inf, -math.inf
    with pytest.raises(InvalidInput, match=r"holds inf \(position 3\)"):
        EVERY[name](x)
    with raises(InvalidInput, parameter="x", rule="an array of finite numbers"):
        EVERY[name](np.full(400, math.inf))


@cases("name", EVERY)
@cases(
    ("x", "message"),
    [
        (3.0, "the single number 3.0: pass a list or array"),
        ([], "has 0 values: at least"),
        (np.zeros((3, 0)), "has 0 values"),
        (["a", "b"], r"x = .* must be an array of numbers \(its type is <U1\)"),
        ([1.0, object()], r"x = .* must be an array of numbers \(it contains <object"),
        ([1.0, None] * 20, r"x = .* must be an array of numbers \(it contains None\)"),
        ([[1.0, 2.0], [3.0]], r"x = .* must be an array of numbers \(its rows differ"),
        ([1 + 2j], "x = .* must be an array of numbers .*complex"),
        (np.ma.masked_greater(X, 1.0), "masked values: leave them out"),
    ],
)
def test_samples(name, x, message):
    with pytest.raises(InvalidInput, match=message):
        EVERY[name](x)


@cases("name", EVERY)
@cases("axis", [1, -2, 0.5, None])
def test_axis(name, axis):
    with raises(InvalidInput, parameter="axis", rule="an integer from -1 to 0"):
        EVERY[name](X, axis=axis)


def test_choices():
    with raises(InvalidInput, parameter="bonus", rule="one of 'paper', 'tight', 'likelihood'"):
        est.adaptive_trimmed_mean(X, delta=0.1, bonus="wide")
    with raises(InvalidInput, parameter="center", rule="one of None, 'median'"):
        est.adaptive_trimmed_mean(X, delta=0.1, center="mean")
    with raises(InvalidInput, parameter="bonus", rule="one of 'paper', 'tight'"):
        est.catoni_mean(X, v=1, delta=0.1, bonus="likelihood")
    for seed in (-1, 1.5, "1", True):
        with raises(InvalidInput, parameter="seed", rule="an integer >= 0, or None"):
            est.adaptive_trimmed_mean(X, delta=0.1, seed=seed)


@pytest.mark.parametrize("threshold", [-1.0, math.nan, [1.0, -2.0]])
def test_thresholds(threshold):
    x = np.zeros((2, 5))
    for method in (est.trimmed_mean, est.trimmed_variance):
        with raises(InvalidInput, parameter="threshold", rule="a number >= 0, or infinity"):
            method(x, threshold=threshold)
        with raises(
            InvalidInput, parameter="threshold", rule="one number, or one for each sample of a batch of shape (2,)"
        ):
            method(x, threshold=[1.0, 2.0, 3.0])
        with raises(InvalidInput, parameter="threshold", rule="an array of numbers (its type is <U4)"):
            method(x, threshold="wide")


def test_pairs():
    with raises(InvalidInput, parameter="u", rule="given together with the other"):
        est.adaptive_trimmed_mean(X, delta=0.1, eps=1)
    with raises(InvalidInput, parameter="eps", rule="given together with the other"):
        est.median_of_means(X, delta=0.1, v=1)
    with pytest.raises(InvalidInput, match=r"delta = 0.1 without v: .* leave out delta for a value alone"):
        est.sample_mean(X, delta=0.1)
    with raises(InvalidInput, parameter="u", rule="given together with delta"):
        est.p_robust_mean(X, p=2, c=1, delta=0.1)
    for extra in ({"center": "median"}, {"bonus": "tight"}):
        with pytest.raises(
            InvalidInput, match=r"must be .* with eps and u; leave out one: .* belong to the two-sided bound"
        ):
            est.adaptive_trimmed_mean(X, delta=0.1, eps=1, u=1, **extra)


def test_no_threshold():
    """One more non-zero value than the message's rule allows is enough, and the number it names is right."""
    a = (1 + math.sqrt(2)) ** 2 * math.log(10)  # 13.42
    x = np.zeros(50)
    x[:13] = 1.0
    with pytest.raises(
        NoThresholdError,
        match=r"has 13 non-zero values of 50.*= 13.4204: pass at least 14 non-zero values, or a delta of at least 0.108",
    ):
        est.trimming_threshold(x, 0.1)
    x[13] = -1.0
    assert est.trimming_threshold(x, 0.1) == pytest.approx(math.sqrt(14 / a))
    with pytest.raises(NoThresholdError, match="sample has 5 non-zero values of 5,"):
        est.trimming_threshold(np.ones(5), 0.1)
    with pytest.raises(NoThresholdError, match="sample 1 of the batch has 0 non-zero values"):
        est.trimming_threshold([np.ones(50), np.zeros(50)], 0.1)
    with pytest.raises(NoThresholdError, match="0 non-zero values"):
        est.adaptive_trimmed_mean(np.full(200, 3.0), delta=0.1, center="median")
    assert issubclass(NoThresholdError, InvalidInput)
    assert issubclass(NoThresholdError, ValueError)


def test_no_threshold_if_the_level_equals_the_number_of_values():
    """At m = a exactly F(M) = a holds only in the limit M -> 0 of ties: there is no root."""
    x = np.ones(30)
    assert est.trimming_threshold(x, math.exp(-1.0), c=29.0) == pytest.approx(math.sqrt(30 / 29))
    with pytest.raises(NoThresholdError, match="pass at least 31"):
        est.trimming_threshold(x, math.exp(-1.0), c=30.0)


def test_too_few_values():
    with pytest.raises(InvalidInput, match="has 1 values: at least 2 are needed"):
        est.trimmed_variance([1.0], threshold=2.0)
    with pytest.raises(InvalidInput, match="has 2 values: at least 3 are needed"):
        est.adaptive_trimmed_mean([1.0, 2.0], delta=0.1)
    with pytest.raises(
        InvalidInput, match=r"there are 14 values, and this bound needs 15 at delta = 0.05: .*bonus='tight' \(8\)"
    ):
        est.catoni_mean(X[:14], v=1, delta=0.05)
    assert est.catoni_mean(X[:15], v=1, delta=0.05).n == 15
    assert est.catoni_mean(X[:8], v=1, delta=0.05, bonus="tight").n == 8
    with pytest.raises(InvalidInput, match="there are 7 values, and this bound needs 8"):
        est.catoni_mean(X[:7], v=1, delta=0.05, bonus="tight")
    with pytest.raises(InvalidInput, match=r"has 14 values, and the bound of order 2 needs 15: pass more"):
        est.infinite_variance_catoni(X[:14], eps=1, v=1, delta=0.05)
    assert est.infinite_variance_catoni(X[:15], eps=1, v=1, delta=0.05).n == 15
    with pytest.raises(InvalidInput, match=r"needs .* \(tau0 = 1/eps needs 15\)"):
        est.infinite_variance_catoni(X[:20], eps=1, v=1, delta=0.05, tau0=0.1)


def test_too_large():
    with pytest.raises(InvalidInput, match="the threshold is larger than the largest double"):
        est.trimming_threshold(np.full(1000, 1.7e308), 0.5)
    with pytest.raises(InvalidInput, match="the variance is larger than the largest double"):
        est.trimmed_variance([1e200, -1e200], threshold=math.inf)


def test_estimate_prints_itself():
    assert repr(est.sample_mean([1.0, 3.0], v=2.0, delta=0.25)) == (
        "<Estimate 2 in [0, 4] with probability 0.75: variance <= 2 (Chebyshev)>"
    )
    assert repr(est.sample_mean([1.0])).startswith("<Estimate 1: ")
    assert repr(est.sample_mean(np.ones((3, 4)))).startswith("<Estimate of (3,) samples of 4: ")
