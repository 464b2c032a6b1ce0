"""Robust MOSS against its formulas."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.amount import amount
from helpers.driving import Live, Plain
from helpers.duels import duel, stream
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_robust_moss import SlowRobustMOSS, epoch_end
from robandit import RobustMOSS
from robandit.errors import InvalidInput
from robandit.policies._parts.heap import pop_smallest, push, smallest
from robandit.policies._parts.reward_store import USED, empty_store, enlarged, store_full
from robandit.policies.robust_ucb.robust_moss import EPOCH, LEVEL

TOLD = RobustMOSS(eps=0.5, u=2.0, horizon=1000)


def test_reference_values():
    live = Live(TOLD, 2)
    for x in (0.3, -1.2, 2.5, 0.1, -4.0):
        live.tell(0, x)
    columns = live.describe()
    assert live.s.arms[0, EPOCH] == pytest.approx(5.054470284993, abs=1e-11)
    assert columns["threshold"][0] == pytest.approx(1.691694693245, abs=1e-11)
    assert columns["mean"][0] == pytest.approx(-0.16, abs=1e-11)
    assert columns["index"][0] - columns["mean"][0] == pytest.approx(4.942293532566, abs=1e-11)
    assert columns["share_saturated"][0] == 0.4
    assert math.isnan(columns["mean"][1])
    assert columns["index"][1] == math.inf


@pytest.mark.independent("RobustMOSS")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("u", "a"), [(2.0, 1.1), (1e-4, 1.02), (1e6, 1.6)])
def test_it_decides_as_its_formulas_say(kind, u, a):
    eta = 4.0 if a > 1.5 else 2.2
    policy = RobustMOSS(eps=0.4, u=u, horizon=700, a=a, eta=eta)
    live, slow = Live(policy, 4), SlowRobustMOSS(4, 700, 0.4, u, a, eta)
    assert duel(live, slow, stream(KINDS[kind], 1), 260) < 30
    columns = live.describe()
    for arm in range(4):
        mean, bonus, level, share = slow.parts(arm)
        assert columns["threshold"][arm] == pytest.approx(level, rel=1e-12)
        assert columns["share_saturated"][arm] == share
        assert columns["mean"][arm] == pytest.approx(mean, abs=1e-12 * level)
        assert columns["index"][arm] == pytest.approx(mean + bonus, abs=1e-12 * (level + bonus))


def test_a_run_to_the_horizon_in_which_rewards_come_back():
    live, slow = Live(TOLD, 3), SlowRobustMOSS(3, 1000, 0.5, 2.0)
    most = []
    rng = np.random.default_rng(0)

    def reward(arm):
        most.append(live.s.slots[:3, USED].max())
        return 3.0 * rng.standard_t(1.5) - arm

    duel(live, slow, reward, 1000)
    assert max(most) > live.s.slots[:3, USED].max() + 3
    assert live.grown == 0


def test_many_saturated_rewards_make_it_grow():
    live, slow = Live(TOLD, 2), SlowRobustMOSS(2, 1000, 0.5, 2.0)
    assert duel(live, slow, lambda arm: -1e12 * (1 + arm), 300) < 5
    assert live.grown > 2
    assert live.describe()["share_saturated"].tolist() == [1.0, 1.0]


def test_equal_indices_go_to_the_fewest_pulls():
    live = Live(TOLD, 3)
    chosen = []
    for _ in range(30):
        chosen.append(live.ask())
        live.tell(chosen[-1], 0.0)
    assert chosen == [0, 1, 2] * 10


@pytest.mark.parametrize("a", [2.0, 3.0, 1.5, 1.1, 1.001])
def test_epochs_begin_at_exact_powers(a):
    live = Plain(RobustMOSS(eps=0.5, u=2.0, horizon=1000, a=a, eta=12.0), 2)
    for n in range(1, 300):
        live.tell(0, 1.0)
        h = live.s.arms[0, EPOCH]
        assert n < h <= a * n * (1 + 1e-12)
        assert h == pytest.approx(epoch_end(n, a), rel=1e-12)


def test_the_level_only_grows():
    for horizon, arms in ((10, 2), (1000, 2), (10**6, 50)):
        live = Plain(RobustMOSS(eps=0.3, u=2.0, horizon=horizon), arms)
        levels = []
        for _ in range(400):
            live.tell(0, 1.0)
            levels.append(live.s.arms[0, LEVEL])
        assert (np.diff(levels) >= 0.0).all()


def test_a_level_that_overflows_saturates_nothing():
    live = Live(RobustMOSS(eps=1e-9, u=1e308, horizon=10**6), 2)
    for _ in range(500):
        live.tell(0, -1.0)
    assert live.s.arms[0, LEVEL] == math.inf
    assert live.describe()["mean"][0] == -1.0


@pytest.mark.parametrize("kind", ["student", "cauchy", "losses, tail 1.5"])
def test_units_do_not_matter(kind):
    """Rewards times s, u times s^(1+eps)."""
    s = 2.0**10
    one, two = Live(TOLD, 3), Live(RobustMOSS(eps=0.5, u=2.0 * s**1.5, horizon=1000), 3)
    reward = stream(KINDS[kind], 3)
    for _ in range(400):
        arm = one.ask()
        assert arm == two.ask()
        value = reward(arm)
        one.tell(arm, value)
        two.tell(arm, s * value)


def test_late_rewards_in_any_order():
    live, slow = Live(TOLD, 2), SlowRobustMOSS(2, 1000, 0.5, 2.0)
    marks = [live.issue(live.ask()) for _ in range(6)]
    assert live.s.pulls[:2].tolist() == [3, 3]
    values = [(0, 9.0), (0, -0.5), (1, 7.0), (0, 2.0), (1, 1.0), (1, -1.0)]
    for (arm, value), mark in zip(values, marks, strict=True):
        live.late(arm, value, mark)
        slow.learn(arm, value)
    assert live.describe()["index"] == pytest.approx(slow.indices())


@settings(max_examples=amount(50, 100), deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.floats(-100, 100), st.just(None)), max_size=120))
def test_the_heap_gives_back_the_smallest(steps):
    pool, slots = empty_store(2, 1, 4)
    held = []
    for step in steps:
        if step is None:
            assert smallest(pool, slots, 1) == (min(map(abs, held)) if held else math.inf)
            if held:
                popped = pop_smallest(pool, slots, 1)
                assert abs(popped) == min(map(abs, held))
                held.remove(popped)
        else:
            push(pool, slots, 1, step)
            held.append(step)
            if store_full(None, type("S", (), {"slots": slots})):
                pool, slots = enlarged(pool, slots)
        assert slots[1, USED] == len(held)
        assert slots[0, USED] == 0


@pytest.mark.parametrize(
    ("parameters", "name", "rule"),
    [
        ({"eps": 0.0}, "eps", "a number with 0 < eps <= 1"),
        ({"u": 0.0}, "u", "a finite number > 0"),
        ({"horizon": 0}, "horizon", "an integer from 1"),
        ({"a": 1.0}, "a", "a finite number >= 1"),
        ({"eta": -1.0}, "eta", "a finite number > 0"),
        ({"eta": 2.0}, "eta", "is at least 2a = 2.2"),
        ({"eta": 1e-300}, "eta", "is at least 2a = 2.2"),
        ({"a": 1e308, "eta": 1e-10}, "eta", "is at least 2a = inf"),
    ],
)
def test_invalid_parameters(parameters, name, rule):
    with raises(InvalidInput, parameter=name, rule=rule):
        RobustMOSS(**parameters)


def test_missing_parameters():
    with pytest.raises(InvalidInput, match="cannot play without eps, u"):
        Live(RobustMOSS(), 2, 100)
    with pytest.raises(InvalidInput, match="without horizon"):
        Live(RobustMOSS(eps=0.5, u=1.0), 2)
