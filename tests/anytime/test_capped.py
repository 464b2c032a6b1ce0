"""Evidence on capped means: reference values, exact expectations under the null, and that splitting only loses a little."""

from itertools import product

import numpy as np
import pytest

from robandit.anytime.capped import EDGES, LEVELS, log_down, log_lower, log_up
from robandit.anytime.evidence import Evidence

Y = np.array([0.1, 0.2, 0.05, 0.9, 0.3])


def weights_of(values, cap=1.0):
    evidence = Evidence(cap, 1)
    for value in values:
        evidence.observed(0, float(value))
    return evidence.counted().weights


def exact(lower, higher, levels=LEVELS):
    """The definition, on the rewards themselves."""
    up, down = log_up(higher, np.ones(len(higher)), levels), log_down(lower, np.ones(len(lower)), levels)
    return min(up[0], (up[1:] + down[:-1]).min(), down[-1])


@pytest.mark.parametrize(("level", "value"), [(0.05, 3.0419250527), (0.2, 0.1954099890), (0.5, -0.2274084946)])
def test_up_has_its_reference_values(level, value):
    assert log_up(Y, np.ones(5), np.array([level])) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("level", "value"), [(0.2, -0.0974755555), (0.5, 0.2093778127), (0.9, 4.2506990309)])
def test_down_has_its_reference_values(level, value):
    assert log_down(Y, np.ones(5), np.array([level])) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("log", [log_up, log_down])
def test_the_expectation_is_one_if_the_mean_is_the_level(log):
    """All outcomes of six rewards that are 0, 0.3 or 1 with probabilities 0.5, 0.3 and 0.2."""
    chances, level = {0.0: 0.5, 0.3: 0.3, 1.0: 0.2}, np.array([0.29])
    total = 0.0
    for values in product(chances, repeat=6):
        total += np.prod([chances[y] for y in values]) * np.exp(log(np.array(values), np.ones(6), level)[0])
    assert total == pytest.approx(1.0, rel=1e-12)


def test_splitting_keeps_the_mean_and_loses_little():
    rng = np.random.default_rng(5)
    high, low = np.minimum(rng.lognormal(size=(2, 2000)), 10.0) / 10.0
    low *= 0.7
    weights = weights_of(high), weights_of(low)
    for values, each in zip((high, low), weights, strict=True):
        assert each.sum() == pytest.approx(2000.0)
        assert (each @ EDGES).item() == pytest.approx(values.sum())
    found, best = log_lower(weights[1], weights[0]).item(), exact(low, high)
    assert best - 0.05 < found <= best
    assert best > np.log(20.0)


@pytest.mark.parametrize("values", [[0.0, 1.0, 1.0], [0.0], [1.0] * 7])
def test_zeros_and_capped_rewards_are_counted_exactly(values):
    values = np.array(values)
    weights = weights_of(values * 30.0, 30.0)
    assert log_lower(weights, weights).item() == pytest.approx(exact(values, values), abs=1e-12)


def test_rewards_above_the_cap_count_alike():
    assert (weights_of([30.0, 40.0, 1e150], 30.0) == weights_of([30.0] * 3, 30.0)).all()


def test_rows_are_pairs():
    rng = np.random.default_rng(1)
    rows = np.concatenate([weights_of(rng.random(200) * scale) for scale in (0.2, 0.5, 0.9)])
    each = [log_lower(rows[:1], row[None]).item() for row in rows[1:]]
    assert log_lower(rows[:1], rows[1:]) == pytest.approx(each)
    assert log_lower(rows[1:], rows[:1]).max() < 0.0 < min(each)
