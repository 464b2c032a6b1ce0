"""Tail indices: typed values, bias and coverage on known laws, negative controls, and invalid input."""

import math

import numpy as np
import pytest

from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import raises
from helpers.samples_of import part_of
from robandit.diagnostics import tail_index
from robandit.diagnostics.exceedances import generalized_pareto_shape
from robandit.diagnostics.tails import _moment, moment_index
from robandit.errors import InvalidInput


def test_the_moment_estimator_worked_out_by_hand():
    shape, low, high, _ = _moment(np.array([math.e**3, math.e**2, math.e, 1.0]), 3, 0.95)
    assert shape == pytest.approx(2 + 1 - 0.5 / (1 - 4 / (14 / 3)))  # -0.5: light
    assert 1 / high == pytest.approx(0.98, abs=0.005)
    assert low < shape


def intervals(estimate, draw, samples=150, n=3000, **given):
    rng = np.random.default_rng(11)
    return [estimate(draw(rng, n), "right", **given) for _ in range(samples)]


def test_the_moment_estimator_sees_pareto_tails():
    for tail in (1.2, 2.5):
        found = intervals(moment_index, lambda rng, n, tail=tail: rng.pareto(tail, n) + 1.0)
        assert abs(np.median([1 / f.index for f in found]) - 1 / tail) < 0.1
        assert np.mean([f.low <= 2.5 * tail <= f.high for f in found]) < 0.6, "the negative control"


@pytest.mark.parametrize("estimate", [moment_index, tail_index])
def test_light_tails_are_not_called_heavy(estimate):
    for draw in (
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.random(n),
        lambda rng, n: rng.exponential(size=n),
    ):
        assert np.mean([f.high == math.inf for f in intervals(estimate, draw)]) > 0.9
    heavy = [f.high == math.inf for f in intervals(estimate, lambda rng, n: rng.pareto(1.5, n))]
    assert np.mean(heavy) < 0.4, "the negative control"
    text = str(estimate(np.random.default_rng(0).random(3000), "right"))
    assert text.startswith("no heavy tail visible")


def test_the_moment_estimator_of_mirror_images_units_and_ties():
    x = np.random.default_rng(1).standard_t(2.0, 2000)
    right = moment_index(x, "right")
    assert moment_index(-x, "left").index == right.index
    assert moment_index(x * 2.0**600, "right").index == pytest.approx(right.index, rel=1e-9)
    tied = moment_index(np.append(np.zeros(200), np.ones(100)), "right")
    assert tied.light
    assert "equal" in tied.note
    few = moment_index(np.arange(50.0), "right")
    assert math.isnan(few.index)
    assert str(few) == "unknown: 25 values on the right of 24.5, 50 are needed"


@cases(
    ("given", "name", "rule"),
    [
        ({"side": "up"}, "side", "one of 'left', 'right'"),
        ({"about": "mean"}, "about", "a finite number"),
        ({"about": math.nan}, "about", "a finite number"),
        ({"confidence": 0.0}, "confidence", "a probability"),
    ],
)
def test_invalid_input(given, name, rule):
    with raises(InvalidInput, parameter=name, rule=rule):
        tail_index(np.arange(1.0, 11.0), **given)


