"""MR-UCB: decisions of the formula, a bonus that ends, invalid parameters."""

import math

import numpy as np
import pytest

from helpers.driving import Live
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_p_robust import SlowMRUCB
from robandit.errors import InvalidInput
from robandit.policies import MRUCB

STEPS = 400


@pytest.mark.independent("MRUCB")
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_of_the_formula(kind):
    for arms, eps, c, c_est in [(2, 1.0, 1.0, 0.1), (5, 0.4, 0.3, 1.0)]:
        rng = np.random.default_rng(arms)
        live = Live(MRUCB(eps=eps, c=c, c_est=c_est), arms, STEPS)
        slow = SlowMRUCB(arms, eps, c, c_est, STEPS)
        for step in range(STEPS):
            arm = live.ask()
            best = slow.choose()
            if arm != best:  # the same rewards in another order: a tie, up to rounding
                assert sorted(slow.data[arm]) == sorted(slow.data[best]), step
            reward = float(KINDS[kind](rng, arm, 1)[0])
            live.tell(arm, reward)
            slow.learn(arm, reward)
        columns = live.describe()
        assert columns["index"] == pytest.approx([slow.index(arm) for arm in range(arms)], rel=1e-11, abs=1e-13)
        assert columns["mean"] == pytest.approx([slow.mean(arm, c_est) for arm in range(arms)], rel=1e-11, abs=1e-13)


def test_the_bonus_ends_at_a_fair_share():
    live = Live(MRUCB(eps=0.5, horizon=300), 3)
    bonus = []
    for _ in range(120):
        live.tell(1, 0.0)
        bonus.append(live.describe()["index"][1])
    assert bonus[0] == pytest.approx(math.log(100))
    assert bonus[9] == pytest.approx(math.log(10) / 10 ** (1 / 3))
    assert (np.diff(bonus) <= 0).all()
    assert bonus[98] > 0
    assert bonus[99:] == [0.0] * 21


def test_scaled_rewards_and_scales_change_nothing():
    rng = np.random.default_rng(0)
    rewards = rng.standard_t(1.5, (3, STEPS)) - np.arange(3)[:, None]
    runs = []
    for factor in (1.0, 1024.0):
        live = Live(MRUCB(eps=0.5, c=factor, c_est=0.25 * factor), 3, STEPS)
        runs.append([])
        for j in range(STEPS):
            arm = live.ask()
            runs[-1].append(arm)
            live.tell(arm, factor * float(rewards[arm, j]))
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 3


def test_late_rewards():
    live = Live(MRUCB(eps=1.0, horizon=100), 3)
    live.follow_0_2()
    marks = [(arm := live.ask(), live.issue(arm)) for _ in range(5)]
    assert [arm for arm, _ in marks] == [0, 1, 2, 0, 1]
    live.forget(2, marks[2][1])
    assert live.ask() == 2
    live.tell(2, 50.0)
    for arm, mark in marks[:2] + marks[3:]:
        live.late(arm, -1.0, mark)
    assert live.ask() == 2
    slow = SlowMRUCB(3, 1.0, 1.0, 0.1, 100)
    slow.data = [[-1.0, -1.0], [-1.0, -1.0], [50.0]]
    assert live.describe()["index"] == pytest.approx([slow.index(arm) for arm in range(3)])


@pytest.mark.parametrize(
    ("parameters", "name", "rule"),
    [
        ({"eps": 0.0}, "eps", "a number with 0 < eps <= 1"),
        ({"eps": 1.5}, "eps", "a number with 0 < eps <= 1"),
        ({"eps": 1e-17}, "eps", "a number with 0 < eps <= 1"),
        ({"c": 0.0}, "c", "a finite number > 1e-150 and < 1e+150"),
        ({"c": 1e200}, "c", "a finite number > 1e-150 and < 1e+150"),
        ({"c_est": -1.0}, "c_est", "a finite number > 1e-150 and < 1e+150"),
        ({"horizon": 0}, "horizon", "an integer from 1 to 2^53"),
        ({"horizon": 10.0}, "horizon", "an integer from 1 to 2^53"),
    ],
)
def test_invalid_parameters(parameters, name, rule):
    with raises(InvalidInput, parameter=name, rule=rule):
        MRUCB(**parameters)
