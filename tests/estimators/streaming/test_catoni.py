from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from helpers.invalid import raises
from helpers.stream_samples import KINDS, sample
from references.plain_streams import catoni_total
from robandit.errors import InvalidInput
from robandit.estimators import Catoni, catoni_mean

FINITE = [k for k in KINDS if k not in ("huge", "all scales")]  # whose squares are doubles


def filled(values) -> Catoni:
    made = Catoni()
    made.update_many(values)
    return made


def alpha_of(n: int, v: float, delta: float) -> float:
    ell = 2.0 * math.log(2.0 / delta)
    return math.sqrt(ell * (n - ell)) / n / math.sqrt(v)


def bound_of(data: np.ndarray) -> float:
    """A v that makes sense: the spread of the middle, without overflow."""
    low, high = np.quantile(data, [0.05, 0.95])
    return min(max(float(high / 2 - low / 2), 1e-150), 1e150) ** 2


@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize("n", [40, 63, 64, 400])
def test_the_error_is_what_it_says_at_50_digits(kind, n):
    data = sample(kind, n)
    made = filled(data)
    v = bound_of(data)
    for delta in [0.2, 1e-3]:
        for factor in [1e-4, 1.0, 1e6]:
            e = made.estimate(delta, v=factor * v)
            alpha, error = alpha_of(n, factor * v, delta), mpf(made.error(delta, v=factor * v))
            with mp.workdps(50):  # the exact root lies between, as the exact sum changes its sign there
                assert catoni_total(data, alpha, e.value - error) > 0
                assert catoni_total(data, alpha, e.value + error) < 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [100, 5_000, 50_000])
def test_agrees_with_the_one_shot_function(kind, n):
    data = sample(kind, n, seed=1)
    made = filled(data)
    v = bound_of(data)
    for delta in [0.1, 1e-6]:
        for bonus in ("paper", "tight"):
            wanted, got = catoni_mean(data, v=v, delta=delta, bonus=bonus), made.estimate(delta, v=v, bonus=bonus)
            error = made.error(delta, v=v)
            spread = float(np.median(np.abs(data - np.median(data))))
            assert abs(got.value - wanted.value) <= error + 1e-11 * spread + 4 * math.ulp(wanted.value)
            width = wanted.upper / 2 - wanted.lower / 2
            assert got.upper / 2 - got.lower / 2 == pytest.approx(width + error, rel=1e-9, abs=4 * math.ulp(got.value))
            assert (got.n, got.delta, got.assumed) == (wanted.n, wanted.delta, wanted.assumed)


LIGHT_AND_HEAVY = {
    "gaussian": 1.0,
    "gaussian far from zero": 1.0,
    "pareto 2.5": 2.23,
    "log-normal": 2926.0,
    "few zeros": 40.0,
    "student 1.5": 100.0,
    "negated pareto 1.5": 100.0,
    "small integers": 4.0,
    "two values": 1.0,
}


@pytest.mark.parametrize("kind", LIGHT_AND_HEAVY)
@pytest.mark.parametrize("n", [70, 1000, 100_000])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_the_error_is_below_a_millionth_of_the_width(kind, n, delta):
    made = filled(sample(kind, n))
    v = LIGHT_AND_HEAVY[kind]
    width = 2.0 * math.sqrt(v * math.log(2.0 / delta) / n)
    rounding = 2.0 * math.ulp(1e9) if "far" in kind else 0.0  # of the answer itself
    assert made.error(delta, v=v) <= 1e-6 * width + 2 * rounding


def test_the_negative_control_has_a_large_error():
    """Data that leave the first 63 values far behind, and a v far below their spread: the cells are too coarse, and it says so."""
    rng = np.random.default_rng(0)
    made = filled(np.concatenate([np.full(63, 1e6), rng.normal(size=5000)]))
    width = 2.0 * math.sqrt(math.log(40.0) / 5063)
    error = made.error(0.05, v=1.0)
    assert error > 1e-6 * width
    data = np.concatenate([np.full(63, 1e6), np.random.default_rng(0).normal(size=5000)])
    assert abs(made.estimate(0.05, v=1.0).value - catoni_mean(data, v=1.0, delta=0.05).value) <= error
    e = made.estimate(0.05, v=1.0)
    assert e.upper - e.value == pytest.approx(width + error)


