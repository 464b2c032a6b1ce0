"""R-UCB-MoM."""

import math
from functools import partial
from statistics import median

import numpy as np
import pytest

from helpers.driving import Live, Plain
from helpers.evaluations import count_evaluations
from helpers.invalid import raises
from helpers.rewards import KINDS
from references.slow_robust_ucb import Slow, agree, block_median
from robandit.errors import InvalidInput
from robandit.policies.r_ucb import mom as module
from robandit.policies.r_ucb.growth import decay, decay_number, growth, growth_kind
from robandit.policies.r_ucb.mom import RUCBMoM


def rule(rewards, t, f, g):
    """Return estimate and width by the formulas of section 8."""
    n, log = len(rewards), math.log(t)
    mean = block_median(rewards, math.ceil(32 * log)) if n > 32 * log else median(rewards)
    return mean, growth(growth_kind(f), log) * (32 * log / n) ** decay(decay_number(g), log)


def test_by_hand():
    live = Live(RUCBMoM(), 2)
    for reward in (3.0, -1.0, 0.5, 100.0):
        live.tell(0, reward)
    live.tell(1, 7.0)
    columns = live.describe()
    level = math.log(6)
    assert columns["mean"].tolist() == [1.75, 7.0]
    assert columns["index"] == pytest.approx([1.75 + level * (8 * level) ** 0.45, 7.0 + level * (32 * level) ** 0.45])


def test_blocks_by_hand():
    """With 300 rewards at t = 302, q = ceil(32 log 302) = 183 blocks of one: the first 183 rewards."""
    live = Live(RUCBMoM(), 2, 400)
    for j in range(300):
        live.tell(0, float(j))
    live.tell(1, 0.0)
    assert live.describe()["mean"][0] == 91.0
    for j in range(300, 370):
        live.tell(0, float(j))
    assert math.ceil(32 * math.log(372)) == 190
    assert live.describe()["mean"][0] == 94.5
    for j in range(370, 400):
        live.tell(0, float(j))
    assert math.ceil(32 * math.log(402)) == 192
    assert live.describe()["mean"][0] == 191.5  # two rewards each, the first 384


CHOICES = [("log", 0.45), ("corollary", "corollary"), ("log_squared", 0.9), ("log_log", "corollary"), ("log", 0.1)]


@pytest.mark.independent("RUCBMoM")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", range(2))
def test_it_is_the_slow_one(kind, which):
    f, g = CHOICES[(2 * len(kind) + which) % len(CHOICES)]
    rng = np.random.default_rng(len(kind))
    arms, horizon = [(2, None), (4, 700)][which]
    slow = Slow(arms, partial(rule, f=f, g=g))
    live = Live(RUCBMoM(f=f, g=g), arms, horizon)
    agree(live, slow, lambda arm: float(KINDS[kind](rng, arm, 1)[0]), 700, check=7)


@pytest.mark.parametrize(("f", "g"), CHOICES[:4])
def test_a_long_run(f, g):
    rng = np.random.default_rng(3)
    live = Live(RUCBMoM(f=f, g=g), 2, 4000)
    draw = lambda arm: float(rng.standard_t(1.8) - 6 * arm)  # noqa: E731
    agree(live, Slow(2, partial(rule, f=f, g=g)), draw, 4000, check=50)


def test_an_arm_falls_back_to_all_its_rewards():
    """If n > 32 log t at first but not later, the median is over all rewards again."""
    live = Plain(RUCBMoM(), 2, 3000)
    for j in range(182):
        live.tell(0, float(j))
    live.tell(1, 0.0)
    assert live.describe()["mean"][0] == block_median([float(j) for j in range(182)], math.ceil(32 * math.log(184)))
    for _ in range(300):
        live.tell(1, 0.0)
    assert 32 * math.log(484) > 182
    assert live.describe()["mean"][0] == 90.5


