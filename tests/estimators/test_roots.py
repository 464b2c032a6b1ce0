"""Catoni's root where the sum is steep at far clusters and flat between them: against halving in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.cases import cases
from robandit.estimators import catoni_root
from robandit.estimators.roots import row_roots


def psi(x: float, theta: float, alpha: float) -> float:
    half = alpha * abs(0.5 * x - 0.5 * theta)
    if half < 1e150:
        z = 2.0 * half
        out = math.log1p(z * (1.0 + 0.5 * z))
    else:
        out = 2.0 * (math.log(alpha) + math.log(abs(0.5 * x - 0.5 * theta))) + math.log(2.0)
    return math.copysign(out, 0.5 * x - 0.5 * theta)


def halved(x: list[float], alpha: float) -> float:
    low, high = min(x), max(x)
    while low < (middle := 0.5 * low + 0.5 * high) < high:
        if math.fsum(psi(v, middle, alpha) for v in x) > 0.0:
            low = middle
        else:
            high = middle
    return low


SCALES = [1e18, 1e20, 1e100, 1e300, 1.7e308, 1.7976931348623157e308]


@cases("scale", SCALES)
@cases("negative", [1, 49, 50, 51, 99])
def test_two_far_clusters(scale, negative):
    x = np.r_[np.full(negative, -scale), np.full(100 - negative, scale)]
    wanted = 0.0 if negative == 50 else halved(x.tolist(), 1.0)
    for order in (x, x[::-1], np.random.default_rng(0).permutation(x)):
        assert catoni_root(order, 1.0) / scale == pytest.approx(wanted / scale, abs=1e-12)
    if negative == 51 and scale == 1e18:
        assert catoni_root(x, 1.0) == pytest.approx(-6.7287e17, rel=1e-4)


def test_two_far_clusters_of_a_large_sample():
    """More than are taken whole: the start comes from a part of them."""
    x = np.r_[np.full(10_200, -1e18), np.full(9_800, 1e18)]
    for order in (x, x[::-1], np.random.default_rng(0).permutation(x)):
        assert catoni_root(order, 1.0) / 1e18 == pytest.approx(halved(x[::200].tolist(), 1.0) / 1e18, abs=1e-11)


def test_a_difference_that_is_no_double_times_a_tiny_alpha():
    x = [-1.7e308, 1.7e308, 1.7e308]
    assert catoni_root(x, 1e-308) / 1e308 == pytest.approx(halved(x, 1e-308) / 1e308, abs=1e-12)


def test_wrong_starts_do_not_matter():
    x = np.r_[np.full(51, -1e18), np.full(49, 1e18)][None]
    for start in (-1e18, 1e18, 0.0, -9.9e17, 1e-300):
        assert row_roots(x, np.ones(1), starts=np.array([start]))[0] == pytest.approx(-6.728707659931e17, rel=1e-11)


@settings(max_examples=amount(75, 150), deadline=None)
@given(
    clusters=st.lists(
        st.tuples(st.floats(-1.0, 1.0), st.floats(0.0, 1e-3), st.integers(1, 12)),
        min_size=1,
        max_size=4,
    ),
    exponent=st.integers(-150, 150),
    strength=st.integers(-2, 150),
    seed=st.integers(0, 100),
)
def test_large_alpha(clusters, exponent, strength, seed):
    """alpha times the spread from 0.01 to 1e150, at any scale; any order of the values."""
    scale = 10.0**exponent
    x = np.array([(c + w * j) * scale for c, w, count in clusters for j in range(count)])
    alpha = 10.0**strength / scale
    spread = float(np.ptp(x)) + 1e-4 * float(np.abs(x).max())  # the last digits of values far from zero
    wanted = halved(x.tolist(), alpha)
    mixed = np.random.default_rng(seed).permutation(x)
    for order in (x, mixed):
        # Below 1e-300 doubles lose digits, and the estimators' range ends.
        assert abs(catoni_root(order, alpha) - wanted) <= 1e-11 * spread + 1e-300
