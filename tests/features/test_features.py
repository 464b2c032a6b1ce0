"""Declared features become columns, in every process alike, and what is not declared is refused by name."""

import math
import subprocess
import sys

import numpy as np
import pytest

import robandit as rb
from robandit.errors import InvalidInput
from robandit.features import FIRST, Encoder


def refusal(call, *args, **named):
    with pytest.raises(InvalidInput) as caught:
        call(*args, **named)
    return caught.value


def test_each_feature_has_its_columns_after_the_intercept():
    encoder = Encoder(
        {
            "tokens": rb.Number(center=2.0, scale=0.5, log=True),
            "age": rb.Number(center=40.0, scale=10.0, missing=True),
            "region": rb.Category(["eu", "us"]),
            "paid": rb.Category([True, False], missing=True),
        }
    )
    assert encoder.columns == (
        *("intercept", "tokens", "age", "age is missing", "region=eu", "region=us"),
        *("paid=True", "paid=False", "paid is missing"),
    )
    x, raw = encoder.encode({"tokens": np.float32(math.e), "age": 55, "region": "us", "paid": True})
    assert x.tolist() == pytest.approx([1.0, -2.0, 1.5, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0], abs=1e-6)
    assert raw == ()
    x, _ = encoder.encode({"tokens": math.e**3, "age": math.nan, "region": "eu"})
    assert x.tolist() == pytest.approx([1.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0])


def test_a_number_is_scaled_by_its_first_values_and_never_again():
    encoder = Encoder({"size": rb.Number(log=True, missing=True), "kind": rb.Category(["a"])})
    sizes = np.exp(np.random.default_rng(0).normal(3.0, 2.0, FIRST))
    for i, size in enumerate(sizes):
        context = {"kind": "a"} if i % 7 == 0 else {"size": size, "kind": "a"}
        x, raw = encoder.encode(context)
        assert x.tolist() == [1.0, 0.0, float(i % 7 == 0), 1.0]  # not learned from yet
        encoder.collect(raw)
        assert encoder.due() is None
    while encoder.due() is None:
        encoder.collect(encoder.encode({"size": 1.0, "kind": "a"})[1])
    name, scale = encoder.due()
    logs = [math.log(size) for i, size in enumerate(sizes) if i % 7] + [0.0] * sum(i % 7 == 0 for i in range(FIRST))
    low, middle, high = np.quantile(logs, [0.25, 0.5, 0.75])
    assert scale == pytest.approx((middle, (high - low) / 1.349))
    encoder.set_scale(name, scale)
    assert encoder.due() is None
    x, raw = encoder.encode({"size": 20.0, "kind": "a"})
    assert raw == ()
    assert x[1] == pytest.approx((math.log(20.0) - middle) / ((high - low) / 1.349))
    assert refusal(encoder.set_scale, "size", (0.0, 1.0)).parameter == "feature"


@pytest.mark.parametrize("values", [[3.0] * FIRST, [3.0] * (FIRST - 1) + [4.0]])
def test_a_number_that_hardly_varies_gets_a_scale_above_0(values):
    encoder = Encoder({"n": rb.Number()})
    for value in values:
        encoder.collect(encoder.encode({"n": value})[1])
    assert encoder.due() == ("n", pytest.approx((3.0, np.std(values) or 1.0)))


def test_hashes_are_the_same_in_every_process():
    category = rb.Category(buckets=32)
    words = ["ann", "bob", "", "é", "\ud800", 7, True, "7"]
    here = [category.bucket(word) for word in words]
    assert here[:2] == [16, 28]  # in every version, too: saved models depend on it
    code = f"import robandit as rb; print([rb.Category(buckets=32).bucket(word) for word in {words!r}])"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == str(here)
    counts = np.bincount([category.bucket(f"customer {i}") for i in range(32_000)], minlength=32)
    assert abs(counts - 1000).max() < 6 * math.sqrt(1000)  # six standard deviations


@pytest.mark.parametrize(
    ("context", "parameter", "word"),
    [
        ({"regoin": "eu"}, "context", "did you mean region?"),
        ({"region": "ue"}, "context['region']", "one of eu, us"),
        ({"region": 3.5}, "context['region']", "a string"),
        ({"region": "eu", "tokens": 0}, "context['tokens']", "above 0"),
        ({"region": "eu", "tokens": True}, "context['tokens']", "a number"),
        ({"region": "eu", "tokens": "many"}, "context['tokens']", "finite"),
        ({"region": "eu", "tokens": math.inf}, "context['tokens']", "finite"),
        ({"region": "eu", "tokens": 1e300, "x": 1e300}, "context['x']", "within"),
        ({"region": "eu"}, "context", "'tokens'"),
        ({"region": "eu", "tokens": math.nan}, "context", "missing=True"),
        (None, "context", "a mapping"),
    ],
)
def test_a_wrong_context_is_refused_by_name(context, parameter, word):
    encoder = Encoder(
        {
            "region": rb.Category(["eu", "us"]),
            "tokens": rb.Number(log=True),
            "x": rb.Number(center=0.0, scale=1.0, missing=True),
        }
    )
    error = refusal(encoder.encode, context)
    assert error.parameter == parameter
    assert word in str(error)


@pytest.mark.parametrize(
    "features",
    [
        {},
        [],
        {"a": 3},
        {"a": rb.Number},
        {3: rb.Number()},
        {"a": {"type": "number", "lag": True}},
        {"a": {"type": "text"}},
        {"a": rb.Category(buckets=64), "b": rb.Number()},
    ],
)
def test_wrong_declarations_are_refused(features):
    assert "features" in str(refusal(Encoder, features))


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: rb.Number(center=1.0), "scale"),
        (lambda: rb.Number(center=1.0, scale=0.0), "scale"),
        (lambda: rb.Number(log="yes"), "log"),
        (lambda: rb.Category(), "values"),
        (lambda: rb.Category(["a"], buckets=3), "values"),
        (lambda: rb.Category([]), "values"),
        (lambda: rb.Category(["a", "a"]), "values"),
        (lambda: rb.Category([1.5]), "values[0]"),
        (lambda: rb.Category(buckets=65), "buckets"),
    ],
)
def test_wrong_features_are_refused(call, parameter):
    assert refusal(call).parameter == parameter


def test_declarations_survive_json():
    features = {"n": rb.Number(log=True), "c": rb.Category(["a", 1, True]), "h": rb.Category(buckets=5, missing=True)}
    again = Encoder({name: feature.to_dict() for name, feature in features.items()})
    assert again.features == features