@pytest.mark.parametrize(("f", "g"), [*CHOICES, ("corollary", 0.5), ("log_squared", "corollary")])
def test_the_line_is_above_the_index(f, g):
    """The lazy arg-max rests on this."""
    policy = RUCBMoM(f=f, g=g)
    live = Plain(policy, 1)
    p, s = live.p, live.s
    for n in [1, 2, 5, 40, 1000, 10**6]:
        s.arms[0, module.COUNT] = n
        s.arms[0, module.SHRINK] = n**-p.g if p.g > 0 else math.log(n)
        s.arms[0, module.NEXT] = s.arms[0, module.EVENT] = math.inf
        s.arms[0, module.MEAN] = -0.3
        for t in [2, 3, 4, 10, 14, 15, 16, 20, 100, 929, 10**5, 10**12]:
            now = math.log(t)
            module.prepare(p.f, p.g, s.now, now)
            began = module.clock(p, s)
            height, slope, until = RUCBMoM.outlook(p, s, 0, began)
            assert until > began
            later = until if p.g == 0 else now + 1.0  # a straight line never ends
            for level in np.linspace(now, later, 41):
                module.prepare(p.f, p.g, s.now, level)
                time = module.clock(p, s)
                assert RUCBMoM.index(p, s, 0, time) <= height + slope * (time - began)
                assert p.g == 0 or slope * (time - began) + height <= RUCBMoM.index(p, s, 0, time) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("power", [0.01, 0.45, 0.99])
def test_powers_near_one(power):
    for x in np.linspace(-1 / 64, 1 / 64, 201):
        assert module.power_near_one(x, power) == pytest.approx((1 + x) ** power, rel=1e-15)


def test_powers_computed_from_others_are_right():
    live = Plain(RUCBMoM(g=0.3), 1)
    for t in range(2, 3000):
        live.tell(0, 0.0)
        assert live.s.arms[0, module.SHRINK] == pytest.approx((t - 1) ** -0.3, rel=2e-14)
        module.prepare(live.p.f, live.p.g, live.s.now, math.log(t))
        level = math.log(t)
        assert live.s.now[module.SCALE] == pytest.approx(max(level, math.log(3)) * (32 * level) ** 0.3, rel=1e-14)


def test_it_is_lazy(monkeypatch):
    evaluations = count_evaluations(RUCBMoM(), monkeypatch)
    rng = np.random.default_rng(0)
    rewards = rng.standard_normal((20, 400)) - 3.0 * np.arange(20)[:, None]
    Plain(RUCBMoM(), 20, 2000).replay(rewards, 2000)
    assert 1000 < len(evaluations) < 4 * 2000


def test_a_constant_added_to_all_rewards_changes_nothing():
    rng = np.random.default_rng(2)
    one, two = Plain(RUCBMoM(), 3), Plain(RUCBMoM(), 3)
    for _ in range(300):
        arm = one.ask()
        assert arm == two.ask()
        reward = float(rng.integers(-9, 9) - arm) / 8
        one.tell(arm, reward)
        two.tell(arm, reward + 64.0)


def test_late_rewards():
    live = Plain(RUCBMoM(), 2)
    marks = [(arm, live.issue(arm)) for arm in (0, 1, 0)]
    assert live.ask() == 1
    for (arm, mark), reward in zip(reversed(marks), (1.0, 2.0, 4.0), strict=True):
        live.late(arm, reward, mark)
    assert live.describe()["mean"].tolist() == [2.5, 2.0]


def test_invalid_parameters():
    with raises(InvalidInput, parameter="f", rule="one of 'log', 'log_squared', 'log_log', 'corollary'"):
        RUCBMoM(f="sqrt")
    with raises(InvalidInput, parameter="g", rule="a finite number > 0 and < 1"):
        RUCBMoM(g=1.0)
    with raises(InvalidInput, parameter="g", rule="a finite number > 0 and < 1"):
        RUCBMoM(g="slow")
