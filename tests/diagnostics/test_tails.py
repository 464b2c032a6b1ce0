"""Tail indices: typed values, bias and coverage on known laws, negative controls, and invalid input."""

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import raises
from helpers.samples_of import part_of
from robandit.diagnostics import tail_index, tail_path
from robandit.diagnostics.exceedances import generalized_pareto_shape
from robandit.errors import InvalidInput

METHODS = ("hill", "moment")


def test_values_worked_out_by_hand():
    x = [math.e**3, math.e**2, math.e, 1.0, 0.5, -4.0]
    hill = tail_index(x, k=3)
    assert (hill.index, hill.k, hill.n) == (pytest.approx(0.5), 3, 5)  # logs 3, 2, 1: shape 2
    # Gamma(3) quantiles 0.6186721 and 7.2246879, so 2 x 3 / them
    assert (1 / hill.high, 1 / hill.low) == (pytest.approx(6 / 7.2246879), pytest.approx(6 / 0.6186721))
    moment = tail_index(x, method="moment", k=3)
    assert moment.shape == pytest.approx(2 + 1 - 0.5 / (1 - 4 / (14 / 3)))  # -0.5: light
    assert moment.index == math.inf
    assert (moment.high, moment.light) == (math.inf, False), "three values exclude no infinite variance"
    assert str(moment) == "above 0.98"


def intervals(method, draw, samples=150, n=3000, **given):
    rng = np.random.default_rng(11)
    return [tail_index(draw(rng, n), method=method, **given) for _ in range(samples)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tail", [1.2, 2.5])
def test_pareto_tails_are_covered(method, tail):
    """Coverage of 95 % intervals within four standard deviations, and the neighbouring index is not covered."""
    found = intervals(method, lambda rng, n: rng.pareto(tail, n) + 1.0)
    covered = np.mean([f.low <= tail <= f.high for f in found])
    assert covered >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / len(found))
    assert abs(np.median([1 / f.index for f in found]) - 1 / tail) < 0.05
    wrong = {"hill": 1.6, "moment": 2.5}[method] * tail
    assert np.mean([f.low <= wrong <= f.high for f in found]) < 0.6


@pytest.mark.parametrize("side", ["left", "right"])
def test_student_tails_about_another_centre(side):
    found = intervals("hill", lambda rng, n: 100.0 + rng.standard_t(1.5, n), side=side, about="median")
    assert np.mean([f.low <= 1.5 <= f.high for f in found]) > 0.8


@pytest.mark.parametrize("method", ["moment", "gpd"])
def test_light_tails_are_not_called_heavy(method):
    for draw in (
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.random(n),
        lambda rng, n: rng.exponential(size=n),
    ):
        assert np.mean([f.high == math.inf for f in intervals(method, draw)]) > 0.9
    heavy = [f.high == math.inf for f in intervals("moment", lambda rng, n: rng.pareto(1.5, n))]
    assert np.mean(heavy) < 0.05, "the negative control"
    text = str(tail_index(np.random.default_rng(0).random(3000), method=method))
    assert text.startswith("no heavy tail visible")


def test_hill_believes_in_heavy_tails():
    assert math.isfinite(tail_index(np.random.default_rng(0).normal(size=3000)).high)


def test_sides_are_mirror_images_and_units_do_not_matter():
    x = np.random.default_rng(1).standard_t(2.0, 2000)
    for method in METHODS:
        right = tail_index(x, "right", method)
        assert tail_index(-x, "left", method).index == right.index
        assert tail_index(x * 2.0**600, "right", method).index == pytest.approx(right.index, rel=1e-9)


def test_a_million_values_take_another_way_to_the_same_numbers():
    x = np.random.default_rng(2).pareto(1.5, 20_000)
    top = np.sort(x)[::-1]
    assert tail_index(x, k=500).index == pytest.approx(1 / np.mean(np.log(top[:500] / top[500])))


def test_the_default_k_and_the_note_on_small_samples():
    x = np.arange(1.0, 1001.0)
    assert tail_index(x).k == 100
    few = tail_index(np.arange(1.0, 50.0))
    assert math.isnan(few.index)
    assert str(few) == "unknown: 49 values on the right of 0, 50 are needed"
    assert math.isfinite(tail_index(np.arange(1.0, 50.0), k=10).index), "who gives k is believed"
    assert str(tail_index(-x, "right")) == "unknown: 0 values on the right of 0, 50 are needed"
    for method in METHODS:
        tied = tail_index(np.ones(100), method=method)
        assert tied.light
        assert "equal" in tied.note


