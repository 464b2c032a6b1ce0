"""What a user of SciPy expects: a default delta, ``float``, ``confidence_interval``, and no share mistaken for a threshold."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest

from helpers.amount import amount
from helpers.cases import cases
from robandit import estimators as est
from robandit.errors import AssumptionWarning, InvalidInput
from robandit.estimators import adaptive
from robandit.laws import Gaussian, Law, LogNormal, Pareto, StudentT

X = StudentT(dof=3.0).sample(400, seed=0)

BOUNDED = {
    "adaptive_trimmed_mean": {},
    "catoni_mean": {"v": 3.0},
    "infinite_variance_catoni": {"eps": 0.5, "v": 3.0},
    "lepskii_catoni": {"eps": 0.5},
    "median_of_means": {"eps": 0.5, "v": 3.0},
    "p_robust_mean": {"p": 1.5, "c": 1.0, "u": 3.0},
    "sample_mean": {"v": 3.0},
    "truncated_mean": {"eps": 0.5, "u": 3.0},
}


@cases("name", BOUNDED)
def test_delta_is_a_twentieth_by_default(name):
    estimator, known = getattr(est, name), BOUNDED[name]
    estimate, wanted, other = estimator(X, **known), estimator(X, **known, delta=0.05), estimator(X, **known, delta=0.2)
    assert estimate.delta == 0.05
    assert (estimate.value, estimate.lower, estimate.upper) == (wanted.value, wanted.lower, wanted.upper)
    assert estimate.upper > other.upper
    interval = estimate.confidence_interval
    assert (interval.low, interval.high) == (estimate.lower, estimate.upper) == tuple(interval)
    assert type(float(estimate)) is float
    assert float(estimate) == estimate.value


def test_functions_of_n_have_the_same_default():
    assert est.median_of_means_blocks(1000) == est.median_of_means_blocks(1000, 0.05)
    assert est.median_of_means_width(99, eps=1, v=2) == est.median_of_means_width(99, eps=1, v=2, delta=0.05)


@pytest.mark.parametrize("name", ["sample_mean", "median_of_means"])
def test_a_value_alone_needs_nothing_and_has_no_interval(name):
    estimate = getattr(est, name)(X)
    assert math.isfinite(float(estimate))
    assert estimate.delta is None
    with pytest.raises(InvalidInput, match=r"no confidence interval; it assumes .*(bounds|bound)"):
        _ = estimate.confidence_interval


def test_one_sided_intervals_are_infinite_on_the_other_side():
    low, high = est.adaptive_trimmed_mean(-np.abs(X)).confidence_interval
    assert low == -math.inf
    assert math.isfinite(high)


def test_a_batch():
    estimate = est.catoni_mean(X.reshape(4, 100), v=3.0)
    assert estimate.confidence_interval.low.shape == (4,)
    with pytest.raises(InvalidInput, match=r"batch of shape \(4,\): use \.value"):
        float(estimate)


def test_the_repr_is_one_line():
    for estimate in (est.catoni_mean(X, v=3.0), est.catoni_mean(X.reshape(4, 100), v=3.0), est.sample_mean(X)):
        assert "\n" not in repr(estimate)
        assert len(repr(estimate)) < 132


# --- thresholds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trimmed_mean", "trimmed_variance"])
def test_a_share_cannot_be_mistaken_for_a_threshold(name):
    function = getattr(est, name)
    with pytest.raises(TypeError, match="give parameters by name; it has x, threshold and axis"):
        function(X, 0.05)
    assert inspect.signature(function).parameters["threshold"].kind is inspect.Parameter.KEYWORD_ONLY
    with pytest.raises(TypeError, match="threshold"):
        function(X)
    assert function(X, threshold=math.inf) == function(x=X, threshold=1e9)


# --- the assumption ---------------------------------------------------------------------------------------------------


def warned(x, **options) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est.adaptive_trimmed_mean(x, **options)
    assert all(each.category is AssumptionWarning for each in caught)
    return bool(caught)


@pytest.mark.parametrize(
    ("law", "center"),
    [
        (-Pareto(tail=1.5), None),
        (-LogNormal(), None),
        (StudentT(dof=1.5), None),
        (Gaussian(), None),
        (StudentT(dof=1.5, loc=5.0), "median"),
        (Gaussian(mean=-3.0), "median"),
        (-Pareto(tail=1.5), "median"),
    ],
    ids=repr,
)
def test_false_warnings_are_rarer_than_one_in_a_hundred(law: Law, center):
    """At 1 %, more than 8 of 100 calls, or 28 of 1,000, warn with a probability below 1e-6."""
    calls = amount(100, 1000)
    samples = law.sample(calls * 300, seed=3).reshape(calls, 300)
    assert sum(warned(x, center=center) for x in samples) <= {100: 8, 1000: 28}[calls]


@pytest.mark.parametrize(
    ("law", "center"),
    [
        (Pareto(tail=1.5), None),
        (Pareto(tail=1.5), "median"),
        (Gaussian(mean=0.5), None),
        (StudentT(1.5, loc=5.0), None),
    ],
    ids=repr,
)
def test_samples_that_contradict_the_assumption_warn(law: Law, center):
    assert all(warned(x, center=center) for x in law.sample(20 * 1000, seed=3).reshape(20, 1000))


def test_the_warning_names_the_evidence_and_the_way_out():
    x = Pareto(tail=1.5).sample(500, seed=0)
    with pytest.warns(
        AssumptionWarning, match=r"about 0, so the upper bound may be too low \(.*z = .* against .*\): negate"
    ):
        est.adaptive_trimmed_mean(x)
    with pytest.warns(AssumptionWarning, match=r"^sample 1 of the batch contradicts"):
        est.adaptive_trimmed_mean(np.stack([-x, x]))
    with pytest.warns(AssumptionWarning) as caught:
        est.adaptive_trimmed_mean(x)
    assert caught[0].filename == __file__
    assert not warned(x, warn=False)
    assert not warned(x, eps=0.4, u=30.0)


def test_a_batch_shares_the_level_and_a_long_sample_is_thinned(monkeypatch):
    seen = []
    judge = adaptive.judge

    def spy(values, about, alpha):
        seen.append((len(values), alpha))
        return judge(values, about, alpha)

    monkeypatch.setattr(adaptive, "judge", spy)
    est.adaptive_trimmed_mean(X.reshape(4, 100))
    assert seen == [(100, 0.0025)] * 4
    seen.clear()
    est.adaptive_trimmed_mean(StudentT(dof=3.0).sample(250_000, seed=0))
    assert seen == [(83_334, 0.01)]
    seen.clear()
    est.adaptive_trimmed_mean(-np.abs(X))  # no value above 0, so there is nothing to test
    assert not seen
