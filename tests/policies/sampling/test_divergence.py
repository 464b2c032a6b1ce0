"""KLinf for rewards with an upper bound: values with 40 digits, bounds that hold, and hard samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from references.slow_sampling import precise_klinf, slow_klinf
from robandit.policies.sampling.divergence import (
    AT,
    EXACT,
    FOUND_LENGTH,
    VALUE,
    enclosed,
    learn_deficit,
    quick_floor,
    solve,
)

SAMPLES = {
    "coins": [0.0] * 7 + [1.0] * 3,
    "one reward": [-2.0],
    "no reward near the bound": [-3.0, -2.5, -4.0],
    "a huge loss": [0.5, 0.2, 0.9, -1e8],
    "two values": [0.999, -5.0, 0.999],
    "at the bound": [1.0, 1.0, 1.0, -100.0],
    "all equal": [0.25] * 5,
}


def solved(x, m, upper, row=None):
    row = np.zeros(FOUND_LENGTH) if row is None else row
    pool = np.array([[upper - value for value in x]])
    return solve(pool, 0, len(x), row, upper - m), row


@pytest.mark.parametrize("name", SAMPLES)
def test_values_with_many_digits(name):
    x = SAMPLES[name]
    mean = math.fsum(x) / len(x)
    for share in (1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999):
        m = mean + share * (1.0 - mean)
        exact = float(len(x) * precise_klinf(x, m, 1.0))
        value, row = solved(x, m, 1.0)
        assert value == pytest.approx(exact, rel=1e-11, abs=1e-11)
        assert row[EXACT] == 2.0
        assert slow_klinf(x, m, 1.0) * len(x) == pytest.approx(
            exact, rel=1e-9, abs=1e-9
        )  # the reference of other tests


def test_coins_by_hand():
    """KLinf of coins is the divergence of coins: 0.3 log(0.3/0.5) + 0.7 log(0.7/0.5)."""
    assert solved(SAMPLES["coins"], 0.5, 1.0)[0] == pytest.approx(3 * math.log(0.6) + 7 * math.log(1.4), rel=1e-12)


def test_rewards_that_are_all_below_the_bound_end_at_the_bound():
    """The optimal law has mass at the bound: mean log((u - x) / (u - m)), by hand."""
    x = [-3.0, -2.5, -4.0]
    expected = sum(math.log((1.0 - v) / 0.5) for v in x)
    assert solved(x, 0.5, 1.0)[0] == pytest.approx(expected, rel=1e-13)


@settings(max_examples=amount(150, 300), deadline=None, derandomize=True)
@given(
    st.lists(st.one_of(st.floats(-1e6, 1.0), st.sampled_from([0.0, 1.0, -1.0])), min_size=1, max_size=12),
    st.lists(st.one_of(st.floats(-1e3, 1.0), st.sampled_from([0.0, 1.0])), max_size=5),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.99),
)
def test_bounds_hold_after_more_rewards_and_for_another_mean(x, more, share, other):
    """The quick bound is below the lower bound, and the exact value between the lower and the upper bound."""
    mean = math.fsum(x) / len(x)
    if not mean < 1.0 - 1e-9:
        return
    _, row = solved(x, mean + share * (1.0 - mean), 1.0)
    for value in more:
        learn_deficit(row, 1.0 - value)
    every = [*x, *more]
    mean = math.fsum(every) / len(every)
    if not mean < 1.0 - 1e-9:
        return
    d = (1.0 - other) * (1.0 - mean)
    low, high = enclosed(row, float(len(every)), d)
    exact = len(every) * slow_klinf(every, 1.0 - d, 1.0)
    slack = 1e-9 * (1.0 + exact)
    assert quick_floor(row, float(len(every)), d) <= low + slack
    assert low <= exact + slack
    assert exact <= high + slack
    # From this start, the search finds the exact value, and the bounds close.
    value, row = solved(every, 1.0 - d, 1.0, row)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert enclosed(row, float(len(every)), row[AT]) == (value, value)


def test_bounds_are_close_after_few_changes():
    """A loose bound would be valid, too, but would not save work."""
    rng = np.random.default_rng(0)
    x = rng.random(1000).tolist()
    value, row = solved(x, 0.6, 1.0)
    learn_deficit(row, 0.5)
    low, high = enclosed(row, 1001.0, 0.3999)
    assert high - low < 0.01 * value
    assert quick_floor(row, 1001.0, 0.3999) > 0.99 * value


def test_a_reward_at_the_bound_makes_an_end_solution_unknown():
    _, row = solved([-3.0, -2.5, -4.0], 0.5, 1.0)
    learn_deficit(row, 0.0)
    assert row[EXACT] == 0.0
    assert enclosed(row, 4.0, 0.5) == (0.0, math.inf)
    value, _ = solved([-3.0, -2.5, -4.0, 1.0], 0.5, 1.0, row)
    assert value == pytest.approx(4 * float(precise_klinf([-3.0, -2.5, -4.0, 1.0], 0.5, 1.0)), rel=1e-11)


@pytest.mark.parametrize("size", [1e-120, 1e100])
def test_units_do_not_matter(size):
    x = [0.1, 0.9, -30.0, 0.0]
    plain, row = solved(x, 0.5, 1.0)
    scaled, _ = solved([size * v for v in x], size * 0.5, size)
    assert scaled == pytest.approx(plain, rel=1e-12)
    assert row[VALUE] == plain
