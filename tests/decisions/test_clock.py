"""The steady clock: never backwards, never standing still, and at most a tenth slower than the machine's clock."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from helpers.amount import amount
from helpers.serving import Clock
from robandit.decisions.clock import SLEW, SteadyClock


@pytest.fixture
def wall():
    return Clock(1000.0)


def test_it_follows_a_clock_that_goes_forwards(wall):
    clock = SteadyClock(wall)
    for step in (0.0, 0.25, 3.0, 1e9):
        wall.now += step
        assert clock() == wall.now


def test_a_clock_that_is_set_back(wall):
    clock = SteadyClock(wall)
    wall.now = 400.0
    assert clock() == 1000.0
    assert clock() == 1000.0
    wall.now = 500.0
    assert clock() == 1000.0 + 100.0 * (1.0 - SLEW)
    wall.now = 500.0 + 600.0 / SLEW  # until both agree
    assert clock() == pytest.approx(wall.now, abs=1e-9)
    wall.now += 1e5
    assert clock() == wall.now


def test_it_catches_up_with_a_log_of_the_future(wall):
    clock = SteadyClock(wall)
    clock.catch_up(500.0)
    assert clock() == 1000.0
    clock.catch_up(1600.0)
    assert clock() == 1600.0
    clock.catch_up(1600.0)
    wall.now += 10.0
    assert clock() == 1609.0


@settings(max_examples=amount(200, 5000), deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.floats(-1.0, 1.0), st.floats(0.0, 1e-6)), max_size=30))
def test_it_never_goes_backwards_and_passes_nine_tenths_of_the_time_at_least(steps):
    wall = Clock(1.8e9)
    clock = SteadyClock(wall)
    last = clock()
    for step in steps:
        before, wall.now = wall.now, wall.now + step
        passed = wall.now - before
        now = clock()
        assert now >= last
        assert now >= wall.now
        if passed > 0.0:
            assert now - last >= (1.0 - SLEW) * passed - 1e-5
        assert now - last <= max(passed, 0.0) + 1e-5
        last = now
