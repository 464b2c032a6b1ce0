"""`check_estimator` passes every public estimator, and fails estimators that are wrong in one way each."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from robandit import estimators as est
from robandit.checks import check_estimator
from robandit.errors import InvalidInput
from robandit.laws import Pareto

D = {"delta": 0.05}
PUBLIC = {  # parameters of the standard Gaussian law, and what is claimed
    "Catoni": (D | {"v": 1.0}, {}),
    "MedianOfMeans": (D | {"eps": 1.0, "v": 1.0}, {}),
    "TrimmedMean": (D, {}),
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
    "winsorized_mean": ({}, {"shift": True, "scales": {}}),
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
    "costs, streaming": (est.TrimmedMean, D, {"law": -Pareto(tail=1.5)}),
    "a partial": (partial(est.TrimmedMean, delta_min=1e-3), D, {}),
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


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_fails_by_name(name):
    estimator, claims, message = WRONG[name]
    with pytest.raises(AssertionError, match=message):
        check_estimator(estimator, **claims)


class Stored:
    """A correct accumulator that stores all values."""

    def __init__(self):
        self.values = []

    @property
    def n(self):
        return len(self.values)

    def update(self, value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise InvalidInput(f"{value} is not a finite number")
        self.values.append(float(value))

    def update_many(self, values):
        if not np.isfinite(values).all():
            raise InvalidInput(f"{values} are not finite")
        self.values.extend(np.asarray(values).tolist())

    def estimate(self):
        return mean(self.values)

    def merge(self, other):
        if other is self or not isinstance(other, Stored):
            raise InvalidInput("merge another of the same kind")
        self.values.extend(other.values)

    def to_dict(self):
        return {"values": list(self.values)}

    @classmethod
    def from_dict(cls, state):
        if "values" not in state:
            raise InvalidInput("no values")
        made = cls()
        made.values = list(state["values"])
        return made


def test_a_correct_accumulator_passes():
    check_estimator(Stored)


class Skips(Stored):
    def update(self, value):
        super().update(value)
        self.values = self.values[:100]


class Rounds(Stored):
    def update(self, value):
        super().update(value)
        self.values[-1] = round(self.values[-1], 3)


class Reordered(Stored):
    def update_many(self, values):
        super().update_many(np.sort(values))

    def update(self, value):
        super().update(value)
        if self.n == 400:
            self.values.sort()


class Forgets(Stored):
    def estimate(self):
        out = super().estimate()
        self.values[0] = 0.0
        return out


class LosesDigits(Stored):
    def to_dict(self):
        return {"values": [float(np.float32(v)) for v in self.values]}


class LosesOrder(Stored):
    @classmethod
    def from_dict(cls, state):
        made = super().from_dict(state)
        made.values.sort()
        return made


class TakesAnyState(Stored):
    @classmethod
    def from_dict(cls, state):
        return super().from_dict({"values": [1.0]} | state)


class DropsShards(Stored):
    def merge(self, other):
        Stored().merge(other)


class EmptiesTheOther(Stored):
    def merge(self, other):
        super().merge(other)
        if self.n == 800:
            other.values = other.values[:1]


class MergesItself(Stored):
    def merge(self, other):
        self.values = self.values + other.values


class TakesNaN(Stored):
    def update(self, value):
        self.values.append(float(value or 0.0))


class KeepsTheFirst(Stored):
    def update_many(self, values):
        for value in values:
            self.update(float(value))


class Narrow(Stored):
    def estimate(self):
        return est.sample_mean(self.values, v=0.01, delta=0.05)


class NarrowAfterMerge(Stored):
    scale = 1.0

    def merge(self, other):
        super().merge(other)
        self.scale = 0.01 if self.n == 400 and other.n == 200 else 1.0

    def estimate(self):
        return est.sample_mean(self.values, v=self.scale, delta=0.05)


WRONG_STREAMS = [
    (Skips, "n is 400, 100, 400 for 400 values"),
    (Rounds, "values taken one by one give another state"),
    (Reordered, "values taken in parts give another state"),
    (Forgets, "the second estimate differs"),
    (LosesDigits, "a saved state gives another estimate"),
    (LosesOrder, "a saved state (gives|continues)"),
    (TakesAnyState, "a state without values is not rejected"),
    (DropsShards, "merging 400 values into an empty one gives n = 0"),
    (EmptiesTheOther, "merging changed the other"),
    (MergesItself, "a merge with itself is not rejected"),
    (TakesNaN, "the value nan is not rejected"),
    (KeepsTheFirst, "rejected values changed the state"),
    (Narrow, "intervals missed the mean"),
    (NarrowAfterMerge, "intervals missed the mean"),
]


@pytest.mark.parametrize(("kind", "message"), WRONG_STREAMS)
def test_a_wrong_accumulator_fails_by_name(kind, message):
    with pytest.raises(AssertionError, match=f"{kind.__name__}: .*({message})"):
        check_estimator(kind)


@pytest.mark.parametrize("options", [{"size": 1}, {"size": 2.5}, {"replications": 0}, {"seed": -1}])
def test_wrong_options_are_rejected(options):
    with pytest.raises(InvalidInput) as caught:
        check_estimator(mean, **options)
    assert caught.value.parameter in options
