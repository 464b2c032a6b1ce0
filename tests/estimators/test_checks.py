"""`check_estimator` passes every public estimator, and fails estimators that are wrong in one way each."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from helpers.cases import cases
from robandit import estimators as est
from robandit.checks import check_estimator
from robandit.errors import InvalidInput
from robandit.laws import Pareto

D = {"delta": 0.05}
PUBLIC = {  # parameters of the standard Gaussian law, and what is claimed
    "adaptive_trimmed_mean": (D, {"scales": {}}),
    "catoni_mean": (D | {"v": 1.0}, {"shift": True, "scales": {"v": 2}}),
    "catoni_root": ({"alpha": 0.5}, {"shift": True, "scales": {"alpha": -1}}),
    "infinite_variance_catoni": (D | {"eps": 0.9, "v": 1.0}, {"shift": True, "scales": {"v": 1.9}}),
    "lepskii_catoni": (D | {"eps": 0.9}, {"scales": {}}),
    "median_of_means": (D | {"eps": 1.0, "v": 1.0}, {"shift": True, "scales": {"v": 2}}),
    "p_robust_mean": (D | {"p": 1.5, "c": 1.0, "u": 1.0}, {"scales": {"c": 1, "u": 1.5}}),
    "sample_mean": (D | {"v": 1.0}, {"shift": True, "scales": {"v": 2}}),
    "trimmed_mean": ({"threshold": 2.0}, {"scales": {"threshold": 1}}),
    "trimmed_variance": ({"threshold": 2.0}, {}),
    "trimming_threshold": (D, {"scales": {}}),
    "truncated_mean": (D | {"eps": 1.0, "u": 1.0}, {"scales": {"u": 2}}),
}
NO_ESTIMATORS = {"ConfidenceInterval", "Estimate", "b_p", "median_of_means_blocks", "median_of_means_width"}


@pytest.mark.parametrize("name", sorted(set(est.__all__) - NO_ESTIMATORS))
def test_every_estimator_passes(name):
    parameters, claims = PUBLIC[name]
    check_estimator(getattr(est, name), parameters, **claims)


OPTIONS = {
    "tight": (est.catoni_mean, D | {"v": 1.0, "bonus": "tight"}, {"shift": True, "scales": {"v": 2}}),
    "centred": (
        est.adaptive_trimmed_mean,
        D | {"bonus": "likelihood", "center": "median"},
        {"shift": True, "scales": {}},
    ),
    "theorem 6": (est.adaptive_trimmed_mean, D | {"eps": 1.0, "u": 1.0}, {"scales": {"u": 2}}),
    "costs": (est.adaptive_trimmed_mean, D, {"law": -Pareto(tail=1.5), "scales": {}}),
    "a partial": (partial(est.catoni_mean, v=1.0), D, {"shift": True}),
    "no bounds": (est.median_of_means, D, {"shift": True, "scales": {}}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_pass(name):
    estimator, parameters, claims = OPTIONS[name]
    check_estimator(estimator, parameters, **claims)


# --- negative controls ----------------------------------------------------------------------------------------------


def mean(x, axis=-1):
    return est.sample_mean(x, v=1.0, delta=0.05, axis=axis)


def test_the_correct_mean_passes():
    check_estimator(mean, shift=True)


def an_array(x, axis=-1):
    return np.asarray(mean(x, axis).value)


def not_a_number(x, axis=-1):
    mean(x, axis)
    return math.nan


def sorts_in_place(x, axis=-1):
    out = mean(x, axis)
    if isinstance(x, np.ndarray):
        x.sort()
    return out


class Counting:
    """Each call gives a larger value."""

    __name__ = "counting"

    def __init__(self):
        self.calls = 0

    def __call__(self, x, axis=-1):
        self.calls += 1
        return mean(x, axis).value + self.calls


def lists_differ(x, axis=-1):
    return mean(x, axis).value + isinstance(x, list)


def one_number(x, axis=-1):
    return float(np.mean(mean(x, axis).value))


def pooled(x, axis=-1):
    value = mean(x, axis).value
    return value if isinstance(value, float) else value - value + value.mean()


def ignores_the_axis(x, axis=-1):
    return mean(x).value if np.ndim(x) < 2 or np.shape(x)[-1] > 3 else mean(x, 0).value


def shrinks(x, axis=-1):
    value = mean(x, axis).value
    return value / (1.0 + abs(value))


def takes_nan(x, axis=-1):
    return mean(np.nan_to_num(x), axis)


def silent_errors(x, axis=-1):
    try:
        return mean(x, axis)
    except InvalidInput:
        raise ValueError("wrong input") from None


def takes_nothing(x, axis=-1):
    return 0.0 if np.size(x) == 0 else mean(x, axis)


def changed(**fields):
    def estimator(x, axis=-1):
        e = mean(x, axis)
        numbers = {"value": e.value, "lower": e.lower, "upper": e.upper, "delta": e.delta, "assumed": "nothing"}
        return est.Estimate(**(numbers | {name: make(e) for name, make in fields.items()}), n=e.n)

    return estimator


WRONG = {
    "an array": (an_array, {}, "not a float"),
    "NaN": (not_a_number, {}, "the value of a finite sample is nan"),
    "changes the input": (sorts_in_place, {}, "the input was changed"),
    "not reproducible": (Counting(), {}, "the same sample gave another answer"),
    "lists": (lists_differ, {}, "a list and an array differ"),
    "one number for a batch": (one_number, {}, r"value of a \(2, 3\) batch has shape \(\)"),
    "samples mixed": (pooled, {}, r"sample \(0, 0\) of a batch differs"),
    "the axis": (ignores_the_axis, {}, "axis = 1 gives another answer"),
    "shift": (shrinks, {"shift": True}, "a shift moves the value"),
    "scale": (shrinks, {"scales": {}}, "a scale turns the value"),
    "NaN taken": (takes_nan, {}, "nan at position 0 is not rejected"),
    "unnamed": (silent_errors, {}, "does not name it: wrong input"),
    "empty taken": (takes_nothing, {}, "an empty sample is not rejected"),
    "bounds crossed": (changed(lower=lambda e: e.value + 1.0), {}, "not .* <= .* <="),
    "delta missing": (changed(delta=lambda e: None), {}, "without a delta"),
    "delta 2": (changed(delta=lambda e: 2.0), {}, "not a probability"),
    "no bounds": (changed(lower=lambda e: e.lower - math.inf, upper=lambda e: e.upper + math.inf), {}, "both bounds"),
    "nothing assumed": (changed(assumed=lambda e: ""), {}, "`assumed` is empty"),
    "too narrow": (changed(lower=lambda e: e.value, upper=lambda e: e.value), {}, "intervals missed the mean 0.0"),
    "a wrong n": (lambda x, axis=-1: est.Estimate(**(vars(mean(x, axis)) | {"n": 7})), {}, "n is 7 for 400"),
    "another law": (mean, {"law": Pareto(tail=1.1)}, "39. of 400 intervals missed the mean 10.99"),
}


@cases("name", WRONG)
def test_a_wrong_function_fails_by_name(name):
    estimator, claims, message = WRONG[name]
    with pytest.raises(AssertionError, match=message):
        check_estimator(estimator, **claims)


@pytest.mark.parametrize("options", [{"size": 1}, {"size": 2.5}, {"replications": 0}, {"seed": -1}])
def test_wrong_options_are_rejected(options):
    with pytest.raises(InvalidInput) as caught:
        check_estimator(mean, **options)
    assert caught.value.parameter in options
