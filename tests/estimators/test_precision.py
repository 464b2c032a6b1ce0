"""Against 50 digits, from 1e-300 to 1e300, far from zero, with zeros and ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mpf

from helpers.amount import amount
from helpers.cases import cases
from references import slow_estimators as slow
from robandit import estimators as est
from robandit.estimators.formulas.catoni import influence
from robandit.estimators.infinite_variance import tuning
from robandit.estimators.p_robust import b_p
from robandit.estimators.roots import row_roots

SCALES = [1e-300, 1e-160, 1.0, 1e160, 1e300]
RNG = np.random.default_rng(5)
SAMPLES = {
    "pareto": RNG.pareto(1.2, 60) + 1,
    "cauchy": RNG.standard_cauchy(60),
    "normal": RNG.normal(size=61),
    "ties": RNG.integers(-3, 4, 60).astype(float),
    "constant": np.full(50, -2.5),
    "zeros": np.where(RNG.random(120) < 0.5, 0.0, RNG.standard_t(1.5, 120)),
    "far": 1e6 + RNG.normal(size=60),
    "wide": RNG.normal(size=60) * 10.0 ** RNG.uniform(-6, 6, 60),
    # The huge ones are clipped, and the root lies among the rest.
    "split": np.concatenate([RNG.normal(size=50), [1e12, -1e12, 1e100]]),
}
KINDS = sorted(SAMPLES)


def close(found: float, true: mpf, size: float, digits: float = 1e-12) -> bool:
    return abs(mpf(found) - true) <= mpf(digits) * mpf(size)


def scaled(kind: str, scale: float) -> np.ndarray:
    x = SAMPLES[kind]
    if scale * float(np.abs(x).max()) > 1e305:
        pytest.skip("not representable")
    return x * scale


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_threshold(kind, scale):
    x = scaled(kind, scale)
    deltas = (0.5, 0.1, 0.001)
    for delta in amount([deltas[SCALES.index(scale) % 3]], deltas):  # each of them for every kind
        a = mpf((1 + math.sqrt(2)) ** 2) * slow.mp.log(1 / mpf(delta))
        true = slow.threshold(x, a)
        assert close(est.trimming_threshold(x, delta), true, true)


@pytest.mark.parametrize("spread", [1e100, 1e300])
def test_threshold_far_below_the_largest_values(spread):
    """Three values are clipped whatever their size; scaling by the largest would lose all others."""
    small = np.abs(RNG.normal(size=100)) / spread
    x = np.concatenate([small, [1.0, 3.0, min(spread, 1e300)]])
    a = mpf((1 + math.sqrt(2)) ** 2) * slow.mp.log(1 / mpf(0.4))
    true = slow.threshold(x, a)
    assert true < 1e-50
    assert close(est.trimming_threshold(x, 0.4), true, true)


def test_threshold_with_subnormal_values():
    x = np.arange(1.0, 41.0) * 5e-324
    a = mpf((1 + math.sqrt(2)) ** 2) * slow.mp.log(1 / mpf(0.1))
    assert abs(est.trimming_threshold(x, 0.1) / 5e-324 - float(slow.threshold(x, a) / mpf(5e-324))) <= 0.5


@cases("scale", SCALES)
@cases("kind", KINDS)
def test_trimmed_moments(kind, scale):
    x = scaled(kind, scale)
    for share in (0.3, 0.8, 1.0):
        m = float(np.quantile(np.abs(x) / scale, share)) * scale * (1 + 1e-9)
        kept = slow.trimmed(x, mpf(m))
        size = max(abs(v) for v in kept)
        assert close(est.trimmed_mean(x, threshold=m), slow.mean(kept), size, 1e-15)
        true = slow.variance(kept)
        if true > mpf(1e300):
            with pytest.raises(ValueError, match="largest double"):
                est.trimmed_variance(x, threshold=m)
        elif true < mpf(1e-290):
            assert est.trimmed_variance(x, threshold=m) <= 1e-289
        else:
            assert close(est.trimmed_variance(x, threshold=m), true, true)


def test_variance_of_values_far_from_zero():
    for offset in (1e8, 1e12, 1e15):
        x = offset + np.arange(100.0) * 0.25
        true = slow.variance(slow.exact(x))
        assert close(est.trimmed_variance(x, threshold=math.inf), true, true)
    x = np.array([1.0, 1.0 + 2**-52] * 50)
    true = slow.variance(slow.exact(x))
    assert close(est.trimmed_variance(x, threshold=2.0), true, true)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("center", [None, "median"])
@pytest.mark.parametrize("bonus", ["paper", "tight", "likelihood"])
def test_adaptive(bonus, center, scale, monkeypatch):
    monkeypatch.setattr("robandit.estimators.adaptive.CENTRED", 0.0)  # small samples will do for arithmetic
    for kind in ("cauchy", "zeros"):
        x = scaled(kind, scale)
        estimate = est.adaptive_trimmed_mean(x, delta=0.3, bonus=bonus, center=center)
        value, upper, threshold = slow.adaptive(x, 0.3, bonus, center)
        assert close(estimate.threshold, threshold, threshold)
        assert close(estimate.value, value, threshold, 1e-14)
        assert close(estimate.upper, upper, threshold)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_catoni_root(kind, scale):
    x = scaled(kind, scale)
    middle = np.median(np.abs(x / scale - np.median(x / scale))) or 1.0
    for alpha in (1e-9, 0.01, 1.0, 1e6):
        alpha /= middle * scale
        root = est.catoni_root(x, alpha)
        # Errors are measured by the spread, or by how far from the middle the root lies; and a double has only so many digits.
        spread = max(middle * scale, abs(root - np.median(x)))
        assert slow.holds_catoni_root(x, alpha, root, max(1e-12 * spread, 2.3e-16 * abs(root), 5e-324))


def test_the_control_of_roots_sees_a_wrong_one():
    x = SAMPLES["normal"]
    root = est.catoni_root(x, 0.3)
    assert slow.holds_catoni_root(x, 0.3, root, 1e-12)
    assert not slow.holds_catoni_root(x, 0.3, root + 3e-12, 1e-12)
    assert not slow.holds_catoni_root(x, 0.31, root, 1e-12)


def test_catoni_root_beyond_every_square():
    x = np.array([-1e300, -1.0, 0.0, 1.0, 2.0, 1e300, 1.7e308, -1.7e308, 4.0])
    for alpha in (1e10, 1e300):
        assert slow.holds_catoni_root(x, alpha, est.catoni_root(x, alpha), 1e-12)


def test_large_samples_take_the_quick_way_to_the_same_root():
    rng = np.random.default_rng(11)
    for x in (1e9 + rng.pareto(1.1, 9_000), rng.standard_cauchy(9_000) * 1e200):
        middle = float(np.median(np.abs(x - np.median(x))))
        for alpha in (0.02 / middle, 30 / middle):
            root = est.catoni_root(x, alpha)
            assert slow.holds_catoni_root(x, alpha, root, max(1e-12 * middle, 2.3e-16 * abs(root)))


@pytest.mark.parametrize("eps", [0.05, 0.5, 0.9, 1.0])
def test_infinite_variance_catoni(eps):
    x = np.random.default_rng(2).standard_t(1.9, 300) / 2
    estimate = est.infinite_variance_catoni(x, eps=eps, v=3.0, delta=0.5, tau0=1 / eps)
    level = slow.mp.log(4)
    order = 1 + mpf(eps)
    c = slow.b_p(1 + eps)
    tau = 1 / mpf(eps)
    d = order / eps * (1 + tau) ** (order / eps) / tau ** (1 / mpf(eps)) * c ** (1 / mpf(eps))
    rest = 1 - d * level / 300
    alpha = (eps * c * 3) ** (-1 / order) * (level / 300) ** (1 / order) * rest ** (eps / order)
    width = (1 + tau) * slow.mp.sqrt(order) * (1 - mpf(eps)) ** (1 / order - mpf(1) / 2)
    width *= mpf(3) ** (1 / order) * rest ** (-eps / order) * (level / 300) ** (eps / order)
    assert slow.holds_catoni_root(x, alpha, estimate.value, 1e-12, order, c)
    assert close(estimate.upper - estimate.value, width, width)


def test_lepskii():
    """Grid, choice and bounds as the text has them, in 50 digits."""
    x = np.random.default_rng(3).standard_t(1.7, 200) + 0.5
    eps, delta, factor = 0.5, 0.3, 10.0
    estimate = est.lepskii_catoni(x, eps=eps, delta=delta, range_factor=factor)
    order = mpf(1.5)
    scale = slow.mean([abs(v) ** order for v in slow.exact(x)]) ** (1 / order)
    points = 1 + slow.mp.log(100) / slow.mp.log(2)
    level = slow.mp.log(2 * points / mpf(delta))
    tuned = tuning(200, float(level), eps)
    grid = [scale / 10 * 2**j for j in range(8)]
    assert grid[-2] < 10 * scale <= grid[-1] <= 20 * scale
    roots = [row_roots(x[None], np.array([tuned.alpha / float(t)]), order=1.5, factor=est.b_p(1.5))[0] for t in grid]
    for root, t in zip(roots, grid, strict=True):
        assert slow.holds_catoni_root(x, tuned.alpha / t, root, 1e-11, order, slow.b_p(1.5))
    agrees = [all(abs(r - roots[j]) <= 2 * tuned.width * grid[j] for r in roots[j + 1 :]) for j in range(8)]
    j = agrees.index(True)
    assert estimate.value == pytest.approx(roots[j], abs=1e-11)
    assert close(estimate.threshold, grid[j], grid[j])
    width = (2 * grid[j] + 20 * scale) * tuned.width
    assert close(estimate.upper - estimate.value, width, width)


@pytest.mark.parametrize("common", [False, True])
def test_truncated_and_median_of_means(common):
    for kind in KINDS:
        x = SAMPLES[kind]
        size = float(np.abs(x).max())
        true = slow.truncated(x, 0.5, 4.0, 0.05, common)
        assert close(
            est.truncated_mean(x, eps=0.5, u=4.0, delta=0.05, common_threshold=common).value, true, size, 1e-15
        )
        assert close(est.median_of_means(x, delta=0.4).value, slow.median_of_means(x, 0.4), size, 1e-15)
        assert close(est.sample_mean(x).value, slow.mean(slow.exact(x)), size, 1e-15)


@pytest.mark.parametrize("scale", SCALES)
def test_p_robust(scale):
    for kind in ("cauchy", "zeros", "wide"):
        x = scaled(kind, scale)
        for p in (1.01, 1.5, 2.0):
            for c in (1e-3 * scale, scale, 1e3 * scale):
                true = slow.p_robust(x, p, c)
                size = slow.mean([abs(slow.mpf(slow.p_robust([v], p, c * len(x) ** (1 / p)))) for v in x[:20]])
                assert close(est.p_robust_mean(x, p=p, c=c).value, true, max(abs(true), size))
    assert math.isfinite(est.p_robust_mean([1e300, -1e-300], p=2.0, c=1e-300).value)


@pytest.mark.parametrize("p", [1.001, 1.05, 1.5, 2.0])
def test_influence_far_out(p):
    """The same for Catoni's influence function."""
    true = float(slow.mp.log(1 + slow.mpf(1e200) + slow.mpf(b_p(p)) * slow.mpf(1e200) ** slow.mpf(p)))
    assert influence(1e200, 0.0, 1.0, p, b_p(p)) == pytest.approx(true, rel=1e-13)


@pytest.mark.parametrize("p", [1.0001, 1.01, 1.5, 2.0])
def test_p_robust_far_out(p):
    """Beyond 1e150 units z still counts beside b_p z^p when p is near 1."""
    assert est.p_robust_mean([1e200], p=p, c=1.0).value == pytest.approx(
        float(slow.p_robust([1e200], p, 1.0)), rel=1e-13
    )


def test_sums_near_the_largest_double():
    x = [1.7e308, 1.6e308, 1.5e308, -1e308]
    assert est.sample_mean(x).value == pytest.approx(0.95e308)
    assert est.median_of_means(x, delta=0.4).value == pytest.approx(0.95e308)
    assert est.trimmed_mean(x, threshold=math.inf) == pytest.approx(0.95e308)


def test_b_p_near_one():
    for p in (1 + 1e-12, 1.001, 1.2, 1.7, 1.999999, 2 - 1e-12):
        assert close(est.b_p(p), slow.b_p(p), 1.0, 1e-14)
