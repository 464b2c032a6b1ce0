"""Tail indices: values typed in, bias and coverage on known laws, negative controls, refusals."""

import math

import numpy as np
import pytest

from robandit.diagnostics import tail_index
from robandit.errors import InvalidInput

METHODS = ("hill", "moment", "pickands")


def test_values_worked_out_by_hand():
    x = [math.e**3, math.e**2, math.e, 1.0, 0.5, -4.0]
    hill = tail_index(x, k=3)
    assert (hill.index, hill.k, hill.n) == (pytest.approx(0.5), 3, 5)  # logs 3, 2, 1: shape 2
    # Gamma(3) quantiles 0.6186721 and 7.2246879, so 2 x 3 / them
    assert (1 / hill.high, 1 / hill.low) == (pytest.approx(6 / 7.2246879), pytest.approx(6 / 0.6186721))
    moment = tail_index(x, method="moment", k=3)
    assert moment.shape == pytest.approx(2 + 1 - 0.5 / (1 - 4 / (14 / 3)))  # -0.5: light
    assert moment.index == math.inf
    assert moment.light
    light = tail_index([16.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0], method="pickands", k=2)
    assert light.shape == pytest.approx(math.log2((8.0 - 6.0) / (6.0 - 2.0)))
    assert light.index == math.inf


def test_pickands_by_hand():
    x = [16.0, 10.0, 7.0, 4.0, 3.5, 3.2, 3.1, 3.0]
    shape = math.log2((10.0 - 4.0) / (4.0 - 3.0))
    found = tail_index(x, method="pickands", k=2)
    assert found.index == pytest.approx(1 / shape)
    sd = shape * math.sqrt(2 ** (2 * shape + 1) + 1) / (2 * (2**shape - 1) * math.log(2)) / math.sqrt(2)
    assert 1 / found.low == pytest.approx(shape + 1.959963984540054 * sd)


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
    wrong = {"hill": 1.6, "moment": 2.5, "pickands": 12.0}[method] * tail
    assert np.mean([f.low <= wrong <= f.high for f in found]) < 0.6


@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_student_tails_about_another_centre(side):
    found = intervals("hill", lambda rng, n: 100.0 + rng.standard_t(1.5, n), side=side, about="median")
    assert np.mean([f.low <= 1.5 <= f.high for f in found]) > 0.8


@pytest.mark.parametrize("method", ["moment", "pickands"])
def test_light_tails_are_not_called_heavy(method):
    for draw in (
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.random(n),
        lambda rng, n: rng.exponential(size=n),
    ):
        assert np.mean([f.light for f in intervals(method, draw)]) > 0.9
    heavy = [f.light for f in intervals("moment", lambda rng, n: rng.pareto(1.5, n))]
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
    shifted = tail_index(x + 64.0, "right", "pickands", k=100, about=50.0)
    assert shifted.index == pytest.approx(tail_index(x + 64.0, "right", "pickands", k=100).index, rel=1e-6)


def test_a_million_values_take_another_way_to_the_same_numbers():
    x = np.random.default_rng(2).pareto(1.5, 20_000)
    top = np.sort(x)[::-1]
    assert tail_index(x, k=500).index == pytest.approx(1 / np.mean(np.log(top[:500] / top[500])))


def test_the_rule_for_k_and_what_is_said_of_small_samples():
    x = np.arange(1.0, 1001.0)
    assert tail_index(x).k == 100
    assert tail_index(x, method="pickands").k == 50
    few = tail_index(np.arange(1.0, 50.0))
    assert math.isnan(few.index)
    assert str(few) == "unknown: 49 values on the right of 0, 50 are needed"
    assert math.isfinite(tail_index(np.arange(1.0, 50.0), k=10).index), "who gives k is believed"
    assert str(tail_index(-x, "right")) == "unknown: 0 values on the right of 0, 50 are needed"
    for method in METHODS:
        tied = tail_index(np.ones(100), method=method)
        assert tied.light
        assert "equal" in tied.note


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"side": "up"}, "side = 'up'"),
        ({"method": "ols"}, "method = 'ols'"),
        ({"k": 1}, "k = 1 must be a whole number from 2 to 9"),
        ({"k": 10}, "from 2 to 9 for 'hill': there are 10 values on the right of 0"),
        ({"k": 3, "method": "pickands"}, "from 2 to 2"),
        ({"k": 2.5}, "k = 2.5"),
        ({"about": "mean"}, "about = 'mean'"),
        ({"about": math.nan}, "about = nan"),
        ({"confidence": 0.0}, "confidence = 0.0"),
    ],
    ids=repr,
)
def test_refusals(given, match):
    with pytest.raises(InvalidInput, match=match):
        tail_index(np.arange(1.0, 11.0), **given)