def burr(rng, n):
    """P(X > x) = (1 + x^2)^-1: index 2, and a second-order term that the rule's k does not know."""
    return np.sqrt(1.0 / rng.random(n) - 1.0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_moment_estimator_of_a_part(side):
    """It sees the extremes that were kept; the sample alone misses what is rare."""
    values = np.append(np.random.default_rng(1).normal(size=100_000), [-1e6] * 5)
    part = part_of(values, 5000)
    found = moment_index(part, side)
    assert found.k == 999
    if side == "left":
        assert found.low < 2.0 < moment_index(part.sample, side).low, "the negative control"


def covered(found, index):
    return np.mean([f.low <= index <= f.high for f in found])


def stated(draw, samples, n, **given):
    return intervals(tail_index, draw, samples, n, about="median", **given)


CONTROLS = {
    "Pareto 1.3": (1.3, lambda rng, n: rng.pareto(1.3, n) + 1.0),
    "Pareto 1.8": (1.8, lambda rng, n: rng.pareto(1.8, n) + 1.0),
    "Pareto 2.5": (2.5, lambda rng, n: rng.pareto(2.5, n) + 1.0),
    "Burr 2": (2.0, lambda rng, n: burr(rng, n)),
    "Student 1.5": (1.5, lambda rng, n: rng.standard_t(1.5, n)),
    "Student 3": (3.0, lambda rng, n: rng.standard_t(3.0, n)),
    "rounded, with zeros": (1.5, lambda rng, n: np.round(4 * rng.pareto(1.5, n) * (rng.random(n) < 0.7)) / 4),
    "log-normal": (math.inf, lambda rng, n: rng.lognormal(size=n)),
    "log-normal, sigma 2": (math.inf, lambda rng, n: rng.lognormal(sigma=2.0, size=n)),
    "normal": (math.inf, lambda rng, n: rng.normal(size=n)),
}


def least_coverage(samples):
    """The number of covering samples that a 95 % interval reaches with probability 1 - 1e-4."""
    from scipy.stats import binom

    return binom.ppf(1e-4, samples, 0.95) / samples


@pytest.mark.parametrize("name", CONTROLS)
def test_the_stated_interval_covers(name):
    """The level is 95 %; the tolerance is binomial. docs/results/tail-intervals.md has more laws and sizes."""
    index, draw = CONTROLS[name]
    samples = amount(60, 400)
    assert covered(stated(draw, samples, 4000), index) >= least_coverage(samples)


def hill_interval(x):
    """The textbook interval: Hill's estimate about the median from the n^(2/3) largest, two standard errors to each side."""
    top = np.sort(x[x > np.median(x)] - np.median(x))[::-1]
    k = int(len(top) ** (2 / 3))
    index = 1 / np.mean(np.log(top[:k] / top[k]))
    return index * (1 - 2 / math.sqrt(k)), index * (1 + 2 / math.sqrt(k))


def test_hills_interval_about_the_median_does_not_cover():
    """The negative control: the textbook interval fails the same test, on exact Pareto values."""
    rng = np.random.default_rng(11)
    for name in ("Pareto 1.8", "Pareto 2.5", "log-normal"):
        index, draw = CONTROLS[name]
        found = [hill_interval(draw(rng, 4000)) for _ in range(60)]
        assert np.mean([low <= index <= high for low, high in found]) < least_coverage(60)


def test_the_stated_interval_is_useful():
    """From 10,000 exact Pareto values, an index of 1.5 is told from a finite variance, and a normal tail from an infinite one."""
    rng = np.random.default_rng(31)
    heavy = [tail_index(rng.pareto(1.5, 10_000), about="median") for _ in range(20)]
    assert np.median([f.high for f in heavy]) < 2.0
    assert np.median([f.low for f in heavy]) > 1.0
    assert all(f.light for f in stated(CONTROLS["normal"][1], 10, 10_000))


def test_the_stated_index_ignores_shifts_units_and_sides():
    x = np.random.default_rng(32).pareto(1.5, 3000)
    one = tail_index(x, about="median")
    for other, side in ((x + 1000.0, "right"), (-x, "left"), (x * 2.0**900, "right"), (x * 2.0**-900, "right")):
        found = tail_index(other, side, about="median")
        assert (found.index, found.low, found.high) == pytest.approx((one.index, one.low, one.high), rel=1e-6)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.arange(50.0), "unknown: 25 values on the right of 24.5, 50 are needed"),
        (np.ones(500), "unknown: 0 values on the right of 1, 50 are needed"),
        (np.repeat([0.0, 1.0], [300, 200]), "no heavy tail visible"),
        (np.repeat([0.0, 1.0, 2.0], [300, 190, 10]), "unknown: equal values, such as rounded ones, leave no estimate"),
    ],
    ids=["few", "constant", "two values", "three values"],
)
def test_the_stated_index_of_few_or_equal_values(values, text):
    assert str(tail_index(values, about="median")) == text


@pytest.mark.parametrize("extreme", [2.0, 1e5, 1e300])
def test_the_stated_index_of_values_with_one_far_away(extreme):
    x = np.append(np.random.default_rng(33).normal(size=999), extreme)
    found = tail_index(x, about="median")
    assert found.low <= found.index <= found.high
    assert found.high == math.inf
    assert (found.low > 2.0) == (extreme == 2.0), "one value far away may be the first of a heavy tail"


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_stated_index_of_a_part(side):
    """Its sample shows the bulk and its extremes the end; together they are almost as good as all values."""
    values = np.random.default_rng(34).standard_t(2.0, 100_000)
    part, whole = (tail_index(each, side, about=0.0) for each in (part_of(values, 5000), values))
    assert part.low < 2.0 < part.high
    assert abs(part.shape - whole.shape) < 0.15
    assert part.n == pytest.approx(whole.n, rel=0.06)


@pytest.mark.parametrize("shape", [-0.4, 0.0, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("n", [30, 3000])
def test_the_shape_maximises_the_likelihood(shape, n):
    """No neighbour has a higher likelihood, by SciPy's density, at the best scale for each."""
    from scipy.optimize import minimize_scalar
    from scipy.stats import genpareto

    x = -np.sort(-genpareto.rvs(shape, size=n, random_state=np.random.default_rng(35)))
    found = generalized_pareto_shape(x)

    def best(at):
        least = math.log(-at * x[0]) if at < 0.0 else -10.0  # a short tail must reach the largest value
        return -minimize_scalar(
            lambda log: -np.mean(genpareto.logpdf(x, at, scale=math.exp(log))), bounds=(least, 10.0), method="bounded"
        ).fun

    step = 0.02 * (1.0 + found)
    assert best(found) >= best(found + step)
    assert found - step < -0.5 or best(found) >= best(found - step)
    assert abs(found - shape) < 6.0 * (1.0 + shape) / math.sqrt(n)
