"""Short tests of small parts, kernels in plain Python: what larger tests with wide tolerances would let pass."""

import math

import numpy as np
import pytest
from scipy import optimize

from helpers.invalid import raises
from robandit import estimators as est
from robandit.errors import InvalidInput
from robandit.estimators import lepskii, likelihood, roots, threshold
from robandit.estimators.infinite_variance import tuning

RNG = np.random.default_rng(12)


@pytest.mark.parametrize("exponent", [0.003, 0.1, 2.0])
@pytest.mark.parametrize("n", [3, 16, 35])
def test_the_likelihood_bound_is_the_minimum(n, exponent):
    for z in (RNG.uniform(-1, 1, n), RNG.beta(0.2, 3, n), np.full(n, -0.25), np.append(-RNG.random(n - 1), 1.0)):
        out = np.zeros(1)
        with np.errstate(all="ignore"):  # as compiled code does
            likelihood.bound_rows(z[None, :], exponent, out)

        def bound(power, z=z):
            return 1 + math.exp(power) - math.exp(np.mean(np.log(1 + math.exp(power) - z)) - exponent)

        tried = optimize.minimize_scalar(bound, bounds=(-30, 15), method="bounded", options={"xatol": 1e-7}).fun
        at_one = 1.0 if z.max() >= 1.0 else 1 - math.exp(np.mean(np.log(1 - z)) - exponent)
        assert out[0] == pytest.approx(min(tried, at_one), abs=1e-8)


def test_the_width_of_lepskii_is_that_of_its_theorem():
    x = RNG.standard_t(3, 200)
    found = est.lepskii_catoni(x, eps=0.5, delta=0.1, range_factor=3.0, ratio=1.5)
    scale = np.mean(np.abs(x) ** 1.5) ** (1 / 1.5)
    # Each of log(A^2) / log(ratio) points takes its share of delta.
    unit = tuning(200, math.log(2 * (1 + 2 * math.log(3.0) / math.log(1.5)) / 0.1), 0.5).width
    assert found.upper - found.value == pytest.approx((2 * found.threshold + 1.5 * 3.0 * scale) * unit)
    powers = np.log(found.threshold * 3.0 / scale) / math.log(1.5)
    assert powers == pytest.approx(round(powers), abs=1e-9)
    assert powers >= 0


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_thresholds_in_plain_python(scale):
    """Samples longer than the buffer, with ties and zeros, from their equation."""
    for n, a in ((5, 3.5), (16, 4.0), (200, 2.3), (333, 40.0)):
        x = np.round(RNG.standard_t(1.2, (2, n)), 1)
        x[0, :: max(n // 9, 2)] = 0.0
        found = np.empty((2, 2))
        top = math.ceil(a)
        with np.errstate(all="ignore"):
            threshold.threshold_rows(scale * x, a, top, np.empty(min(n, top + 8) + threshold.BLOCK), found)
        for row in range(2):
            root = found[row, threshold.ROOT] / scale
            if np.count_nonzero(x[row]) <= a:
                assert found[row, threshold.ROOT] == -1.0
                assert found[row, threshold.NONZERO] == np.count_nonzero(x[row])
            else:
                assert np.sum(np.minimum((x[row] / root) ** 2, 1.0)) == pytest.approx(a, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4, 1e160])
def test_the_quick_sum_is_the_sum(scale):
    """With products of many factors, some of them beyond doubles, and a rest of the sample that fills no lanes."""
    n = 2 * roots.FACTORS * roots.LANES + 37
    x = RNG.standard_t(2, n)
    x[5::400] *= 1e150
    lanes = np.empty(2 * roots.LANES)
    with np.errstate(all="ignore"):
        terms = [roots.influence(v, 0.3, scale, 2.0, 0.5) for v in x]
        for careful in (False, True):
            found = roots.quick_total(x, n, 0.3, scale, 2.0, 0.5, careful, lanes)
            assert found == pytest.approx(math.fsum(terms), abs=1e-12 * math.fsum(map(abs, terms)))
    inner = slice(1000, 1100)
    y = scale * (x[inner] - 0.3)
    if scale < 1e100:
        assert terms[inner] == pytest.approx(np.sign(y) * np.log1p(np.abs(y) + y * y / 2), rel=1e-12)


def test_masks_that_hide_no_value_are_accepted():
    assert est.sample_mean(np.ma.array([1.0, 2.0])).value == 1.5


def test_the_ratio_that_lepskii_asks_for_is_enough():
    x = RNG.normal(size=2000)
    with pytest.raises(InvalidInput, match="pass a ratio of at least") as refused:
        est.lepskii_catoni(x, eps=1.0, delta=0.1, range_factor=1e6, ratio=1.0001)
    least = float(str(refused.value).rpartition(" ")[2])
    assert est.lepskii_catoni(x[:300], eps=1.0, delta=0.1, range_factor=1e6, ratio=least).n == 300
    with pytest.raises(InvalidInput, match="pass a ratio of at least"):
        est.lepskii_catoni(x, eps=1.0, delta=0.1, range_factor=1e6, ratio=1 + 0.999 * (least - 1))


def test_the_mean_of_many_of_the_largest_doubles():
    assert est.sample_mean(np.full(3000, 1.7e308)).value == pytest.approx(1.7e308, rel=1e-12)
    with raises(InvalidInput, parameter="x"):
        est.sample_mean([1.0, math.inf])


def test_lepskii_takes_the_smallest_scale_that_agrees_with_all_larger_ones():
    grid = 1.5 ** np.arange(6.0)[:, None] * np.ones(40)
    for width in (0.01, 0.1, 0.4):
        found = RNG.normal(size=(6, 40))
        want = [
            next(j for j in range(6) if all(abs(r[k] - r[j]) <= 2 * width * grid[j, 0] for k in range(j + 1, 6)))
            for r in found.T
        ]
        # An interval that misses one of those beyond it is out, whatever a smaller one does.
        assert lepskii._smallest_that_agrees(found, grid, width).tolist() == want