@pytest.mark.parametrize("kind", FINITE)
def test_shards_in_any_tree_agree_within_the_error(kind):
    rng = np.random.default_rng(4)
    data = sample(kind, 8000, seed=2)
    whole, v = filled(data), bound_of(data)
    for _ in range(3):
        cuts = np.sort(rng.choice(np.arange(1, 8000), size=12, replace=False))
        parts = [filled(part) for part in np.split(data, cuts)]
        while len(parts) > 1:
            a, b = rng.choice(len(parts), size=2, replace=False)
            before = parts[b].to_dict()
            parts[a].merge(parts[b])
            assert parts[b].to_dict() == before
            del parts[b]
        made = parts[0]
        assert made.n == 8000
        for delta in [0.1, 1e-6]:
            for factor in [0.01, 1.0, 100.0]:
                one, other = whole.estimate(delta, v=factor * v), made.estimate(delta, v=factor * v)
                error = made.error(delta, v=factor * v)
                assert abs(one.value - other.value) <= error + whole.error(delta, v=factor * v)
        assert made.error(0.1, v=v) <= 1e-5 * math.sqrt(v) + 4 * math.ulp(one.value)


def test_many_small_shards_do_not_pile_up_cells():
    data = sample("student 1.5", 40_000)
    made = Catoni()
    for part in np.array_split(data, 400):
        made.merge(filled(part))
    whole = filled(data)
    assert made.error(0.05, v=10.0) <= 1e-6 * 2 * math.sqrt(10 * math.log(40) / 40_000)
    assert abs(made.estimate(0.05, v=10.0).value - whole.estimate(0.05, v=10.0).value) <= 2e-9
    assert len(made.to_dict()["cells"]) <= 2.5 * len(whole.to_dict()["cells"])


def test_shards_with_the_same_center_add_up_exactly():
    rng = np.random.default_rng(0)
    data = np.where(rng.random(20_000) < 0.7, 0.0, rng.integers(-50, 51, 20_000))
    whole = filled(data)
    made = filled(data[:9000])
    made.merge(filled(data[9000:]))
    one, other = whole.to_dict(), made.to_dict()
    assert one["center"] == other["center"] == 0.0
    assert [row[:3] for row in one["cells"]] == [row[:3] for row in other["cells"]]
    assert one["equal"] == other["equal"]


def test_merging_at_very_different_scales():
    """A cell that is 2^1000 times narrower than the one it goes into is a point in it."""
    small, large = filled(1e-300 * sample("student 1.5", 500)), filled(-1e8 + sample("gaussian", 500))
    for a, b in ((small, large), (large, small)):
        made = Catoni.from_dict(a.to_dict())
        made.merge(b)
        assert made.n == 1000
        e = made.estimate(0.05, v=1e16)
        data = np.concatenate([1e-300 * sample("student 1.5", 500), -1e8 + sample("gaussian", 500)])
        assert abs(e.value - catoni_mean(data, v=1e16, delta=0.05).value) <= made.error(0.05, v=1e16) + 1e-6


def test_any_alpha_works():
    data = sample("student 1.5", 2000)
    made = filled(data)
    for v in [5e-324, 1e-200, 1e-3, 1e200, 1.7e308]:
        e = made.estimate(0.05, v=v)
        assert abs(e.value - catoni_mean(data, v=v, delta=0.05).value) <= made.error(0.05, v=v) + 1e-10
    assert filled(np.full(100, 3.25)).estimate(0.05, v=1.0).value == 3.25


def test_scale_by_powers_of_two_changes_nothing():
    data = sample("student 1.5", 3000)
    e = filled(data).estimate(0.05, v=4.0)
    for power in (-400, -30, 30, 400):
        other = filled(np.ldexp(data, power)).estimate(0.05, v=math.ldexp(4.0, 2 * power))
        assert math.ldexp(other.value, -power) == e.value


def test_values_that_are_too_large_are_rejected():
    made = Catoni()
    with raises(InvalidInput, parameter="value", rule="a finite number up to 4.49423e+307"):
        made.update(1e308)
    with pytest.raises(InvalidInput, match=r"must be .* up to 4\.49423e\+307.*position 1"):
        made.update_many([1.0, -1e308])
    assert made.n == 0
    made.update_many([2.0**1022, -(2.0**1022)] * 200)
    assert made.estimate(0.05, v=1e308).value == pytest.approx(0.0, abs=1e295)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"delta": 0.0}, "delta = 0.0"),
        ({"v": 0.0}, "v = 0.0"),
        ({"v": math.inf}, "v = inf"),
        ({"bonus": "none"}, "'none'"),
        ({"delta": 1e-200}, r"1000 values, and this bound needs 1845 at delta = 1e-200"),
    ],
)
def test_wrong_parameters_of_estimate_are_rejected_by_name(wrong, match):
    with pytest.raises(InvalidInput, match=match):
        filled(sample("gaussian", 1000)).estimate(**({"delta": 0.05, "v": 1.0} | wrong))


def test_an_error_needs_values_too():
    with pytest.raises(InvalidInput, match="0 values, and more than"):
        Catoni().error(0.05, v=1.0)
