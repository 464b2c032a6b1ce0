from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from helpers.invalid import raises
from helpers.stream_samples import KINDS, sample
from robandit.errors import InvalidInput
from robandit.estimators import MedianOfMeans, median_of_means, median_of_means_blocks, median_of_means_width

MANY = 2**62


def filled(values, **settings) -> MedianOfMeans:
    made = MedianOfMeans(**settings)
    made.update_many(values)
    return made


def room(delta_min: float) -> int:
    return 32 * median_of_means_blocks(MANY, delta_min)


def exact_mean(values) -> float:
    return float(sum(map(Fraction, values.tolist()), Fraction(0)) / len(values))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 3001])
def test_equals_the_one_shot_function_while_blocks_hold_one_value(kind, n):
    data = sample(kind, n)
    made = filled(data)
    for delta in [0.5, 0.05, 1e-4, 1e-12]:
        for more in ({}, {"eps": 0.5, "v": 2.0}):
            wanted, got = median_of_means(data, delta=delta, **more), made.estimate(delta, **more)
            slack = 1e-14 * np.abs(data).max()
            assert got.value == pytest.approx(wanted.value, rel=1e-13, abs=slack)
            assert got.lower == pytest.approx(wanted.lower, rel=1e-13, abs=slack)
            assert got.upper == pytest.approx(wanted.upper, rel=1e-13, abs=slack)
            assert (got.delta, got.n, got.assumed, got.threshold) == (wanted.delta, wanted.n, wanted.assumed, None)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_one_shot_function_where_sizes_divide(kind):
    """room blocks of s: with k | room / 2, every block of the theorem is a union of stored ones."""
    delta_min = 0.05
    n = 8 * room(delta_min)
    data = sample(kind, n)
    made = filled(data, delta_min=delta_min)
    assert made.to_dict()["level"] == 4
    for delta in [0.05, 0.5]:
        k = median_of_means_blocks(n, delta)
        size = 16 * (n // k // 16)  # a number of values of which k blocks divide into stored ones
        made = filled(data[: k * size], delta_min=delta_min)
        s = 2 ** made.to_dict()["level"]
        assert size % s == 0
        assert s > 1
        wanted, got = median_of_means(data[: k * size], delta=delta), made.estimate(delta)
        # Blocks with the same values have the same mean up to rounding, so their medians do too.
        assert got.value == pytest.approx(wanted.value, rel=1e-12, abs=1e-13 * np.abs(data[: k * size]).max())


@pytest.mark.parametrize("n", [6_000, 9_999, 50_001])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_otherwise_blocks_end_at_stored_ones_and_are_large_enough(n, delta):
    delta_min = 0.05
    data = sample("student 1.5", n)
    made = filled(data, delta_min=delta_min)
    k = median_of_means_blocks(n, delta)
    size, s = n // k, 2 ** made.to_dict()["level"]
    assert s > 1
    ends = [i * size // s * s for i in range(k + 1)]
    means = [exact_mean(data[a:b]) for a, b in pairwise(ends)]
    assert made.estimate(delta).value == pytest.approx(np.median(means), rel=1e-12)
    smallest = min(b - a for a, b in pairwise(ends))
    assert smallest == s * (size // s)
    assert smallest > 15 / 16 * size - 1
    # The width is the printed one, and what the proof gives for blocks of this size is not wider.
    e = made.estimate(delta, eps=0.5, v=2.0)
    width = median_of_means_width(n, eps=0.5, v=2.0, delta=delta)
    assert e.upper - e.value == pytest.approx(width, rel=1e-12)
    assert 24.0 ** (2 / 3) * smallest ** (-1 / 3) <= width
    assert k >= 8 * math.log(2 / delta)


def test_the_proof_in_numbers():
    """N' > n/(2k) for every n, k and s that can occur, with the least room."""
    for k in range(1, 40):
        for s in (1, 2, 4, 64):
            for n in range(k * s, 6 * k * s + 7, max(1, s // 8)):
                assert 2 * k * (s * (n // k // s)) > n or n // k < 1


@pytest.mark.parametrize("kind", KINDS)
def test_shards_of_complete_blocks_equal_one_stream(kind):
    delta_min = 0.5
    data = sample(kind, 16 * room(delta_min))
    whole = filled(data, delta_min=delta_min)
    s = 2 ** whole.to_dict()["level"]
    rng = np.random.default_rng(0)
    cuts = s * np.sort(rng.choice(np.arange(1, len(data) // s), size=7, replace=False))
    parts = [filled(p, delta_min=delta_min) for p in np.split(data, cuts)]
    while len(parts) > 1:  # neighbours, in any order of merging
        a = int(rng.integers(len(parts) - 1))
        before = parts[a + 1].to_dict()
        parts[a].merge(parts[a + 1])
        assert parts.pop(a + 1).to_dict() == before
    assert parts[0].to_dict() == whole.to_dict()


def test_any_shards_keep_every_value_in_blocks_of_one_size():
    """Whole numbers have exact block means here, so the sum of all values is there to the last digit."""
    rng = np.random.default_rng(1)
    delta_min = 0.9
    for trial in range(60):
        sizes = rng.integers(0, 3 * room(delta_min), size=int(rng.integers(2, 7)))
        parts = [filled(rng.integers(0, 1000, size=size).astype(float), delta_min=delta_min) for size in sizes]
        total = sum(p.n * _mean(p) for p in parts if p.n)
        while len(parts) > 1:
            a, b = rng.choice(len(parts), size=2, replace=False)
            parts[a].merge(parts[b])
            del parts[b]
        made = parts[0]
        assert made.n == sizes.sum(), trial
        state = made.to_dict()
        assert MedianOfMeans.from_dict(state).to_dict() == state  # as many blocks as n asks for
        if made.n:
            assert made.n * _mean(made) == pytest.approx(total, rel=1e-12)


def _mean(made: MedianOfMeans) -> float:
    """The mean of all values, from the state."""
    state = made.to_dict()
    n, level = state["n"], state["level"]
    total = sum(state["blocks"]) * 2**level
    sizes = [2**h for h in range(level) if n >> h & 1]
    return (total + sum(size * mean for size, mean in zip(sizes, state["rest"], strict=True))) / n


def test_merged_values_agree_with_the_one_stream_within_the_width():
    data = sample("pareto 2.5", 40_000)
    whole = filled(data).estimate(0.01, eps=1.0, v=2.3)
    made = MedianOfMeans()
    for part in np.array_split(data, 37):
        made.merge(filled(part))
    got = made.estimate(0.01, eps=1.0, v=2.3)
    assert abs(got.value - whole.value) < 0.2 * (whole.upper - whole.value)
    assert got.upper - got.value == pytest.approx(whole.upper - whole.value, rel=1e-12)


def test_too_few_values_for_delta_have_no_bounds():
    needed = 2 * median_of_means_blocks(MANY, 1e-4)
    e = filled(np.arange(needed - 1.0)).estimate(1e-4, eps=1.0, v=1.0)
    assert (e.lower, e.upper) == (-math.inf, math.inf)
    assert f"needs n >= {needed}" in e.assumed
    e = filled(np.arange(float(needed))).estimate(1e-4, eps=1.0, v=1.0)
    assert math.isfinite(e.upper)


@pytest.mark.parametrize(
    ("wrong", "parameter", "rule"),
    [
        ({"delta": 1e-13}, "delta", "at least this MedianOfMeans's delta_min"),
        ({"delta": math.nan}, "delta", "a probability"),
        ({"eps": 0.5}, "v", "given together"),
        ({"v": 0.5}, "eps", "given together"),
        ({"eps": 0.0, "v": 1.0}, "eps", "0 < eps <= 1"),
        ({"eps": 1.0, "v": 0.0}, "v", "a finite number > 0"),
    ],
)
def test_wrong_parameters_of_estimate_are_rejected_by_name(wrong, parameter, rule):
    with raises(InvalidInput, parameter=parameter, rule=rule):
        filled(sample("gaussian", 1000)).estimate(**({"delta": 0.05} | wrong))


def test_no_values_have_no_median():
    with pytest.raises(InvalidInput, match="no values yet"):
        MedianOfMeans().estimate(0.05)
