"""Properties that hold for all samples, each with a control where it must not hold."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers.cases import cases
from robandit import estimators as est
from robandit.errors import NoThresholdError

C = (1 + math.sqrt(2)) ** 2
FEW = settings(max_examples=40, deadline=None)
values = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: 0.0 if abs(v) < 1e-6 else v)
samples = st.integers(60, 90).flatmap(lambda n: arrays(float, n, elements=values))
deltas = st.floats(0.02, 0.9)

# Each with its parameters at scale s, and what must be known about it.
METHODS = {
    "adaptive": lambda x, s: est.adaptive_trimmed_mean(x, delta=0.3, warn=False),
    "adaptive, likelihood": lambda x, s: est.adaptive_trimmed_mean(x, delta=0.3, bonus="likelihood", warn=False),
    "adaptive, centred": lambda x, s: est.adaptive_trimmed_mean(x, delta=0.3, bonus="tight", center="median"),
    "theorem 6": lambda x, s: est.adaptive_trimmed_mean(x, delta=0.3, eps=0.5, u=2.0 * s**1.5),
    "truncated": lambda x, s: est.truncated_mean(x, eps=0.5, u=2.0 * s**1.5, delta=0.1),
    "truncated, common": lambda x, s: est.truncated_mean(x, eps=0.5, u=2 * s**1.5, delta=0.1, common_threshold=True),
    "median of means": lambda x, s: est.median_of_means(x, delta=0.3, eps=0.5, v=2.0 * s**1.5),
    "catoni": lambda x, s: est.catoni_mean(x, v=2.0 * s**2, delta=0.1),
    "infinite variance": lambda x, s: est.infinite_variance_catoni(x, eps=0.5, v=2.0 * s**1.5, delta=0.5),
    "lepskii": lambda x, s: est.lepskii_catoni(x, eps=0.5, delta=0.5, range_factor=3.0),
    "p-robust": lambda x, s: est.p_robust_mean(x, p=1.5, c=2.0 * s, u=2.0 * s**1.5, delta=0.1),
    "sample": lambda x, s: est.sample_mean(x, v=2.0 * s**2, delta=0.1),
}
ORDER_MATTERS = {"adaptive", "adaptive, likelihood", "adaptive, centred", "theorem 6", "truncated", "median of means"}
SHIFTS = {"adaptive, centred", "median of means", "catoni", "infinite variance", "sample"}
X = np.random.default_rng(9).standard_t(1.5, 240) + 0.2


def numbers(estimate: est.Estimate) -> np.ndarray:
    return np.array([estimate.value, estimate.lower, estimate.upper])


@cases("name", METHODS)
@cases("scale", [2.0**-40, 0.3, 7.0, 1e8])
def test_scale(name, scale):
    found = METHODS[name](X * scale, scale)
    assert numbers(found) == pytest.approx(numbers(METHODS[name](X, 1.0)) * scale, rel=1e-10, abs=1e-10 * scale)


@pytest.mark.parametrize("name", ["truncated", "catoni", "infinite variance", "p-robust"])
def test_scale_needs_its_parameters_scaled(name):
    assert METHODS[name](X * 7, 1.0).value != pytest.approx(METHODS[name](X, 1.0).value * 7, rel=1e-3)


@cases("name", METHODS)
def test_order(name):
    """Only the multiset counts, except where the docstring says otherwise; there it must show."""
    x = np.random.default_rng(1).permutation(X)
    same = METHODS[name](x, 1.0).value == pytest.approx(METHODS[name](X, 1.0).value, rel=1e-12, abs=1e-12)
    assert same == (name not in ORDER_MATTERS)


@cases("name", METHODS)
def test_shift(name):
    moved = METHODS[name](X + 1000.0, 1.0).value - 1000.0
    same = moved == pytest.approx(METHODS[name](X, 1.0).value, abs=1e-9)
    assert same == (name in SHIFTS)


@cases("name", METHODS)
def test_batches_are_their_rows(name):
    batch = np.random.default_rng(2).standard_t(1.5, (2, 3, 240))
    whole = METHODS[name](batch, 1.0)
    for i in np.ndindex(2, 3):
        alone = METHODS[name](batch[i], 1.0)
        for field in ("value", "lower", "upper", "threshold", "share_trimmed"):
            mine = getattr(whole, field)
            mine = mine[i] if np.ndim(mine) else mine
            assert mine == getattr(alone, field), field
        assert isinstance(alone.value, float)
    assert whole.n == 240
    assert whole.value.shape == (2, 3)


def test_axis_layout_and_type():
    batch = np.random.default_rng(2).standard_t(1.5, (200, 3))
    calls = [
        lambda x, axis: est.sample_mean(x, axis=axis).value,
        lambda x, axis: est.catoni_mean(x, v=1.0, delta=0.1, axis=axis).value,
        lambda x, axis: est.median_of_means(x, delta=0.1, axis=axis).value,
        lambda x, axis: est.truncated_mean(x, eps=1, u=1, delta=0.1, axis=axis).value,
        lambda x, axis: est.adaptive_trimmed_mean(x, delta=0.1, seed=4, axis=axis).upper,
        lambda x, axis: est.infinite_variance_catoni(x, eps=1, v=1, delta=0.1, axis=axis).value,
        lambda x, axis: est.lepskii_catoni(x, eps=1, delta=0.1, axis=axis).value,
        lambda x, axis: est.p_robust_mean(x, p=1.5, c=1, axis=axis).value,
        lambda x, axis: est.trimming_threshold(x, 0.1, axis=axis),
        lambda x, axis: est.trimmed_mean(x, threshold=[1.0, 2.0, 3.0], axis=axis),
        lambda x, axis: est.trimmed_variance(x, threshold=2.0, axis=axis),
        lambda x, axis: est.catoni_root(x, 0.5, axis=axis),
    ]
    frozen = np.ascontiguousarray(batch.T)
    frozen.setflags(write=False)
    for call in calls:
        expected = call(np.ascontiguousarray(batch.T), -1)
        for other in (call(batch, 0), call(np.asfortranarray(batch), -2), call(frozen, 1), call(frozen.tolist(), 1)):
            assert (other == expected).all()
    assert est.trimming_threshold(np.arange(40), 0.1) == est.trimming_threshold(np.arange(40.0), 0.1)
    assert est.sample_mean(np.float32([0.5, 1.5])).value == 1.0
    assert est.sample_mean(np.zeros((0, 5))).value.shape == (0,)
    assert est.trimming_threshold(np.zeros((0, 50)), 0.1).shape == (0,)


def test_input_is_left_alone():
    x = X.copy()
    for method in METHODS.values():
        method(x, 1.0)
    assert (x == X).all()


def equation(x: np.ndarray, m: float) -> float:
    """F(M) with exact sums of the rounded terms."""
    return math.fsum(min((v / m) ** 2, 1.0) for v in x.tolist())


@FEW
@given(samples, deltas)
def test_the_threshold_solves_its_equation(x, delta):
    a = C * math.log(1 / delta)
    if np.count_nonzero(x) <= a:
        with pytest.raises(NoThresholdError):
            est.trimming_threshold(x, delta)
    else:
        m = est.trimming_threshold(x, delta)
        assert equation(x, m) == pytest.approx(a, rel=1e-12)
        assert m > np.abs(x[x != 0]).min()


@pytest.mark.parametrize("kind", ["normal", "pareto", "up", "down", "ties", "two sizes", "mostly zero"])
@pytest.mark.parametrize("n", [1_000, 50_001])
def test_the_threshold_of_long_samples(kind, n):
    """Long enough for the buffer to overflow, again and again when the sizes ascend."""
    rng = np.random.default_rng(n)
    x = {
        "normal": rng.normal(size=n),
        "pareto": rng.pareto(0.5, n),
        "up": np.sort(rng.pareto(1.0, n)),
        "down": -np.sort(-rng.pareto(1.0, n)),
        "ties": rng.integers(-2, 3, n).astype(float),
        "two sizes": np.where(np.arange(n) % 97 == 0, 1e9, 1e-9),
        "mostly zero": np.where(rng.random(n) < 0.95, 0.0, rng.pareto(1.0, n)),
    }[kind]
    for delta in (0.9, 0.1, 1e-3):
        a = C * math.log(1 / delta)
        m = est.trimming_threshold(x, delta)
        assert equation(x, m) == pytest.approx(a, rel=1e-12)
        shuffled = est.trimming_threshold(rng.permutation(x), delta)
        assert shuffled == pytest.approx(m, rel=1e-12)


@FEW
@given(samples, deltas, deltas)
def test_the_threshold_falls_with_confidence(x, one, other):
    low, high = sorted((one, other))
    if np.count_nonzero(x) > C * math.log(1 / low):
        assert est.trimming_threshold(x, low) <= est.trimming_threshold(x, high) * (1 + 1e-14)


@FEW
@given(samples, st.floats(-250, 250))
def test_the_threshold_scales(x, exponent):
    if np.count_nonzero(x) > C * math.log(2):
        m = est.trimming_threshold(x, 0.5)
        assert est.trimming_threshold(x * 10**exponent, 0.5) == pytest.approx(m * 10**exponent, rel=1e-12)


@FEW
@given(samples, st.floats(1e-6, 1e3))
def test_the_catoni_root_is_inside_odd_and_falls(x, alpha):
    root = est.catoni_root(x, alpha)
    assert x.min() <= root <= x.max()
    spread = float(np.abs(x).max()) + 1e-300
    assert est.catoni_root(-x, alpha) == pytest.approx(-root, rel=1e-11, abs=1e-11 * spread)

    def total(theta: float) -> float:
        z = alpha * (x - theta)
        return math.fsum(np.sign(z) * np.log1p(np.abs(z) + z * z / 2))

    step = 1e-10 * spread
    assert total(root - step) >= 0 >= total(root + step)


@FEW
@given(samples)
def test_a_small_alpha_gives_the_mean(x):
    spread = float(np.abs(x).max()) + 1e-300
    assert est.catoni_root(x, 1e-12 / spread) == pytest.approx(x.mean(), abs=1e-9 * spread)


@FEW
@given(samples, deltas)
def test_bonuses_are_ordered(x, delta):
    if np.count_nonzero(x[1::2]) > C * math.log(2 / delta):
        paper, tight = (est.adaptive_trimmed_mean(x, delta=delta, bonus=b) for b in ("paper", "tight"))
        assert paper.value == tight.value <= tight.upper <= paper.upper


def test_importing_stays_light():
    code = "import robandit.estimators, sys; print([m for m in ('numba', 'scipy', 'polars') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