@cases(
    ("given", "name", "rule"),
    [
        ({"side": "up"}, "side", "one of 'left', 'right'"),
        ({"method": "ols"}, "method", "one of"),
        ({"k": 1}, "k", "an integer from 2 to 9"),
        ({"k": 10}, "k", "an integer from 2 to 9"),
        ({"k": 2.5}, "k", "an integer"),
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


@pytest.mark.parametrize(
    ("draw", "index"),
    [
        (lambda rng, n: (-np.log(rng.random(n))) ** (-1.0 / 1.5), 1.5),  # Frechet
        (lambda rng, n: np.abs(rng.standard_t(2.0, n)), 2.0),
        (burr, 2.0),
    ],
    ids=["Frechet 1.5", "Student 2", "Burr 2"],
)
def test_bias_at_the_rules_k_is_small_beside_chance(draw, index):
    """The mean shape is off by less than half of a sample's own standard deviation; at ten times the k it is not."""
    rng = np.random.default_rng(21)
    shapes, wide = [], []
    for _ in range(100):
        x = draw(rng, 5000)
        shapes.append(tail_index(x).shape)
        wide.append(tail_index(x, k=2900).shape)
    own = 1.0 / index / math.sqrt(tail_index(x).k)
    assert abs(np.mean(shapes) - 1.0 / index) < 0.5 * own + 4.0 * own / math.sqrt(len(shapes))
    assert abs(np.mean(wide) - 1.0 / index) > 3.0 * own, "the negative control"


def test_hills_interval_has_its_confidence_on_exact_pareto_tails():
    """Exactly 90 % then, so within four standard deviations to both sides; intervals for a wrong k / 2 are too wide."""
    rng = np.random.default_rng(22)
    samples = rng.pareto(1.5, (400, 500)) + 1.0
    found = [tail_index(x, confidence=0.9) for x in samples]
    tolerance = 4.0 * math.sqrt(0.9 * 0.1 / len(found))
    assert abs(np.mean([f.low <= 1.5 <= f.high for f in found]) - 0.9) < tolerance
    other = [tail_index(x, confidence=0.9, k=f.k // 4) for x, f in zip(samples, found, strict=True)]
    narrow = [abs(o.index - 1.5) < (f.high - f.low) / 2 for o, f in zip(other, found, strict=True)]
    assert np.mean(narrow) < 0.9 - tolerance, "the negative control: the interval of another k"


# Power failures in the United States, 1984 to 2002: thousands of customers without power, the 60 largest of 211. Counts reported to
# the government, as Newman (2005) and Clauset, Shalizi and Newman (2009) use them.
BLACKOUTS = [
    *(7500, 2100, 2085, 1660, 1600, 1500, 1500, 1500, 1300, 1140, 899, 877, 875, 870, 725, 660, 650, 600, 600, 598),
    *(570, 557.354, 500, 500, 500, 490, 464, 460, 404, 400, 400, 385, 375, 363.476, 360, 350, 350, 320.831, 315, 312),
    *(300, 300, 300, 300, 290, 284, 272, 272, 258, 257.718, 250, 246, 246, 242.91, 240, 238, 235, 234, 230, 219),
]


def test_a_published_index():
    """A. Clauset, C. R. Shalizi, M. E. J. Newman, SIAM Review 51, 2009: blackouts have 59 values from 230 on and the
    exponent 2.3 (3) of the density, hence an index of 1.3 (3)."""
    tail = [x for x in BLACKOUTS if x >= 230]
    assert len(tail) == 59
    found = tail_index(BLACKOUTS, k=len(tail) - 1)
    assert round(found.index, 1) == 1.3
    assert found.low < 1.3 < found.high
    # their formula divides by the number of values, Hill's by one fewer
    assert found.index * 59 / 58 == pytest.approx(len(tail) / np.sum(np.log(np.array(tail) / 230)))
    assert round(tail_index(BLACKOUTS, k=20).index, 1) != 1.3


SHARED = Path(__file__).parents[2].parent / "shared" / "data"
SHARED = SHARED if SHARED.exists() else Path(os.environ.get("ROBANDIT_SHARED_DATA", "/nowhere"))
THREE = r"([\d.]+) \[([\d.]+), ([\d.]+)\]"
README = rf"Hill index of \|reward\|, top 5%: median over arms {THREE}; top 1%: {THREE}"


@pytest.mark.skipif(not SHARED.exists(), reason=f"no recorded rewards in {SHARED}")
@pytest.mark.parametrize("name", ["llm_route_cost", "nab_ad_cpc", "azure_pg_latency"])
def test_recorded_rewards_have_the_indices_that_others_computed(name):
    """The medians over arms in the READMEs. The number of values for 5 % may be rounded there in another way."""
    pl = pytest.importorskip("polars")
    told = [float(number) for number in re.search(README, (SHARED / name / "README.md").read_text()).groups()]
    rows = pl.read_parquet(SHARED / name / "data.parquet")
    arms = [np.abs(rows.filter(pl.col("arm") == arm)["reward"].to_numpy()) for arm in rows["arm"].unique()]
    for share, (middle, low, high) in ((0.05, told[:3]), (0.01, told[3:])):
        found = [tail_index(x, k=int(share * len(x))).index for x in arms]
        assert np.median(found) == pytest.approx(middle, rel=0.05)
        assert (min(found), max(found)) == (pytest.approx(low, rel=0.05), pytest.approx(high, rel=0.1))


def test_a_path_holds_the_estimate_and_its_neighbours():
    x = np.random.default_rng(3).standard_t(2.0, 4000)
    for method in METHODS:
        path = tail_path(x, "left", method, about="median")
        one = tail_index(x, "left", method, about="median")
        at = path.k.tolist().index(one.k)
        assert (path.chosen, path.n) == (one.k, one.n)
        assert path.shape[at] == pytest.approx(one.shape)
        assert 1.0 / path.high[at] == pytest.approx(one.low)
        assert path.k[0] == 5
        assert path.k[-1] == 1000
    assert tail_path(np.arange(40.0)).k.size == 0
    with raises(InvalidInput, parameter="points"):
        tail_path(x, points=1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_part_has_the_tails_of_all_values(method, side):
    """Up to the kept extremes it is the same; the sample alone misses what is rare."""
    values = np.append(np.random.default_rng(1).normal(size=100_000), [-1e6] * 5)
    part = part_of(values, 5000)
    point = float(np.median(part.sample))
    found = tail_index(part, side, method, about=point)
    assert found.k == 999
    whole = tail_index(values, side, method, k=found.k, about=point)
    assert (found.index, found.low, found.high) == pytest.approx((whole.index, whole.low, whole.high))
    assert found.n == pytest.approx(whole.n, rel=4.0 * 0.5 / math.sqrt(0.25 * 5000))
    path = tail_path(part, side, method, about=point)
    assert path.chosen == found.k
    assert path.shape[path.k.tolist().index(found.k)] == found.shape
    assert path.k[-1] > 10 * found.k, "and beyond by the sample"
    if side == "left" and method == "moment":
        assert found.low < 2.0 < tail_index(part.sample, side, method, about=point).low, "the negative control"


def test_a_part_with_all_values_of_a_side():
    values = np.append(np.zeros(50_000), np.random.default_rng(2).pareto(1.5, 300))
    found = tail_index(part_of(values, 2000), "right", "moment")
    assert found == tail_index(values, "right", "moment")


def covered(found, index):
    return np.mean([f.low <= index <= f.high for f in found])


def stated(draw, samples, n, **given):
    return intervals("gpd", draw, samples, n, about="median", **given)


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


def test_hills_interval_about_the_median_does_not_cover():
    """The negative control: the interval that was stated before fails the same test, on exact Pareto values."""
    for name in ("Pareto 1.8", "Pareto 2.5", "log-normal"):
        index, draw = CONTROLS[name]
        assert covered(intervals("hill", draw, 60, 4000, about="median"), index) < least_coverage(60)


def test_the_stated_interval_is_useful():
    """From 10,000 exact Pareto values, an index of 1.5 is told from a finite variance, and a normal tail from an infinite one."""
    rng = np.random.default_rng(31)
    heavy = [tail_index(rng.pareto(1.5, 10_000), method="gpd", about="median") for _ in range(20)]
    assert np.median([f.high for f in heavy]) < 2.0
    assert np.median([f.low for f in heavy]) > 1.0
    assert all(f.light for f in stated(CONTROLS["normal"][1], 10, 10_000))


def test_the_stated_index_ignores_shifts_units_and_sides():
    x = np.random.default_rng(32).pareto(1.5, 3000)
    one = tail_index(x, method="gpd", about="median")
    for other, side in ((x + 1000.0, "right"), (-x, "left"), (x * 2.0**900, "right"), (x * 2.0**-900, "right")):
        found = tail_index(other, side, "gpd", about="median")
        assert (found.index, found.low, found.high) == pytest.approx((one.index, one.low, one.high), rel=1e-6)
    shifted = tail_index(x + 1000.0, method="hill", about="median"), tail_index(x + 1000.0)
    assert shifted[0].index != pytest.approx(shifted[1].index, rel=0.5), "the negative control"


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
    assert str(tail_index(values, method="gpd", about="median")) == text


@pytest.mark.parametrize("extreme", [2.0, 1e5, 1e300])
def test_the_stated_index_of_values_with_one_far_away(extreme):
    x = np.append(np.random.default_rng(33).normal(size=999), extreme)
    found = tail_index(x, method="gpd", about="median")
    assert found.low <= found.index <= found.high
    assert found.high == math.inf
    assert (found.low > 2.0) == (extreme == 2.0), "one value far away may be the first of a heavy tail"


def test_the_stated_index_takes_no_k():
    with raises(InvalidInput, parameter="k", rule="None for method='gpd'"):
        tail_index(np.arange(1.0, 100.0), method="gpd", k=5)
    with raises(InvalidInput, parameter="method"):
        tail_path(np.arange(1.0, 100.0), method="gpd")


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_stated_index_of_a_part(side):
    """Its sample shows the bulk and its extremes the end; together they are almost as good as all values."""
    values = np.random.default_rng(34).standard_t(2.0, 100_000)
    part, whole = (tail_index(each, side, "gpd", about=0.0) for each in (part_of(values, 5000), values))
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
